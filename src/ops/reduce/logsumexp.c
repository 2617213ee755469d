/* logsumexp.c: the logarithm of the sum of exponentials, without overflow. */
#include "ops/reduce/reduce.h"

#include <math.h>

/* dx = dy e^(x - y) */
static tutti_status logsumexp_gradient(tutti_gradient_call *node)
{
    tutti_sym y = tutti__reduce_keep(node, node->outputs[0]);
    tutti_sym grad = tutti__reduce_keep(node, node->output_grads[0]);
    node->input_grads[0] = tutti_mul(grad, tutti_exp(tutti_sub(node->inputs[0], y)));
    return TUTTI_OK;
}

/* m + log(sum of e^(x - m)) with m the largest x; an infinite m is the result itself. */
static double logsumexp(const tutti_view *x, int64_t base, const tutti_reduce_axes *axes)
{
    double most = (double)-INFINITY, sum = 0;
    for (int64_t r = 0; r < axes->count; r++) {
        double value = tutti_view_get(x, base + tutti__reduce_at(axes, r));
        most = value > most || isnan(value) ? value : most;
    }
    if (!isfinite(most))
        return most;
    for (int64_t r = 0; r < axes->count; r++)
        sum += exp(tutti_view_get(x, base + tutti__reduce_at(axes, r)) - most);
    return most + log(sum);
}

static tutti_status logsumexp_reference(const tutti_kernel_call *call)
{
    tutti_reduce_plan plan = tutti__reduce_plan_of(call);
    for (int64_t k = 0; k < plan.kept.count; k++)
        tutti_view_set(&call->outputs[0], k,
                       logsumexp(&call->inputs[0], tutti__reduce_at(&plan.kept, k), &plan.reduced));
    return TUTTI_OK;
}

extern const tutti_op tutti_op_logsumexp;
tutti_sym tutti_logsumexp_with(tutti_sym x, const tutti_reduce_options *options)
{
    return tutti__reduce_build(&tutti_op_logsumexp, x, options);
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
    "f32[2,0] | axes=[1]",
    NULL,
};

const tutti_op tutti_op_logsumexp = {
    .struct_size = sizeof(tutti_op),
    .name = "logsumexp",
    .version = 1,
    .doc = "logsumexp(x; axes, keepdims): y = log(sum of e^x over the axes)",
    .category = "reduction",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .infer = tutti__reduce_floats,
    .gradient = logsumexp_gradient,
    .cost = tutti__reduce_cost,
    .split = tutti__reduce_split_kept,
    .reference = logsumexp_reference,
    .samples = samples,
};
