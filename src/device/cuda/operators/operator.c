/* operator.c: the table of kernels, and what they are written with. */
#include "device/cuda/operators/operator.h"

#include <stdarg.h>
#include <string.h>

#include "device/cuda/kernels/common.h"
#include "tables/cuda_kernel.h"

const tutti_cuda_kernel *const *tutti__cuda_kernels(void)
{
    return tutti__cuda_kernel_table;
}

bool tutti__cuda_kernel_covers(const tutti_cuda_kernel *kernel, const tutti_op *op)
{
    bool named = strcmp(kernel->op, op->name) == 0;
    for (const char *const *other = kernel->ops; other && *other && !named; other++)
        named = strcmp(*other, op->name) == 0;
    if (strcmp(kernel->op, TUTTI_KERNEL_ELEMENTWISE) == 0)
        named |= (op->flags & TUTTI_OP_ELEMENTWISE) != 0;
    named |= strcmp(kernel->op, TUTTI_KERNEL_ANY) == 0;
    return named && (!kernel->covers || kernel->covers(op));
}

/* Kernels move and compute numbers, not strings. */
static bool has_strings(const tutti_infer *node)
{
    bool found = false;
    for (int i = 0; i < node->input_count; i++)
        found |= node->inputs[i].dtype == TUTTI_STRING;
    for (int i = 0; i < node->output_count; i++)
        found |= node->outputs[i].dtype == TUTTI_STRING;
    return found;
}

const tutti_cuda_kernel *tutti__cuda_kernel_pick(const tutti_kernel_query *query)
{
    const tutti_cuda_kernel *best = NULL;
    int most = 0;
    if (has_strings(&query->node))
        return NULL;
    for (const tutti_cuda_kernel *const *kernel = tutti__cuda_kernels(); *kernel; kernel++) {
        if (!tutti__cuda_kernel_covers(*kernel, query->node.op))
            continue;
        int score = (*kernel)->score ? (*kernel)->score(query) : 100;
        if (score > most) {
            most = score;
            best = *kernel;
        }
    }
    return best;
}

const char *tutti__cuda_dtype(tutti_dtype dtype)
{
    static const char *const names[TUTTI_DTYPE_END] = {
        [TUTTI_F32] = "float", [TUTTI_F64] = "double", [TUTTI_F16] = "f16",
        [TUTTI_BF16] = "bf16", [TUTTI_I8] = "i8",      [TUTTI_U8] = "u8",
        [TUTTI_I32] = "i32",   [TUTTI_I64] = "i64",    [TUTTI_BOOL] = "bool",
    };
    return dtype > TUTTI_NO_DTYPE && dtype < TUTTI_DTYPE_END ? names[dtype] : NULL;
}

int64_t tutti__cuda_count(const tutti_view *view)
{
    int64_t count = 1;
    for (int i = 0; i < view->rank; i++)
        count *= view->dims[i];
    return count;
}

void tutti__cuda_around(const tutti_view *view, int64_t axis, int64_t ret[3])
{
    ret[0] = ret[1] = ret[2] = 1;
    if (axis < 0)
        axis += view->rank;
    for (int i = 0; i < view->rank; i++)
        ret[i < axis ? 0 : i == axis ? 1 : 2] *= view->dims[i];
}

tutti_cuda_shape tutti__cuda_shape(int rank, const int64_t *dims)
{
    tutti_cuda_shape shape = {.rank = rank};
    for (int i = 0; i < rank; i++)
        shape.dim[i] = dims[i];
    return shape;
}

tutti_cuda_places tutti__cuda_dense(int rank, const int64_t *dims)
{
    tutti_cuda_places places = {{0}};
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        places.stride[i] = stride;
        stride *= dims[i];
    }
    return places;
}

tutti_cuda_places tutti__cuda_spread(const tutti_cuda_shape *to, int rank, const int64_t *dims)
{
    tutti_cuda_places own = tutti__cuda_dense(rank, dims), places = {{0}};
    int lead = (int)to->rank - rank;
    for (int i = 0; i < rank; i++)
        places.stride[lead + i] = dims[i] == 1 && to->dim[lead + i] != 1 ? 0 : own.stride[i];
    return places;
}

void tutti__cuda_collapse(tutti_cuda_shape *shape, int count, tutti_cuda_places **places)
{
    int rank = 0;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dim[i] == 1)
            continue;
        bool joins = rank > 0;
        for (int p = 0; joins && p < count; p++)
            joins = places[p]->stride[rank - 1] == places[p]->stride[i] * shape->dim[i];
        if (!joins)
            rank++;
        shape->dim[rank - 1] = joins ? shape->dim[rank - 1] * shape->dim[i] : shape->dim[i];
        for (int p = 0; p < count; p++)
            places[p]->stride[rank - 1] = places[p]->stride[i];
    }
    shape->rank = rank;
}

int64_t tutti__cuda_blocks(int64_t elements)
{
    int64_t blocks = tutti__cuda_ceil(elements, 256);
    return blocks < 1 << 16 ? blocks : 1 << 16;
}

tutti_status tutti__cuda_start(const tutti_cuda_call *c, const tutti_cuda_source *source,
                               const char *entry, int64_t blocks, int threads, void **arguments,
                               const char *options, ...)
{
    char text[TUTTI_CUDA_OPTIONS_SIZE];
    va_list list;
    va_start(list, options);
    vsnprintf(text, sizeof text, options, list);
    va_end(list);
    if (blocks <= 0)
        return TUTTI_OK;
    return tutti__cuda_launch_on(c->on.device, c->on.stream,
                                 &(tutti_cuda_launch){.source = source,
                                                      .options = text,
                                                      .entry = entry,
                                                      .grid = {(unsigned)blocks},
                                                      .threads = (unsigned)threads},
                                 arguments);
}

tutti_status tutti__cuda_clear(const tutti_cuda_call *c, tutti_cu_pointer at, int64_t bytes)
{
    if (bytes == 0)
        return TUTTI_OK;
    return TUTTI_CU(c->on.device, cuMemsetD8Async(at, 0, (size_t)bytes, c->on.stream));
}

tutti_status tutti__cuda_copy(const tutti_cuda_call *c, tutti_cu_pointer to, tutti_cu_pointer from,
                              int64_t bytes)
{
    if (bytes == 0 || to == from)
        return TUTTI_OK;
    return TUTTI_CU(c->on.device, cuMemcpyDtoDAsync(to, from, (size_t)bytes, c->on.stream));
}
