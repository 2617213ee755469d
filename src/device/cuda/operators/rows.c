/* rows.c: see rows.cu: softmax, losses, layer norm, rms norm, batch norm. */
#include <string.h>

#include "device/cuda/kernels/common.h"
#include "device/cuda/operators/operator.h"
#include "tables/cuda_texts.h"

enum { MOST_PIECES = 512, LEAST_ROWS = 32 };

static int64_t align(int64_t bytes)
{
    return tutti__cuda_ceil(bytes, 256) * 256;
}

static int lanes_of(int64_t size)
{
    return size > 1024 ? 256 : 32;
}

static int64_t blocks_of(int64_t rows, int64_t size)
{
    return tutti__cuda_ceil(rows, 256 / lanes_of(size));
}

static double epsilon_of(const tutti_cuda_call *c)
{
    return tutti_attr_float(c->call->attrs, c->call->attr_count, "epsilon");
}

#define START(entry, blocks, arguments)                                                            \
    tutti__cuda_start(c, &tutti_cuda_source_rows, entry, blocks, 256, arguments,                   \
                      "-DTYPE=%s -DLANES=%d -DINDEX=%s",                                           \
                      tutti__cuda_dtype(c->call->inputs[0].dtype), lanes_of(size), index_of(c))

/* Of labels; of operators without, any. */
static const char *index_of(const tutti_cuda_call *c)
{
    bool labels = strncmp(c->call->op->name, "sparse_", 7) == 0;
    return labels ? tutti__cuda_dtype(c->call->inputs[1].dtype) : "i32";
}

/* rows x size, by the last axis. */
static void matrix_of(const tutti_view *x, int64_t *ret_rows, int64_t *ret_size)
{
    *ret_size = x->rank > 0 ? x->dims[x->rank - 1] : 1;
    *ret_rows = *ret_size > 0 ? tutti__cuda_count(x) / *ret_size : 0;
}

static bool is_house_type(tutti_dtype dtype, tutti_cuda_type *ret)
{
    *ret = dtype == TUTTI_F32    ? TUTTI_CUDA_F32
           : dtype == TUTTI_BF16 ? TUTTI_CUDA_BF16
                                 : TUTTI_CUDA_F16;
    return dtype == TUTTI_F32 || dtype == TUTTI_BF16 || dtype == TUTTI_F16;
}

/* Rows that the kernels which keep a row in registers take. */
static bool is_compact_of(tutti_dtype dtype, int64_t size, int64_t most, tutti_cuda_type *ret)
{
    return is_house_type(dtype, ret) && size > 0 && size <= most &&
           size * (int64_t)tutti_dtype_size(dtype) % 16 == 0;
}

static bool is_compact(const tutti_view *x, int64_t size, int64_t most, tutti_cuda_type *ret)
{
    return is_compact_of(x->dtype, size, most, ret);
}

static tutti_status softmax(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0];
    int64_t n[3], axis = tutti_attr_int(c->call->attrs, c->call->attr_count, "axis");
    int log_of = c->call->op->name[0] == 'l';
    tutti_cu_pointer from = tutti__cuda_in(c, 0), to = tutti__cuda_out(c, 0);
    tutti_cuda_type type;
    tutti__cuda_around(x, axis, n);
    int64_t rows = n[0] * n[2], size = n[1];
    if (n[2] == 1 && !log_of && rows > 0 && is_compact(x, size, TUTTI_CUDA_MOST_WIDTH, &type))
        return tutti__cuda_softmax(c->on, type, from, to, rows, (int)size);
    return START("row_softmax", blocks_of(rows, size),
                 ((void *[]){&from, &rows, &size, &n[2], &log_of, &to}));
}

static tutti_status cross_entropy(const tutti_cuda_call *c)
{
    tutti_cu_pointer x = tutti__cuda_in(c, 0), labels = tutti__cuda_in(c, 1);
    tutti_cu_pointer y = tutti__cuda_out(c, 0);
    int64_t rows, size;
    matrix_of(&c->call->inputs[0], &rows, &size);
    return START("row_cross_entropy", blocks_of(rows, size),
                 ((void *[]){&x, &labels, &rows, &size, &y}));
}

static tutti_status sparse_cross_entropy(const tutti_cuda_call *c)
{
    tutti_cu_pointer x = tutti__cuda_in(c, 0), labels = tutti__cuda_in(c, 1), fault = c->fault;
    tutti_cu_pointer y = tutti__cuda_out(c, 0);
    int64_t rows, size;
    matrix_of(&c->call->inputs[0], &rows, &size);
    return START("row_sparse_cross_entropy", blocks_of(rows, size),
                 ((void *[]){&x, &labels, &rows, &size, &y, &fault}));
}

