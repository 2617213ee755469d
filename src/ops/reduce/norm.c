/* norm.c: the length of vectors along axes. */
#include "ops/reduce/reduce.h"

#include <math.h>

static tutti_status norm_infer(tutti_infer *node)
{
    int64_t ord = RULE_INT(node, "ord");
    if (ord != 1 && ord != 2)
        return RULE_FAIL(node, TUTTI_INVALID, "ord is %lld, needs 1 or 2", (long long)ord);
    return tutti__reduce_floats(node);
}

/* ord 1: dx = dy sign(x). ord 2: dx = dy x / y, and 0 where y = 0, which means x = 0. */
static tutti_status norm_gradient(tutti_gradient_call *node)
{
    tutti_sym x = node->inputs[0], grad = tutti__reduce_keep(node, node->output_grads[0]);
    if (RULE_INT(node, "ord") == 1) {
        node->input_grads[0] = tutti_mul(grad, tutti_sign(x));
        return TUTTI_OK;
    }
    tutti_sym y = node->outputs[0];
    tutti_sym divisor = tutti_where(tutti_equal(y, tutti_zeros_like(y)), tutti_ones_like(y), y);
    node->input_grads[0] = tutti_mul(grad, tutti_div(x, tutti__reduce_keep(node, divisor)));
    return TUTTI_OK;
}

static double step_magnitude(double so_far, double x)
{
    return so_far + fabs(x);
}

static double step_square(double so_far, double x)
{
    return so_far + x * x;
}

static tutti_status norm_reference(const tutti_kernel_call *call)
{
    bool euclidean = RULE_INT(call, "ord") == 2;
    double (*step)(double, double) = euclidean ? step_square : step_magnitude;
    tutti_reduce_plan plan = tutti__reduce_plan_of(call);
    for (int64_t k = 0; k < plan.kept.count; k++) {
        int64_t base = tutti__reduce_at(&plan.kept, k);
        double sum = 0;
        for (int64_t r = 0; r < plan.reduced.count; r++)
            sum = step(sum,
                       tutti_view_get(&call->inputs[0], base + tutti__reduce_at(&plan.reduced, r)));
        tutti_view_set(&call->outputs[0], k, euclidean ? sqrt(sum) : sum);
    }
    return TUTTI_OK;
}

/* Magnitudes add up piece by piece, lengths do not. */
static int norm_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int partial = RULE_INT(node, "ord") == 1 ? TUTTI_PARTIAL_SUM : TUTTI_WHOLE;
    return tutti__reduce_split(node, partial, capacity, ret);
}

extern const tutti_op tutti_op_norm;
tutti_sym tutti_norm_with(tutti_sym x, const tutti_norm_options *options)
{
    RULE_OPTIONS(tutti_norm_options, o, options);
    return TUTTI_NARY(&tutti_op_norm, ((tutti_sym[]){x}), tutti__axes_attr("axes", &o.axes),
                      TUTTI_INT("keepdims", o.keepdims), TUTTI_INT("ord", o.ord ? o.ord : 2));
}

static const tutti_attr_spec attrs[] = {
    TUTTI_REDUCE_ATTRS,
    {"ord", TUTTI_ATTR_INT, "2"},
    {NULL},
};
static const char *const samples[] = {
    "f32[3,4]",
    "f32[4,3,5] | axes=[1]",
    "f32[3,5] | axes=[-1,0] keepdims=true",
    "f64[5,2] | axes=[0]",
    "f32[]",
    "bf16[3,8] | axes=[1]",
    "f32[4,3] | axes=[0] ord=1",
    "f32[2,5] | ord=1 keepdims=true",
    "f32[2,0] | axes=[1]",
    NULL,
};

const tutti_op tutti_op_norm = {
    .struct_size = sizeof(tutti_op),
    .name = "norm",
    .version = 1,
    .doc = "norm(x; axes, keepdims, ord): y = sqrt(sum of x^2 over the axes), for ord 1 sum of |x|",
    .category = "reduction",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .infer = norm_infer,
    .gradient = norm_gradient,
    .cost = tutti__reduce_cost,
    .split = norm_split,
    .reference = norm_reference,
    .samples = samples,
};
