/* fold.c: see fold.cu: reductions over any axes, positions of extremes, and sums over several
 * tensors at once. */
#include <string.h>

#include "device/cuda/kernels/common.h"
#include "device/cuda/operators/operator.h"
#include "tables/cuda_texts.h"

enum { CHUNK = 16384, TENSORS = 96, STATE_BYTES = 24, MOST_PIECES = 1024 };

static const struct {
    const char *op;
    int fold;      /* as in fold.cu */
    bool position; /* along attribute axis */
} table[] = {
    {"sum", 0, false},         {"mean", 1, false},      {"prod", 2, false},
    {"max", 3, false},         {"min", 4, false},       {"any", 5, false},
    {"all", 6, false},         {"logsumexp", 9, false}, {"variance", 10, false},
    {"norm", 13, false},       {"argmax", 11, true},    {"argmin", 12, true},
    {"sum_like", 0, false},    {"tile_grad", 0, false}, {"square_sum", 7, false},
    {"all_finite", 14, false},
};

static int entry_of(const char *op)
{
    for (size_t i = 0; i < TUTTI_COUNT(table); i++)
        if (strcmp(table[i].op, op) == 0)
            return (int)i;
    return -1;
}

/* What is kept and what is gone over, with strides in x. */
typedef struct fold_plan {
    tutti_cuda_shape kept, along;
    tutti_cuda_places kept_at, along_at;
    int64_t outputs, count, pieces;
    int lanes, dense;
} fold_plan;

static void add_axis(tutti_cuda_shape *shape, tutti_cuda_places *at, int64_t dim, int64_t stride)
{
    shape->dim[shape->rank] = dim;
    at->stride[shape->rank++] = stride;
}

/* Many outputs: one thread each, where neighbours read side by side. Few: pieces. By shape only. */
static void spread_out(fold_plan *p)
{
    tutti_cuda_places *kept[] = {&p->kept_at}, *along[] = {&p->along_at};
    tutti__cuda_collapse(&p->kept, 1, kept);
    tutti__cuda_collapse(&p->along, 1, along);
    p->outputs = p->count = 1;
    for (int i = 0; i < p->kept.rank; i++)
        p->outputs *= p->kept.dim[i];
    for (int i = 0; i < p->along.rank; i++)
        p->count *= p->along.dim[i];
    p->dense = p->along.rank <= 1;
    if (p->along.rank == 0)
        p->along_at.stride[0] = 1;
    int64_t inner = p->along.rank > 0 ? p->along_at.stride[p->along.rank - 1] : 1;
    p->lanes = inner > 1 && p->outputs >= 32 ? 1 : p->count >= 1024 ? 256 : p->count >= 16 ? 32 : 1;
    int64_t wanted = p->lanes == 1 ? 65536 : p->lanes == 32 ? 8192 : 1056;
    int64_t least = p->lanes == 1 ? 64 : p->lanes == 32 ? 512 : 8192;
    p->pieces = p->outputs > 0 ? tutti__cuda_ceil(wanted, p->outputs) : 1;
    int64_t most = tutti__cuda_ceil(p->count, least);
    p->pieces = p->pieces > most ? most : p->pieces;
    p->pieces = p->pieces > MOST_PIECES ? MOST_PIECES : p->pieces < 1 ? 1 : p->pieces;
}

static unsigned axes_mask(const tutti_attr *attrs, int attr_count, int rank)
{
    const int64_t *axes;
    int count = tutti_attr_ints(attrs, attr_count, "axes", &axes);
    unsigned mask = count == 0 ? ~0u : 0;
    for (int i = 0; i < count; i++)
        mask |= 1u << (axes[i] < 0 ? axes[i] + rank : axes[i]);
    return mask;
}

static fold_plan plan_of(const tutti_op *op, const tutti_attr *attrs, int attr_count,
                         const tutti_type *x, const tutti_type *y)
{
    fold_plan p = {0};
    tutti_cuda_places at = tutti__cuda_dense(x->rank, x->dims);
    unsigned mask = axes_mask(attrs, attr_count, x->rank);
    if (table[entry_of(op->name)].position) {
        int64_t axis = tutti_attr_int(attrs, attr_count, "axis");
        mask = 1u << (axis < 0 ? axis + x->rank : axis);
    }
    if (strcmp(op->name, "sum_like") == 0) {
        mask = 0;
        for (int i = 0; i < x->rank; i++) {
            int of = i - (x->rank - y->rank);
            mask |= (unsigned)(of < 0 || (y->dims[of] == 1 && x->dims[i] != 1)) << i;
        }
    }
    if (strcmp(op->name, "tile_grad") == 0) { /* x is [m0, d0, m1, d1, ..]; the m go */
        for (int i = 0; i < x->rank; i++) {
            add_axis(&p.kept, &p.kept_at, y->dims[i], at.stride[i]);
            add_axis(&p.along, &p.along_at, y->dims[i] > 0 ? x->dims[i] / y->dims[i] : 0,
                     at.stride[i] * y->dims[i]);
        }
        spread_out(&p);
        return p;
    }
    for (int i = 0; i < x->rank; i++)
        if (mask >> i & 1)
            add_axis(&p.along, &p.along_at, x->dims[i], at.stride[i]);
        else
            add_axis(&p.kept, &p.kept_at, x->dims[i], at.stride[i]);
    spread_out(&p);
    return p;
}