static tutti_status sparse_cross_entropy_gradient(const tutti_cuda_call *c)
{
    tutti_cu_pointer x = tutti__cuda_in(c, 0), labels = tutti__cuda_in(c, 1), fault = c->fault;
    tutti_cu_pointer y = tutti__cuda_out(c, 0);
    tutti_cu_pointer grad = c->call->input_count > 2 ? tutti__cuda_in(c, 2) : 0;
    int64_t rows, size;
    matrix_of(&c->call->inputs[0], &rows, &size);
    return START("row_sparse_cross_entropy_gradient", blocks_of(rows, size),
                 ((void *[]){&x, &labels, &grad, &rows, &size, &y, &fault}));
}

static tutti_status norm(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0];
    int rms = c->call->op->name[0] == 'r';
    tutti_cu_pointer from = tutti__cuda_in(c, 0), scale = tutti__cuda_in(c, 1);
    tutti_cu_pointer offset = rms ? 0 : tutti__cuda_in(c, 2), to = tutti__cuda_out(c, 0);
    int64_t rows, size;
    double epsilon = epsilon_of(c);
    tutti_cuda_type type;
    matrix_of(x, &rows, &size);
    if (rows > 0 && is_compact(x, size, TUTTI_CUDA_MOST_WIDTH, &type))
        return tutti__cuda_norm(
            c->on, &(tutti_cuda_norm){.type = type,
                                      .rows = rows,
                                      .width = (int)size,
                                      .rms = rms,
                                      .epsilon = (float)epsilon,
                                      .x = from,
                                      .gamma = scale,
                                      .beta = offset,
                                      .y = to,
                                      .mean = tutti__cuda_work(c),
                                      .rstd = tutti__cuda_work(c) + (uint64_t)align(rows * 4)});
    return START("row_norm", blocks_of(rows, size),
                 ((void *[]){&from, &scale, &offset, &rows, &size, &epsilon, &rms, &to}));
}

static int64_t pieces_of(int64_t rows, int64_t size)
{
    int64_t pieces = size > 0 ? tutti__cuda_ceil(65536, size) : 1;
    int64_t most = tutti__cuda_ceil(rows, LEAST_ROWS);
    pieces = pieces < most ? pieces : most;
    return pieces < 1 ? 1 : pieces > MOST_PIECES ? MOST_PIECES : pieces;
}

/* Workspace: moments of rows or columns' sums, then partial sums. */
static tutti_status norm_gradient(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0];
    int rms = c->call->op->name[0] == 'r';
    tutti_cu_pointer from = tutti__cuda_in(c, 0), scale = tutti__cuda_in(c, 1), none = 0;
    tutti_cu_pointer grad = tutti__cuda_in(c, 2), dx = tutti__cuda_out(c, 0);
    tutti_cu_pointer dscale = tutti__cuda_out(c, 1), doffset = rms ? 0 : tutti__cuda_out(c, 2);
    int64_t rows, size;
    double epsilon = epsilon_of(c);
    tutti_cuda_type type;
    matrix_of(x, &rows, &size);
    if (rows > 0 && is_compact(x, size, TUTTI_CUDA_MOST_WIDTH, &type))
        return tutti__cuda_norm_gradient(c->on,
                                         &(tutti_cuda_norm){.type = type,
                                                            .rows = rows,
                                                            .width = (int)size,
                                                            .rms = rms,
                                                            .epsilon = (float)epsilon,
                                                            .x = from,
                                                            .gamma = scale,
                                                            .dy = grad,
                                                            .dx = dx,
                                                            .dgamma = dscale,
                                                            .dbeta = doffset,
                                                            .workspace = tutti__cuda_work(c)});
    int64_t pieces = pieces_of(rows, size);
    tutti_cu_pointer kept = tutti__cuda_work(c), partial = kept + (uint64_t)align(rows * 16);
    TUTTI_TRY(START("row_norm_gradient", blocks_of(rows, size),
                    ((void *[]){&from, &scale, &grad, &rows, &size, &epsilon, &rms, &dx, &kept})));
    TUTTI_TRY(START("column_sums", tutti__cuda_ceil(pieces * size, 256),
                    ((void *[]){&from, &grad, &rows, &size, &pieces, &kept, &none, &none, &epsilon,
                                &partial})));
    return START("column_sums_join", tutti__cuda_ceil(size, 256),
                 ((void *[]){&partial, &size, &pieces, &dscale, &doffset, &none}));
}

static tutti_status batch_norm(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0];
    tutti_cu_pointer from = tutti__cuda_in(c, 0), scale = tutti__cuda_in(c, 1);
    tutti_cu_pointer offset = tutti__cuda_in(c, 2), to = tutti__cuda_out(c, 0);
    tutti_cu_pointer mean = tutti__cuda_out(c, 1), variance = tutti__cuda_out(c, 2);
    int64_t rows, size, count = tutti__cuda_count(x);
    double epsilon = epsilon_of(c);
    matrix_of(x, &rows, &size);
    int64_t pieces = pieces_of(rows, size);
    tutti_cu_pointer exact = tutti__cuda_work(c), partial = exact + (uint64_t)align(size * 16);
    TUTTI_TRY(START("column_moments", tutti__cuda_ceil(pieces * size, 256),
                    ((void *[]){&from, &rows, &size, &pieces, &partial})));
    TUTTI_TRY(START("column_moments_join", tutti__cuda_ceil(size, 256),
                    ((void *[]){&partial, &rows, &size, &pieces, &mean, &variance, &exact})));
    return START("batch_norm", tutti__cuda_blocks(count),
                 ((void *[]){&from, &scale, &offset, &count, &size, &epsilon, &exact, &to}));
}

