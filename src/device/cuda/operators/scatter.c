/* scatter.c: see scatter.cu: gradients of gathers, scatters, rows of variables, combine_rows. */
#include <string.h>

#include "device/cuda/kernels/common.h"
#include "device/cuda/operators/scatter.h"
#include "tables/cuda_texts.h"

enum { CHUNK = 32, THREADS = 256, MOST_ROWS = 0x7fffffff };

static int64_t align(int64_t bytes)
{
    return tutti__cuda_ceil(bytes, 256) * 256;
}

/* Keys, sorted keys, positions, edges, and what the sort needs. */
size_t tutti__cuda_scatter_workspace(int64_t count, int64_t length)
{
    int64_t edges = tutti__cuda_ceil(count, CHUNK) * 2 * length * 8;
    return (size_t)(3 * align(count * 4) + align(edges)) + tutti__cuda_sort_workspace(count);
}

tutti_status tutti__cuda_scatter(const tutti_cuda_call *c, const tutti_cuda_scatter *s)
{
    int64_t count = s->count, length = s->length, chunks = tutti__cuda_ceil(count, CHUNK);
    tutti_cu_pointer keys = s->workspace, sorted = keys + (uint64_t)align(count * 4);
    tutti_cu_pointer positions = sorted + (uint64_t)align(count * 4);
    tutti_cu_pointer edges = positions + (uint64_t)align(count * 4), updates = s->updates, y = s->y;
    tutti_cu_pointer rest = edges + (uint64_t)align(chunks * 2 * length * 8);
    uint32_t rows = s->rows;
    int vector = 16 / (int)tutti_dtype_size(s->dtype), lanes = 1;
    if (count == 0 || length == 0)
        return TUTTI_OK;
    vector = vector > 8 ? 8 : vector;
    while (length % vector != 0)
        vector /= 2;
    while (lanes < THREADS && lanes < length / vector)
        lanes *= 2;
    TUTTI_TRY(tutti__cuda_sort(c->on, keys, count, rows, sorted, positions, rest));
    char options[TUTTI_CUDA_OPTIONS_SIZE];
    snprintf(options, sizeof options, "-DTYPE=%s -DPER=%d -DLANES=%d -DCOMBINE=%d -DSTORE=%d",
             tutti__cuda_dtype(s->dtype), vector, lanes, s->combine, s->store);
    TUTTI_TRY(tutti__cuda_start(
        c, &tutti_cuda_source_scatter, "scatter", tutti__cuda_ceil(chunks, THREADS / lanes),
        THREADS, (void *[]){&updates, &sorted, &positions, &count, &length, &rows, &y, &edges},
        "%s", options));
    if (chunks < 2)
        return TUTTI_OK;
    return tutti__cuda_start(c, &tutti_cuda_source_scatter, "scatter_edges", chunks, THREADS,
                             (void *[]){&sorted, &positions, &count, &length, &rows, &edges, &y},
                             "%s", options);
}

static const char *index_type(const tutti_view *indices)
{
    return tutti__cuda_dtype(indices->dtype);
}

tutti_status tutti__cuda_scatter_keys(const tutti_cuda_call *c, const tutti_view *indices,
                                      int64_t outer, int64_t size, uint32_t rows,
                                      tutti_cu_pointer keys)
{
    tutti_cu_pointer by = (tutti_cu_pointer)(uintptr_t)indices->data, fault = c->fault;
    int64_t number = tutti__cuda_count(indices);
    return tutti__cuda_start(c, &tutti_cuda_source_scatter, "keys_axis",
                             tutti__cuda_blocks(outer * number), 256,
                             (void *[]){&by, &number, &outer, &size, &rows, &keys, &fault},
                             "-DINDEX=%s", index_type(indices));
}

static int64_t attr_int(const tutti_cuda_call *c, const char *name)
{
    return tutti_attr_int(c->call->attrs, c->call->attr_count, name);
}

static tutti_status clear(const tutti_cuda_call *c, const tutti_view *y)
{
    return tutti__cuda_clear(c, tutti__cuda_out(c, 0),
                             tutti__cuda_count(y) * (int64_t)tutti_dtype_size(y->dtype));
}

static tutti_cuda_scatter into(const tutti_cuda_call *c, int updates, int64_t count, int64_t rows)
{
    const tutti_view *y = &c->call->outputs[0];
    return (tutti_cuda_scatter){.dtype = y->dtype,
                                .count = count,
                                .length = rows > 0 ? tutti__cuda_count(y) / rows : 0,
                                .rows = (uint32_t)rows,
                                .updates = tutti__cuda_in(c, updates),
                                .y = tutti__cuda_out(c, 0),
                                .workspace = tutti__cuda_work(c)};
}