static int fold_of(const tutti_op *op, const tutti_attr *attrs, int attr_count)
{
    int fold = table[entry_of(op->name)].fold;
    if (strcmp(op->name, "norm") == 0 && tutti_attr_int(attrs, attr_count, "ord") == 1)
        fold = 8;
    return fold;
}

static bool is_many(const tutti_op *op)
{
    return strcmp(op->name, "square_sum") == 0 || strcmp(op->name, "all_finite") == 0;
}

static tutti_type type_of(const tutti_view *view)
{
    tutti_type type = {.dtype = view->dtype, .rank = view->rank};
    for (int i = 0; i < view->rank; i++)
        type.dims[i] = view->dims[i];
    return type;
}

typedef struct tensors {
    tutti_cu_pointer x[TENSORS];
    int64_t count[TENSORS];
    uint32_t first[TENSORS];
    int number;
} tensors;

/* The part of an input that counts, as attribute `ranges` says. */
static int64_t range_of(const tutti_kernel_call *call, int input, int64_t *ret_first)
{
    const int64_t *ranges;
    int64_t count = tutti__cuda_count(&call->inputs[input]), end = count;
    int listed = tutti_attr_ints(call->attrs, call->attr_count, "ranges", &ranges);
    *ret_first = 0;
    if (listed > 2 * input + 1) {
        *ret_first = ranges[2 * input] < 0 ? 0 : ranges[2 * input];
        end = ranges[2 * input + 1] < count ? ranges[2 * input + 1] : count;
    }
    return end - *ret_first;
}

static tutti_status fold_many(const tutti_cuda_call *c, const char *options)
{
    const tutti_kernel_call *call = c->call;
    int64_t blocks = 0, total = 0, one = 1;
    tutti_cu_pointer partial = tutti__cuda_work(c), y = tutti__cuda_out(c, 0);
    for (int i = 0; i < call->input_count;) {
        tensors all = {.number = 0};
        tutti_cu_pointer to = partial + (uint64_t)(total * STATE_BYTES);
        for (blocks = 0; i < call->input_count && all.number < TENSORS; i++) {
            int64_t first, count = range_of(call, i, &first);
            if (count <= 0)
                continue;
            all.x[all.number] =
                tutti__cuda_in(c, i) + (uint64_t)first * tutti_dtype_size(call->inputs[i].dtype);
            all.count[all.number] = count;
            all.first[all.number++] = (uint32_t)blocks;
            blocks += tutti__cuda_ceil(count, CHUNK);
        }
        TUTTI_TRY(tutti__cuda_start(c, &tutti_cuda_source_fold, "fold_many", blocks, 256,
                                    (void *[]){&all, &to}, "%s", options));
        total += blocks;
    }
    return tutti__cuda_start(c, &tutti_cuda_source_fold, "fold_pieces", 1, 256,
                             (void *[]){&partial, &one, &total, &one, &y}, "%s", options);
}

/* Sums of the columns of a dense matrix of 16 or 32 bits. */
static bool is_columns(const tutti_op *op, const fold_plan *p, const tutti_type *x,
                       tutti_cuda_reduce *ret)
{
    *ret = (tutti_cuda_reduce){.type = x->dtype == TUTTI_F32    ? TUTTI_CUDA_F32
                                       : x->dtype == TUTTI_BF16 ? TUTTI_CUDA_BF16
                                                                : TUTTI_CUDA_F16,
                               .rows = p->count,
                               .width = p->outputs};
    ret->out = ret->type;
    return (x->dtype == TUTTI_F32 || x->dtype == TUTTI_BF16 || x->dtype == TUTTI_F16) &&
           (strcmp(op->name, "sum") == 0 || strcmp(op->name, "sum_like") == 0) &&
           p->kept.rank == 1 && p->along.rank == 1 && p->kept_at.stride[0] == 1 &&
           p->along_at.stride[0] == p->outputs && p->count >= 16 && p->outputs >= 8 &&
           p->outputs < INT32_MAX;
}

/* Rows that lie one after the other, and long. */
static bool is_position(const tutti_op *op, const fold_plan *p)
{
    return table[entry_of(op->name)].position && p->along.rank == 1 && p->along_at.stride[0] == 1 &&
           p->count >= 1024 && p->count < INT32_MAX && p->outputs < INT32_MAX &&
           (p->kept.rank == 0 || (p->kept.rank == 1 && p->kept_at.stride[0] == p->count));
}

