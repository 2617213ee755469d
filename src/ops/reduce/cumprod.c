/* cumprod.c: the running product along an axis. */
#include "ops/reduce/reduce.h"

static tutti_status cumprod_infer(tutti_infer *node)
{
    int axis;
    TUTTI_TRY(tutti__shape_numbers(node, 0));
    TUTTI_TRY(tutti__rule_axis(node, RULE_INT(node, "axis"), node->inputs[0].rank, &axis));
    return tutti_infer_same(node);
}

/* dy[j] / dx[k] is the product of the others that y[j] has: with m[j, i] = x[i] where y[j] has
 * x[i], else 1,
 *   dx[k] = sum over the j whose y[j] has x[k] of dy[j] prod_except(m)[j, k]
 * which is right where elements are 0, for the price of n^2 elements. y[j] has x[i] for i <= j;
 * exclusive: i < j; reverse: the other way round. */
static tutti_status cumprod_gradient(tutti_gradient_call *node)
{
    tutti_sym x = node->inputs[0];
    int rank = tutti_sym_type(x).rank, axis = tutti__axis_of(RULE_INT(node, "axis"), rank);
    if (rank >= TUTTI_MAX_RANK)
        return tutti__rule_fail(
            "cumprod", node->name, TUTTI_UNSUPPORTED,
            "the gradient takes one dimension more than x, which has %d of at most "
            "%d; reshape x to fewer before",
            rank, TUTTI_MAX_RANK);
    bool exclusive = RULE_INT(node, "exclusive") != 0, reverse = RULE_INT(node, "reverse") != 0;
    tutti_sym place = tutti_cumsum(tutti_cast(tutti_ones_like(x), TUTTI_I32), axis);
    tutti_sym i = tutti_expand_dims(place, axis), j = tutti_expand_dims(place, axis + 1);
    tutti_sym low = reverse ? j : i, high = reverse ? i : j;
    tutti_sym has = exclusive ? tutti_less(low, high) : tutti_less_equal(low, high);
    tutti_sym row = tutti_expand_dims(x, axis);
    tutti_sym others = tutti_prod_except(tutti_where(has, row, tutti_ones_like(row)), axis + 1);
    tutti_sym grad = tutti_mul(others, tutti_expand_dims(node->output_grads[0], axis + 1));
    node->input_grads[0] =
        tutti_sum(tutti_where(has, grad, tutti_zeros_like(row)), .axes = TUTTI_AXES(axis));
    return TUTTI_OK;
}

static double cumprod_step(double so_far, double x)
{
    return so_far * x;
}

static int64_t cumprod_step_int(int64_t so_far, int64_t x)
{
    return (int64_t)((uint64_t)so_far * (uint64_t)x);
}

static tutti_status cumprod_reference(const tutti_kernel_call *call)
{
    return tutti__reduce_running(
        call, &(tutti_reduce_fold){
                  .start = 1, .step = cumprod_step, .start_int = 1, .step_int = cumprod_step_int});
}

extern const tutti_op tutti_op_cumprod;
tutti_sym tutti_cumprod_with(tutti_sym x, int axis, const tutti_cumsum_options *options)
{
    RULE_OPTIONS(tutti_cumsum_options, o, options);
    return TUTTI_NARY(&tutti_op_cumprod, ((tutti_sym[]){x}), TUTTI_INT("axis", axis),
                      TUTTI_INT("exclusive", o.exclusive), TUTTI_INT("reverse", o.reverse));
}

static const tutti_attr_spec attrs[] = {
    {"axis", TUTTI_ATTR_INT, "0"},
    {"exclusive", TUTTI_ATTR_INT, "false"},
    {"reverse", TUTTI_ATTR_INT, "false"},
    {NULL},
};
static const char *const samples[] = {
    "f32[3,4] | axis=1",
    "f32[4,2,3] | axis=0 exclusive=true",
    "f64[2,5]{=0.5,0,2,-3,1,1,2,0,0,-1} | axis=-1 reverse=true",
    "f32[3,2]{0.5:2} | axis=0 exclusive=true reverse=true",
    "i32[4,2] | axis=0 exclusive=true reverse=true",
    "f32[2,0] | axis=1",
    NULL,
};

const tutti_op tutti_op_cumprod = {
    .struct_size = sizeof(tutti_op),
    .name = "cumprod",
    .version = 1,
    .doc =
        "cumprod(x; axis, exclusive, reverse): y[i] = x[0] * .. * x[i] along the axis, exclusive without x[i], reverse from the end",
    .category = "reduction",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .infer = cumprod_infer,
    .gradient = cumprod_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti__running_split,
    .reference = cumprod_reference,
    .samples = samples,
};
