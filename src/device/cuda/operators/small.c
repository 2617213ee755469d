/* small.c: see small.cu: shape, size, assign_add, assign_sub, quantize_linear, dequantize_linear,
 * random_categorical; and what does nothing. */
#include <string.h>

#include "device/cuda/kernels/common.h"
#include "device/cuda/operators/operator.h"
#include "tables/cuda_texts.h"

typedef struct numbers {
    int64_t at[TUTTI_MAX_RANK];
} numbers;

typedef struct quantum {
    int64_t size, inner, step, per_outer, per_axis;
} quantum;

static int64_t attr_int(const tutti_cuda_call *c, const char *name)
{
    return tutti_attr_int(c->call->attrs, c->call->attr_count, name);
}

/* Of the shape of input 0, which is no data. */
static tutti_status sizes(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0], *y = &c->call->outputs[0];
    numbers n = {{1}};
    int count = 1;
    const int64_t *axes;
    tutti_cu_pointer to = tutti__cuda_out(c, 0);
    if (strcmp(c->call->op->name, "shape") == 0) {
        count = x->rank;
        for (int i = 0; i < count; i++)
            n.at[i] = x->dims[i];
    } else {
        int named = tutti_attr_ints(c->call->attrs, c->call->attr_count, "axes", &axes);
        for (int i = 0; i < (named ? named : x->rank); i++)
            n.at[0] *= x->dims[!named ? i : axes[i] < 0 ? axes[i] + x->rank : axes[i]];
    }
    return tutti__cuda_start(c, &tutti_cuda_source_small, "given_numbers", count > 0, 32,
                             (void *[]){&n, &count, &to}, "-DTYPE=%s", tutti__cuda_dtype(y->dtype));
}

static tutti_status assign_moved(const tutti_cuda_call *c)
{
    const tutti_view *v = &c->call->inputs[0];
    int64_t count = tutti__cuda_count(v);
    int sign = strcmp(c->call->op->name, "assign_add") == 0 ? 1 : -1;
    tutti_cu_pointer to = tutti__cuda_in(c, 0), x = tutti__cuda_in(c, 1), y = tutti__cuda_out(c, 0);
    return tutti__cuda_start(c, &tutti_cuda_source_small, "assign_moved", tutti__cuda_blocks(count),
                             256, (void *[]){&to, &x, &count, &sign, &y}, "-DTYPE=%s",
                             tutti__cuda_dtype(v->dtype));
}

static tutti_status assign_slice(const tutti_cuda_call *c)
{
    const tutti_view *v = &c->call->inputs[0], *x = &c->call->inputs[1];
    int64_t axis = attr_int(c, "axis"), n[3];
    tutti_cu_pointer to = tutti__cuda_in(c, 0), from = tutti__cuda_in(c, 1);
    tutti_cu_pointer start = tutti__cuda_in(c, 2), y = tutti__cuda_out(c, 0);
    tutti__cuda_around(v, axis, n);
    int64_t count = x->dims[axis < 0 ? axis + v->rank : axis];
    y = y == to ? 0 : y;
    return tutti__cuda_start(c, &tutti_cuda_source_small, "assign_slice",
                             tutti__cuda_blocks(n[0] * (y ? n[1] : count) * n[2]), 256,
                             (void *[]){&to, &from, &start, &n[0], &n[1], &count, &n[2], &y},
                             "-DTYPE=%s -DOTHER=%s", tutti__cuda_dtype(v->dtype),
                             tutti__cuda_dtype(c->call->inputs[2].dtype));
}

/* As the kernel has it. */
enum { MOVES = 32, MOST_MOVED = 4096 };
typedef struct moves {
    tutti_cu_pointer v[MOVES], x[MOVES], y[MOVES];
    int64_t count[MOVES];
    int sign[MOVES];
} moves;

static bool is_move(const tutti_cuda_call *c)
{
    return (strcmp(c->call->op->name, "assign_add") == 0 ||
            strcmp(c->call->op->name, "assign_sub") == 0) &&
           tutti__cuda_count(&c->call->inputs[0]) <= MOST_MOVED;
}

static bool small_joins(const tutti_cuda_call *a, const tutti_cuda_call *b)
{
    return is_move(a) && is_move(b) && a->call->inputs[0].dtype == b->call->inputs[0].dtype;
}

static tutti_status small_many(const tutti_cuda_call *calls, int count)
{
    for (int first = 0; first < count; first += MOVES) {
        moves m;
        int number = count - first < MOVES ? count - first : MOVES;
        for (int i = 0; i < number; i++) {
            const tutti_cuda_call *c = &calls[first + i];
            m.v[i] = tutti__cuda_in(c, 0);
            m.x[i] = tutti__cuda_in(c, 1);
            m.y[i] = tutti__cuda_out(c, 0);
            m.count[i] = tutti__cuda_count(&c->call->inputs[0]);
            m.sign[i] = strcmp(c->call->op->name, "assign_add") == 0 ? 1 : -1;
        }
        TUTTI_TRY(tutti__cuda_start(calls, &tutti_cuda_source_small, "assign_moved_many", number,
                                    256, (void *[]){&m}, "-DTYPE=%s",
                                    tutti__cuda_dtype(calls->call->inputs[0].dtype)));
    }
    return TUTTI_OK;
}

