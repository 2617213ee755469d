/* prod_except.c: for each element the product of all others along an axis. */
#include "ops/reduce/reduce.h"

static tutti_status infer(tutti_infer *node)
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
static tutti_status gradient(tutti_gradient *node)
{
    tutti_sym x = node->inputs[0];
    int axis = tutti__axis_of(RULE_INT(node, "axis"), tutti_sym_type(x).rank);
    tutti_sym place = tutti_cumsum(tutti_cast(tutti_ones_like(x), TUTTI_I32), axis);
    tutti_sym diagonal = tutti_equal(tutti_expand_dims(place, axis), tutti_expand_dims(place, axis + 1));
    tutti_sym row = tutti_expand_dims(x, axis);
    tutti_sym others = tutti_where(diagonal, tutti_ones_like(row), row);
    tutti_sym pairs = tutti_prod_except(others, axis + 1);
    tutti_sym grad = tutti_mul(pairs, tutti_expand_dims(node->output_grads[0], axis + 1));
    node->input_grads[0] = tutti_sum(tutti_where(diagonal, tutti_zeros_like(row), grad),
                                     .axes = TUTTI_AXES(axis));
    return TUTTI_OK;
}

/* The product of those before, then of those behind: n^2 steps along an axis of n, rounded once. */
static tutti_status reference(const tutti_call *call)
{
    const tutti_view *x = &call->inputs[0];
    tutti_blocks blocks = tutti__blocks(x, tutti__axis_of(RULE_INT(call, "axis"), x->rank));
    for (int64_t outer = 0; outer < blocks.outer; outer++)
        for (int64_t inner = 0; inner < blocks.inner; inner++) {
            int64_t base = outer * blocks.size * blocks.inner + inner;
            double before = 1;
            for (int64_t i = 0; i < blocks.size; i++) {
                double product = before;
                for (int64_t j = i + 1; j < blocks.size && product != 0; j++)
                    product *= tutti_view_get(x, base + j * blocks.inner);
                tutti_view_set(&call->outputs[0], base + i * blocks.inner, product);
                before *= tutti_view_get(x, base + i * blocks.inner);
            }
        }
    return TUTTI_OK;
}

static int split(const tutti_infer *node, int capacity, tutti_split *ret)
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
    "f32[3,4] | axis=1",
    "f32[3,2,2] | axis=0",
    "f32[4]{=0.5,0,2,3} | axis=0",
    "f64[1] | axis=-1",
    "f32[2,0] | axis=1",
    NULL,
};

const tutti_op tutti_op_prod_except = {
    .struct_size = sizeof(tutti_op),
    .name = "prod_except",
    .version = 1,
    .doc = "prod_except(x; axis): y[i] = product of all x[j] along the axis with j != i",
    .category = "reduction",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .infer = infer,
    .gradient = gradient,
    .cost = tutti__cost_elementwise,
    .split = split,
    .reference = reference,
    .samples = samples,
};