/* gather_grad(rows, indices, like), rows_to_dense(rows, indices, like). */
static tutti_status gather_grad(const tutti_cuda_call *c)
{
    const tutti_view *y = &c->call->outputs[0], *indices = &c->call->inputs[1];
    int64_t n[3];
    tutti__cuda_around(y, attr_int(c, "axis"), n);
    tutti_cuda_scatter s = into(c, 0, n[0] * tutti__cuda_count(indices), n[0] * n[1]);
    TUTTI_TRY(clear(c, y));
    TUTTI_TRY(tutti__cuda_scatter_keys(c, indices, n[0], n[1], s.rows, s.workspace));
    return tutti__cuda_scatter(c, &s);
}

/* scatter_nd(indices, updates), scatter_nd_like. */
static tutti_status scatter_nd(const tutti_cuda_call *c)
{
    const tutti_view *y = &c->call->outputs[0], *indices = &c->call->inputs[0];
    int columns = (int)indices->dims[indices->rank - 1];
    int64_t count = 1, rows = 1;
    tutti_cuda_shape shape = tutti__cuda_shape(y->rank, y->dims);
    tutti_cuda_places p = tutti__cuda_dense(columns, y->dims);
    tutti_cu_pointer by = tutti__cuda_in(c, 0), fault = c->fault;
    for (int i = 0; i < indices->rank - 1; i++)
        count *= indices->dims[i];
    for (int i = 0; i < columns; i++)
        rows *= y->dims[i];
    tutti_cuda_scatter s = into(c, 1, count, rows);
    TUTTI_TRY(clear(c, y));
    TUTTI_TRY(tutti__cuda_start(
        c, &tutti_cuda_source_scatter, "keys_nd", tutti__cuda_blocks(count), 256,
        (void *[]){&by, &count, &columns, &shape, &p, &s.rows, &s.workspace, &fault}, "-DINDEX=%s",
        index_type(indices)));
    return tutti__cuda_scatter(c, &s);
}

static tutti_status along(const tutti_cuda_call *c, const tutti_view *indices, int negative,
                          const tutti_cuda_scatter *s)
{
    const tutti_view *y = &c->call->outputs[0];
    tutti_cuda_shape shape = tutti__cuda_shape(indices->rank, indices->dims);
    tutti_cuda_places p = tutti__cuda_dense(y->rank, y->dims);
    int64_t axis = attr_int(c, "axis"), count = s->count;
    tutti_cu_pointer by = (tutti_cu_pointer)(uintptr_t)indices->data, fault = c->fault;
    uint32_t rows = s->rows;
    tutti_cu_pointer keys = s->workspace;
    axis = axis < 0 ? axis + y->rank : axis;
    int64_t size = y->dims[axis], stride = p.stride[axis];
    p.stride[axis] = 0;
    TUTTI_TRY(tutti__cuda_start(
        c, &tutti_cuda_source_scatter, "keys_along", tutti__cuda_blocks(count), 256,
        (void *[]){&by, &count, &shape, &p, &size, &stride, &negative, &rows, &keys, &fault},
        "-DINDEX=%s", index_type(indices)));
    return tutti__cuda_scatter(c, s);
}

static tutti_status put_along(const tutti_cuda_call *c)
{
    const tutti_view *y = &c->call->outputs[0], *indices = &c->call->inputs[0];
    tutti_cuda_scatter s = into(c, 1, tutti__cuda_count(indices), tutti__cuda_count(y));
    TUTTI_TRY(clear(c, y));
    return along(c, indices, 0, &s);
}

static tutti_status scatter_elements(const tutti_cuda_call *c)
{
    const char *reduction = tutti_attr_string(c->call->attrs, c->call->attr_count, "reduction");
    const tutti_view *y = &c->call->outputs[0], *indices = &c->call->inputs[1];
    tutti_cuda_scatter s = into(c, 2, tutti__cuda_count(indices), tutti__cuda_count(y));
    s.combine = strcmp(reduction, "add") == 0   ? 0
                : strcmp(reduction, "mul") == 0 ? 1
                : strcmp(reduction, "max") == 0 ? 2
                : strcmp(reduction, "min") == 0 ? 3
                                                : 4;
    s.store = 1;
    TUTTI_TRY(tutti__cuda_copy(c, s.y, tutti__cuda_in(c, 0),
                               tutti__cuda_count(y) * (int64_t)tutti_dtype_size(y->dtype)));
    return along(c, indices, 1, &s);
}

