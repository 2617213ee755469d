/* prod_except.c: for each element the product of all others along an axis. */
#include "ops/reduce/reduce.h"

static tutti_status prod_except_infer(tutti_infer *node)
{
    int axis;
    TUTTI_TRY(tutti__shape_floats(node, 0));
    TUTTI_TRY(tutti__rule_axis(node, RULE_INT(node, "axis"), node->inputs[0].rank, &axis));
    return tutti_infer_same(node);
}

/* With e[i] = product of x[j], j != i:
 *   de[i]/dx[k] = product of x[j], j != i, j != k, and 0 for k = i
 * Row i of m is x with 1 at place i, so de[i]/dx[k] = prod_except(m)[i, k] off the diagonal, and
 *   dx[k] = sum over i of de[i] prod_except(m)[i, k] (i != k). */
static tutti_status prod_except_gradient(tutti_gradient_call *node)
{
    tutti_sym x = node->inputs[0];
    int rank = tutti_sym_type(x).rank, axis = tutti__axis_of(RULE_INT(node, "axis"), rank);
    if (rank >= TUTTI_MAX_RANK)
        return tutti__rule_fail(
            "prod_except", node->name, TUTTI_UNSUPPORTED,
            "the gradient takes one dimension more than these %d of at most %d, for "
            "the second one of tutti_cumprod two more than x has; reshape x to fewer "
            "before",
            rank, TUTTI_MAX_RANK);
    tutti_sym place = tutti_cumsum(tutti_cast(tutti_ones_like(x), TUTTI_I32), axis);
    tutti_sym diagonal =
        tutti_equal(tutti_expand_dims(place, axis), tutti_expand_dims(place, axis + 1));
    tutti_sym row = tutti_expand_dims(x, axis);
    tutti_sym others = tutti_where(diagonal, tutti_ones_like(row), row);
    tutti_sym pairs = tutti_prod_except(others, axis + 1);
    tutti_sym grad = tutti_mul(pairs, tutti_expand_dims(node->output_grads[0], axis + 1));
    node->input_grads[0] =
        tutti_sum(tutti_where(diagonal, tutti_zeros_like(row), grad), .axes = TUTTI_AXES(axis));
    return TUTTI_OK;
}

enum { BLOCKS = 1024 };

/* Elements along the axis, `step` apart from `base` on. */
typedef struct line {
    const tutti_view *x, *y;
    int64_t base, step;
} line;

/* Elements [first, first + count), at least one; before, behind: the products of those before and
 * behind them. Returns that of those before and these. Every result is the product of those before
 * it, taken from the first on, times that of those behind it, taken from the last on, in double,
 * rounded once: blocks (of more blocks, if need be) only save a table of all products. */
static double except(const line *l, int64_t first, int64_t count, double before, double behind)
{
    double rest[BLOCKS + 1]; /* from block b on */
    int64_t size = (count + BLOCKS - 1) / BLOCKS, blocks = (count + size - 1) / size;
    rest[blocks] = behind;
    for (int64_t i = count - 1; i >= 0; i--) {
        int64_t b = i / size;
        double next = (i + 1) % size == 0 || i + 1 == count ? rest[b + 1] : rest[b];
        rest[b] = next * tutti_view_get(l->x, l->base + (first + i) * l->step);
    }
    for (int64_t b = 0; b < blocks; b++) {
        int64_t at = first + b * size, left = first + count - at;
        if (size > 1) {
            before = except(l, at, left < size ? left : size, before, rest[b + 1]);
            continue;
        }
        double x = tutti_view_get(l->x, l->base + at * l->step);
        tutti_view_set(l->y, l->base + at * l->step, before * rest[b + 1]);
        before *= x;
    }
    return before;
}

static tutti_status prod_except_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0];
    tutti_blocks blocks = tutti__blocks(x, tutti__axis_of(RULE_INT(call, "axis"), x->rank));
    for (int64_t outer = 0; outer < blocks.outer && blocks.size > 0; outer++)
        for (int64_t inner = 0; inner < blocks.inner; inner++) {
            line l = {x, &call->outputs[0], outer * blocks.size * blocks.inner + inner,
                      blocks.inner};
            except(&l, 0, blocks.size, 1, 1);
        }
    return TUTTI_OK;
}

static int prod_except_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int axis = tutti__axis_of(RULE_INT(node, "axis"), node->inputs[0].rank);
    return tutti__split_other_axes(node, axis, capacity, ret);
}

extern const tutti_op tutti_op_prod_except;
tutti_sym(tutti_prod_except)(tutti_sym x, int axis)
{
    return TUTTI_NARY(&tutti_op_prod_except, ((tutti_sym[]){x}), TUTTI_INT("axis", axis));
}

static const tutti_attr_spec attrs[] = {
    {"axis", TUTTI_ATTR_INT, NULL},
    {NULL},
};
static const char *const samples[] = {
    "f32[3,4] | axis=1", "f32[3,2,2] | axis=0", "f32[4]{=0.5,0,2,3} | axis=0",
    "f64[1] | axis=-1",  "f32[2,0] | axis=1",   NULL,
};

const tutti_op tutti_op_prod_except = {
    .struct_size = sizeof(tutti_op),
    .name = "prod_except",
    .version = 2,
    .doc = "prod_except(x; axis): y[i] = product of all x[j] along the axis with j != i",
    .category = "reduction",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .infer = prod_except_infer,
    .gradient = prod_except_gradient,
    .cost = tutti__cost_elementwise,
    .split = prod_except_split,
    .reference = prod_except_reference,
    .samples = samples,
};