static tutti_status positions(const tutti_cuda_call *c, const fold_plan *p)
{
    const tutti_kernel_call *call = c->call;
    int per = 16 / (int)tutti_dtype_size(call->inputs[0].dtype);
    int64_t width = p->count;
    tutti_cu_pointer x = tutti__cuda_in(c, 0), y = tutti__cuda_out(c, 0);
    while (width % per != 0)
        per /= 2;
    return tutti__cuda_start(
        c, &tutti_cuda_source_fold, "position_rows", p->outputs, 256, (void *[]){&x, &width, &y},
        "-DTYPE=%s -DOUT=%s -DFOLD=%d -DLANES=256 -DPER=%d",
        tutti__cuda_dtype(call->inputs[0].dtype), tutti__cuda_dtype(call->outputs[0].dtype),
        fold_of(call->op, call->attrs, call->attr_count), per);
}

static tutti_status fold_run(const tutti_cuda_call *c)
{
    const tutti_kernel_call *call = c->call;
    tutti_type x = type_of(&call->inputs[0]), y = type_of(&call->outputs[0]);
    char options[TUTTI_CUDA_OPTIONS_SIZE];
    fold_plan p = plan_of(call->op, call->attrs, call->attr_count, &x, &y);
    tutti_cuda_reduce columns;
    if (!is_many(call->op) && is_columns(call->op, &p, &x, &columns)) {
        columns.x = tutti__cuda_in(c, 0);
        columns.y = tutti__cuda_out(c, 0);
        columns.workspace = tutti__cuda_work(c);
        return tutti__cuda_reduce_columns(c->on, &columns);
    }
    if (!is_many(call->op) && is_position(call->op, &p))
        return positions(c, &p);
    snprintf(options, sizeof options, "-DTYPE=%s -DOUT=%s -DFOLD=%d -DLANES=%d",
             tutti__cuda_dtype(x.dtype), tutti__cuda_dtype(y.dtype),
             fold_of(call->op, call->attrs, call->attr_count), is_many(call->op) ? 256 : p.lanes);
    if (is_many(call->op))
        return fold_many(c, options);
    tutti_cu_pointer from = tutti__cuda_in(c, 0), to = tutti__cuda_out(c, 0);
    tutti_cu_pointer partial = tutti__cuda_work(c);
    TUTTI_TRY(
        tutti__cuda_start(c, &tutti_cuda_source_fold, "fold",
                          tutti__cuda_ceil(p.outputs * p.pieces * p.lanes, 256), 256,
                          (void *[]){&from, &p.outputs, &p.count, &p.pieces, &p.kept, &p.kept_at,
                                     &p.along, &p.along_at, &p.dense, &to, &partial},
                          "%s", options));
    if (p.pieces == 1)
        return TUTTI_OK;
    return tutti__cuda_start(
        c, &tutti_cuda_source_fold, "fold_pieces", tutti__cuda_ceil(p.outputs * p.lanes, 256), 256,
        (void *[]){&partial, &p.outputs, &p.pieces, &p.count, &to}, "%s", options);
}

static size_t fold_workspace(const tutti_kernel_query *query)
{
    const tutti_infer *node = &query->node;
    int64_t states = 0;
    if (is_many(node->op)) {
        for (int i = 0; i < node->input_count; i++)
            states += tutti__cuda_ceil(tutti__cuda_type_count(&node->inputs[i]), CHUNK);
        return (size_t)states * STATE_BYTES;
    }
    fold_plan p =
        plan_of(node->op, node->attrs, node->attr_count, &node->inputs[0], &node->outputs[0]);
    tutti_cuda_reduce columns;
    if (is_columns(node->op, &p, &node->inputs[0], &columns))
        return tutti__cuda_reduce_workspace(&columns);
    return p.pieces > 1 ? (size_t)(p.outputs * p.pieces) * STATE_BYTES : 0;
}

static bool fold_covers(const tutti_op *op)
{
    return entry_of(op->name) >= 0;
}

/* Several tensors: of one type. */
static int fold_score(const tutti_kernel_query *query)
{
    const tutti_infer *node = &query->node;
    if (!is_many(node->op))
        return 100;
    for (int i = 1; i < node->input_count; i++)
        if (node->inputs[i].dtype != node->inputs[0].dtype)
            return 0;
    return node->input_count > 0 ? 100 : 0;
}

static const char *const variants[] = {"-DTYPE=float -DOUT=float -DFOLD=0 -DLANES=256",
                                       "-DTYPE=bf16 -DOUT=i64 -DFOLD=11 -DLANES=1",
                                       "-DTYPE=bf16 -DOUT=i64 -DFOLD=11 -DLANES=256 -DPER=8",
                                       "-DTYPE=i32 -DOUT=i32 -DFOLD=3 -DLANES=32",
                                       "-DTYPE=double -DOUT=double -DFOLD=10 -DLANES=32",
                                       NULL};

const tutti_cuda_source tutti_cuda_source_fold = {
    .name = "fold",
    .text = &tutti__cuda_text_fold_cu,
    .variants = variants,
};

const tutti_cuda_kernel tutti_cuda_kernel_fold = {
    .name = "fold",
    .version = 1,
    .op = TUTTI_KERNEL_ANY,
    .covers = fold_covers,
    .score = fold_score,
    .workspace = fold_workspace,
    .run = fold_run,
};