/* scatter_add(v, indices, rows), scatter_sub, scatter_update: y is the variable's new value. */
static tutti_status scatter_variable(const tutti_cuda_call *c)
{
    const tutti_view *y = &c->call->outputs[0], *indices = &c->call->inputs[1];
    int64_t bytes = tutti__cuda_count(y) * (int64_t)tutti_dtype_size(y->dtype);
    tutti_cuda_scatter s = into(c, 2, tutti__cuda_count(indices), y->dims[0]);
    char last = c->call->op->name[strlen("scatter_")];
    s.y = tutti__cuda_in(c, 0);
    s.combine = last == 'u' ? 4 : 0;
    s.store = last == 'u' ? 0 : last == 's' ? 2 : 1;
    TUTTI_TRY(tutti__cuda_scatter_keys(c, indices, 1, y->dims[0], s.rows, s.workspace));
    TUTTI_TRY(tutti__cuda_scatter(c, &s));
    return tutti__cuda_copy(c, tutti__cuda_out(c, 0), s.y, bytes);
}

/* combine_rows(rows, indices): any indices that 31 bits hold. */
static tutti_status combine_rows(const tutti_cuda_call *c)
{
    const tutti_view *y = &c->call->outputs[0], *indices = &c->call->inputs[1];
    int64_t count = tutti__cuda_count(indices);
    tutti_cuda_scatter s = into(c, 0, count, count);
    s.rows = MOST_ROWS;
    s.store = 3;
    TUTTI_TRY(clear(c, y));
    TUTTI_TRY(tutti__cuda_scatter_keys(c, indices, 1, MOST_ROWS, s.rows, s.workspace));
    return tutti__cuda_scatter(c, &s);
}

static const struct {
    const char *op;
    int indices, updates;
    tutti_status (*run)(const tutti_cuda_call *c);
} table[] = {
    {"gather_grad", 1, 0, gather_grad},
    {"rows_to_dense", 1, 0, gather_grad},
    {"scatter_nd", 0, 1, scatter_nd},
    {"scatter_nd_like", 0, 1, scatter_nd},
    {"put_along", 0, 1, put_along},
    {"scatter_elements", 1, 2, scatter_elements},
    {"scatter_add", 1, 2, scatter_variable},
    {"scatter_sub", 1, 2, scatter_variable},
    {"scatter_update", 1, 2, scatter_variable},
    {"combine_rows", 1, 0, combine_rows},
};

static int entry_of(const tutti_op *op)
{
    for (size_t i = 0; i < TUTTI_COUNT(table); i++)
        if (strcmp(table[i].op, op->name) == 0)
            return (int)i;
    return -1;
}

static bool scatter_covers(const tutti_op *op)
{
    return entry_of(op) >= 0;
}

/* Places are sorted as 32 bits; an index of no numbers names all of y, which is no place. */
static int scatter_score(const tutti_kernel_query *query)
{
    int entry = entry_of(query->node.op);
    const tutti_type *indices = &query->node.inputs[table[entry].indices];
    if (table[entry].run == scatter_nd && indices->dims[indices->rank - 1] == 0)
        return 0;
    return tutti__cuda_type_count(&query->node.outputs[0]) < MOST_ROWS ? 100 : 0;
}

/* As many updates as indices at most, and as many elements as the updates have. */
static size_t scatter_workspace(const tutti_kernel_query *query)
{
    int entry = entry_of(query->node.op);
    const tutti_type *updates = &query->node.inputs[table[entry].updates];
    int64_t elements = tutti__cuda_type_count(updates);
    int64_t count = tutti__cuda_type_count(&query->node.inputs[table[entry].indices]);
    const int64_t rank = query->node.inputs[table[entry].indices].rank;
    if (count == 0 || elements == 0)
        return 0;
    if (table[entry].run == scatter_nd)
        count /= query->node.inputs[0].dims[rank - 1];
    if (table[entry].run == gather_grad)
        for (int64_t i = 0,
                     axis = tutti_attr_int(query->node.attrs, query->node.attr_count, "axis");
             i < (axis < 0 ? axis + query->node.outputs[0].rank : axis); i++)
            count *= query->node.outputs[0].dims[i];
    return tutti__cuda_scatter_workspace(count, tutti__cuda_ceil(elements, count));
}

static tutti_status scatter_run(const tutti_cuda_call *c)
{
    return table[entry_of(c->call->op)].run(c);
}

static const char *const variants[] = {"-DINDEX=i32",
                                       "-DTYPE=bf16 -DPER=8 -DLANES=128 -DCOMBINE=0 -DSTORE=0",
                                       "-DTYPE=i64 -DPER=1 -DLANES=1 -DCOMBINE=4 -DSTORE=1", NULL};

const tutti_cuda_source tutti_cuda_source_scatter = {
    .name = "scatter",
    .text = &tutti__cuda_text_scatter_cu,
    .variants = variants,
};

const tutti_cuda_kernel tutti_cuda_kernel_scatter = {
    .name = "scatter",
    .version = 1,
    .op = TUTTI_KERNEL_ANY,
    .covers = scatter_covers,
    .score = scatter_score,
    .workspace = scatter_workspace,
    .run = scatter_run,
};
