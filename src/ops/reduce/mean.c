/* mean.c: the mean over axes. */
#include "ops/reduce/reduce.h"

/* dx = dy / n, repeated; n elements make one result. */
static tutti_status mean_gradient(tutti_gradient_call *node)
{
    tutti_sym grad = tutti__reduce_divide(node, node->output_grads[0]);
    node->input_grads[0] = tutti_broadcast_like(tutti__reduce_keep(node, grad), node->inputs[0]);
    return TUTTI_OK;
}

/* mean = sum / n */
static tutti_status mean_expand(tutti_expansion *node)
{
    node->outputs[0] =
        tutti__reduce_expand_mean(node, node->inputs[0], RULE_INT(node, "keepdims") != 0);
    return TUTTI_OK;
}

static tutti_status mean_reference(const tutti_kernel_call *call)
{
    tutti_reduce_plan plan = tutti__reduce_plan_of(call);
    for (int64_t k = 0; k < plan.kept.count; k++) {
        int64_t base = tutti__reduce_at(&plan.kept, k);
        double sum = 0;
        for (int64_t r = 0; r < plan.reduced.count; r++)
            sum += tutti_view_get(&call->inputs[0], base + tutti__reduce_at(&plan.reduced, r));
        tutti_view_set(&call->outputs[0], k, sum / (double)plan.reduced.count);
    }
    return TUTTI_OK;
}

extern const tutti_op tutti_op_mean;
tutti_sym tutti_mean_with(tutti_sym x, const tutti_reduce_options *options)
{
    return tutti__reduce_build(&tutti_op_mean, x, options);
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

const tutti_op tutti_op_mean = {
    .struct_size = sizeof(tutti_op),
    .name = "mean",
    .version = 1,
    .doc = "mean(x; axes, keepdims): y = sum of x over the axes / number of elements that make one",
    .category = "reduction",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .infer = tutti__reduce_floats,
    .gradient = mean_gradient,
    .cost = tutti__reduce_cost,
    .split = tutti__reduce_split_kept,
    .expand = mean_expand,
    .reference = mean_reference,
    .samples = samples,
};
