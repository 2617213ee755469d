/* variance.c: the mean squared distance from the mean. */
#include "ops/reduce/reduce.h"

/* dx = dy 2 (x - mean) / n; what flows through the mean cancels. */
static tutti_status variance_gradient(tutti_gradient_call *node)
{
    tutti_reduce_options keeping = tutti__reduce_keeping(node);
    tutti_sym distance = tutti_sub(node->inputs[0], tutti_mean_with(node->inputs[0], &keeping));
    tutti_sym grad = tutti__reduce_divide(node, tutti_mul(node->output_grads[0], 2));
    node->input_grads[0] = tutti_mul(tutti__reduce_keep(node, grad), distance);
    return TUTTI_OK;
}

static double variance(const tutti_view *x, int64_t base, const tutti_reduce_axes *axes)
{
    double sum = 0, squares = 0;
    for (int64_t r = 0; r < axes->count; r++)
        sum += tutti_view_get(x, base + tutti__reduce_at(axes, r));
    double mean = sum / (double)axes->count;
    for (int64_t r = 0; r < axes->count; r++) {
        double distance = tutti_view_get(x, base + tutti__reduce_at(axes, r)) - mean;
        squares += distance * distance;
    }
    return squares / (double)axes->count;
}

/* variance = sum((x - mean)^2) / n */
static tutti_status variance_expand(tutti_expansion *node)
{
    tutti_sym mean = tutti__reduce_expand_mean(node, node->inputs[0], true);
    tutti_sym squares = tutti_square(tutti_sub(node->inputs[0], mean));
    node->outputs[0] = tutti__reduce_expand_mean(node, squares, RULE_INT(node, "keepdims") != 0);
    return TUTTI_OK;
}

static tutti_status variance_reference(const tutti_kernel_call *call)
{
    tutti_reduce_plan plan = tutti__reduce_plan_of(call);
    for (int64_t k = 0; k < plan.kept.count; k++)
        tutti_view_set(&call->outputs[0], k,
                       variance(&call->inputs[0], tutti__reduce_at(&plan.kept, k), &plan.reduced));
    return TUTTI_OK;
}

extern const tutti_op tutti_op_variance;
tutti_sym tutti_variance_with(tutti_sym x, const tutti_reduce_options *options)
{
    return tutti__reduce_build(&tutti_op_variance, x, options);
}

static const tutti_attr_spec attrs[] = {
    TUTTI_REDUCE_ATTRS,
    {NULL},
};
static const char *const samples[] = {
    "f32[3,4]",
    "f32[4,3,5] | axes=[1]",
    "f32[3,5] | axes=[-1,0] keepdims=true",
    "f64[5,2] | axes=[0]",
    "f32[]",
    "bf16[3,8] | axes=[1]",
    NULL,
};

const tutti_op tutti_op_variance = {
    .struct_size = sizeof(tutti_op),
    .name = "variance",
    .version = 1,
    .doc = "variance(x; axes, keepdims): y = mean of (x - mean of x)^2 over the axes",
    .category = "reduction",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .infer = tutti__reduce_floats,
    .gradient = variance_gradient,
    .cost = tutti__reduce_cost,
    .split = tutti__reduce_split_kept,
    .expand = variance_expand,
    .reference = variance_reference,
    .samples = samples,
};