static tutti_status batch_norm_gradient(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0];
    tutti_cu_pointer in[5], dx = tutti__cuda_out(c, 0), none = 0;
    tutti_cu_pointer dscale = tutti__cuda_out(c, 1), doffset = tutti__cuda_out(c, 2);
    int64_t rows, size;
    double epsilon = epsilon_of(c);
    for (int i = 0; i < 5; i++)
        in[i] = tutti__cuda_in(c, i);
    matrix_of(x, &rows, &size);
    int64_t pieces = pieces_of(rows, size);
    tutti_cu_pointer sums = tutti__cuda_work(c), partial = sums + (uint64_t)align(size * 16);
    TUTTI_TRY(START("column_sums", tutti__cuda_ceil(pieces * size, 256),
                    ((void *[]){&in[0], &in[4], &rows, &size, &pieces, &none, &in[2], &in[3],
                                &epsilon, &partial})));
    TUTTI_TRY(START("column_sums_join", tutti__cuda_ceil(size, 256),
                    ((void *[]){&partial, &size, &pieces, &dscale, &doffset, &sums})));
    return START(
        "batch_norm_gradient", tutti__cuda_blocks(rows * size),
        ((void *[]){&in[0], &in[1], &in[2], &in[3], &in[4], &rows, &size, &epsilon, &sums, &dx}));
}

static const struct {
    const char *op;
    tutti_status (*run)(const tutti_cuda_call *c);
} table[] = {
    {"softmax", softmax},
    {"log_softmax", softmax},
    {"softmax_cross_entropy", cross_entropy},
    {"sparse_softmax_cross_entropy", sparse_cross_entropy},
    {"sparse_softmax_cross_entropy_backward", sparse_cross_entropy_gradient},
    {"layer_norm", norm},
    {"rms_norm", norm},
    {"layer_norm_backward", norm_gradient},
    {"rms_norm_backward", norm_gradient},
    {"batch_norm", batch_norm},
    {"batch_norm_backward", batch_norm_gradient},
};

static bool rows_covers(const tutti_op *op)
{
    for (size_t i = 0; i < TUTTI_COUNT(table); i++)
        if (strcmp(table[i].op, op->name) == 0)
            return true;
    return false;
}

/* All floats of one type, but labels. */
static int rows_score(const tutti_kernel_query *query)
{
    const tutti_infer *node = &query->node;
    for (int i = 1; i < node->input_count; i++)
        if (tutti_dtype_is_float(node->inputs[i].dtype) &&
            node->inputs[i].dtype != node->inputs[0].dtype)
            return 0;
    if (strncmp(node->op->name, "sparse_", 7) == 0 && node->inputs[1].dtype != TUTTI_I32 &&
        node->inputs[1].dtype != TUTTI_I64)
        return 0;
    return 100;
}

static size_t rows_workspace(const tutti_kernel_query *query)
{
    const tutti_type *x = &query->node.inputs[0];
    int64_t size = x->rank > 0 ? x->dims[x->rank - 1] : 1;
    int64_t rows = size > 0 ? tutti__cuda_type_count(x) / size : 0;
    if (strstr(query->node.op->name, "norm") == NULL)
        return 0;
    size_t bytes = (size_t)(align((rows > size ? rows : size) * 16) +
                            align(pieces_of(rows, size) * 2 * size * 8));
    tutti_cuda_type type;
    if (strstr(query->node.op->name, "backward") == NULL || rows < 1 ||
        !is_compact_of(x->dtype, size, TUTTI_CUDA_MOST_WIDTH, &type))
        return bytes;
    size_t compact = tutti__cuda_norm_workspace(
        &(tutti_cuda_norm){.type = type, .rows = rows, .width = (int)size});
    return compact > bytes ? compact : bytes;
}

static tutti_status rows_run(const tutti_cuda_call *c)
{
    size_t i = 0;
    while (strcmp(table[i].op, c->call->op->name) != 0)
        i++;
    return table[i].run(c);
}

static const char *const variants[] = {"-DTYPE=float -DLANES=32 -DINDEX=i32",
                                       "-DTYPE=bf16 -DLANES=256 -DINDEX=i64", NULL};

const tutti_cuda_source tutti_cuda_source_rows = {
    .name = "rows",
    .text = &tutti__cuda_text_rows_cu,
    .variants = variants,
};

const tutti_cuda_kernel tutti_cuda_kernel_rows = {
    .name = "rows",
    .version = 1,
    .op = TUTTI_KERNEL_ANY,
    .covers = rows_covers,
    .score = rows_score,
    .workspace = rows_workspace,
    .run = rows_run,
};