/* One scale for all, for each index along an axis, or for each block of them. */
static quantum quantum_of(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0], *scale = &c->call->inputs[1];
    quantum q = {1, 1, 1, 0, 0};
    int64_t n[3], block = attr_int(c, "block");
    if (tutti__cuda_count(scale) == 1 && block == 0)
        return q;
    tutti__cuda_around(x, attr_int(c, "axis"), n);
    q.size = n[1];
    q.inner = n[2];
    q.step = block > 0 ? block : 1;
    q.per_axis = block > 0 ? n[2] : 1;
    q.per_outer = block > 0 ? tutti__cuda_ceil(n[1], block) * n[2] : 0;
    return q;
}

static tutti_status quantize(const tutti_cuda_call *c)
{
    bool back = c->call->op->name[0] == 'd';
    const tutti_view *x = &c->call->inputs[0], *y = &c->call->outputs[0];
    int64_t count = tutti__cuda_count(x);
    quantum q = quantum_of(c);
    tutti_cu_pointer from = tutti__cuda_in(c, 0), scale = tutti__cuda_in(c, 1);
    tutti_cu_pointer zero = c->call->input_count > 2 ? tutti__cuda_in(c, 2) : 0;
    tutti_cu_pointer to = tutti__cuda_out(c, 0);
    return tutti__cuda_start(
        c, &tutti_cuda_source_small, back ? "dequantize" : "quantize", tutti__cuda_blocks(count),
        256, (void *[]){&from, &scale, &zero, &count, &q, &to}, "-DTYPE=%s -DOTHER=%s",
        tutti__cuda_dtype((back ? y : x)->dtype), tutti__cuda_dtype((back ? x : y)->dtype));
}

static tutti_status categorical(const tutti_cuda_call *c)
{
    const tutti_view *logits = &c->call->inputs[1], *y = &c->call->outputs[0];
    uint64_t seed = tutti__hash_mix((uint64_t)attr_int(c, "seed"), (uint64_t)attr_int(c, "salt"));
    int64_t batch = logits->dims[0], classes = logits->dims[1], n = y->dims[1];
    tutti_cu_pointer counter = tutti__cuda_in(c, 0), x = tutti__cuda_in(c, 1);
    tutti_cu_pointer to = tutti__cuda_out(c, 0), fault = c->fault;
    const int64_t *dims, *first;
    int64_t whole = n, start = 0; /* columns of the whole tensor, the piece's first element there */
    if (tutti_attr_ints(c->call->attrs, c->call->attr_count, "global_dims", &dims) == 2 &&
        tutti_attr_ints(c->call->attrs, c->call->attr_count, "start", &first) == 2) {
        whole = dims[1];
        start = first[0] * whole + first[1];
    }
    return tutti__cuda_start(
        c, &tutti_cuda_source_small, "categorical", tutti__cuda_ceil(batch * n, 128), 128,
        (void *[]){&seed, &counter, &x, &batch, &classes, &n, &whole, &start, &to, &fault},
        "-DTYPE=%s -DOTHER=%s", tutti__cuda_dtype(logits->dtype), tutti__cuda_dtype(y->dtype));
}

static tutti_status nothing(const tutti_cuda_call *c)
{
    (void)c;
    return TUTTI_OK;
}

static const struct {
    const char *op;
    tutti_status (*run)(const tutti_cuda_call *c);
} table[] = {
    {"shape", sizes},
    {"size", sizes},
    {"assign_add", assign_moved},
    {"assign_sub", assign_moved},
    {"assign_slice", assign_slice},
    {"quantize_linear", quantize},
    {"dequantize_linear", quantize},
    {"random_categorical", categorical},
    {"group", nothing},
    {"no_op", nothing},
};

static int entry_of(const char *op)
{
    for (size_t i = 0; i < TUTTI_COUNT(table); i++)
        if (strcmp(table[i].op, op) == 0)
            return (int)i;
    return -1;
}

static bool small_covers(const tutti_op *op)
{
    return entry_of(op->name) >= 0;
}

/* Quantised in the scale's type. */
static int small_score(const tutti_kernel_query *query)
{
    const tutti_infer *node = &query->node;
    if (strcmp(node->op->name, "quantize_linear") == 0)
        return node->inputs[0].dtype == TUTTI_F32 && node->inputs[1].dtype == TUTTI_F32 ? 100 : 0;
    if (strcmp(node->op->name, "dequantize_linear") == 0)
        return node->inputs[1].dtype == TUTTI_F32 || node->inputs[1].dtype == TUTTI_F64 ? 100 : 0;
    if (strcmp(node->op->name, "random_categorical") == 0)
        return node->inputs[0].dtype == TUTTI_I64 ? 100 : 0;
    return 100;
}

static tutti_status small_run(const tutti_cuda_call *c)
{
    return table[entry_of(c->call->op->name)].run(c);
}

static const char *const variants[] = {"-DTYPE=i64", "-DTYPE=float -DOTHER=u8",
                                       "-DTYPE=bf16 -DOTHER=i8", NULL};

const tutti_cuda_source tutti_cuda_source_small = {
    .name = "small",
    .text = &tutti__cuda_text_small_cu,
    .variants = variants,
};

const tutti_cuda_kernel tutti_cuda_kernel_small = {
    .name = "small",
    .version = 1,
    .op = TUTTI_KERNEL_ANY,
    .covers = small_covers,
    .score = small_score,
    .run = small_run,
    .joins = small_joins,
    .run_many = small_many,
};
