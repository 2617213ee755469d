/* prod.c: the product over axes. */
#include "ops/reduce/reduce.h"

/* dx[i] = dy (product of all others), axis by axis, so that zeros do no harm: with p the product
 * over the first axes, d(prod of p along a)/dp is prod_except(p, a). */
static tutti_status prod_gradient(tutti_gradient_call *node)
{
    tutti_reduce_options keeping = tutti__reduce_keeping(node);
    tutti_sym partial[TUTTI_MAX_RANK] = {node->inputs[0]};
    tutti_sym grad = tutti__reduce_keep(node, node->output_grads[0]);
    int count = keeping.axes.count;
    for (int i = 0; i + 1 < count; i++)
        partial[i + 1] =
            tutti_prod(partial[i], .axes = TUTTI_AXES(keeping.axes.values[i]), .keepdims = true);
    for (int i = count - 1; i >= 0; i--)
        grad = tutti_mul(grad, tutti_prod_except(partial[i], (int)keeping.axes.values[i]));
    node->input_grads[0] = grad;
    return TUTTI_OK;
}

static double prod_step(double so_far, double x)
{
    return so_far * x;
}

/* Integers wrap round. */
static int64_t prod_step_int(int64_t so_far, int64_t x)
{
    return (int64_t)((uint64_t)so_far * (uint64_t)x);
}

static tutti_status prod_reference(const tutti_kernel_call *call)
{
    static const tutti_reduce_fold fold = {1, prod_step, 1, prod_step_int};
    tutti_reduce_plan plan = tutti__reduce_plan_of(call);
    tutti__reduce_fold(&call->inputs[0], &call->outputs[0], &plan, &fold);
    return TUTTI_OK;
}

static int prod_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__reduce_split(node, TUTTI_PARTIAL_PROD, capacity, ret);
}

extern const tutti_op tutti_op_prod;
tutti_sym tutti_prod_with(tutti_sym x, const tutti_reduce_options *options)
{
    return tutti__reduce_build(&tutti_op_prod, x, options);
}

static const tutti_attr_spec attrs[] = {
    TUTTI_REDUCE_ATTRS,
    {NULL},
};
static const char *const samples[] = {
    "f32[3,4]",
    "f32[4,3,5] | axes=[1]",
    "f32[3,5] | axes=[-1,0] keepdims=true",
    "i32[4,3] | axes=[0]",
    "f64[]",
    "f32[3,0] | axes=[1]",
    "f32[3]{=0.5,0,2}",
    "f32[2,2]{=0,3,0,2} | axes=[1]",
    NULL,
};

const tutti_op tutti_op_prod = {
    .struct_size = sizeof(tutti_op),
    .name = "prod",
    .version = 1,
    .doc = "prod(x; axes, keepdims): y = product of x over the axes",
    .category = "reduction",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .infer = tutti__reduce_numbers,
    .gradient = prod_gradient,
    .cost = tutti__reduce_cost,
    .split = prod_split,
    .reference = prod_reference,
    .samples = samples,
};
