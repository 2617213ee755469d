/* sum.c: the sum over axes. */
#include "ops/reduce/reduce.h"

/* Every element adds to one result: dx = dy, repeated. */
static tutti_status sum_gradient(tutti_gradient_call *node)
{
    node->input_grads[0] =
        tutti_broadcast_like(tutti__reduce_keep(node, node->output_grads[0]), node->inputs[0]);
    return TUTTI_OK;
}

static double sum_step(double so_far, double x)
{
    return so_far + x;
}

/* Integers wrap round. */
static int64_t sum_step_int(int64_t so_far, int64_t x)
{
    return (int64_t)((uint64_t)so_far + (uint64_t)x);
}

static tutti_status sum_reference(const tutti_kernel_call *call)
{
    static const tutti_reduce_fold fold = {0, sum_step, 0, sum_step_int};
    tutti_reduce_plan plan = tutti__reduce_plan_of(call);
    tutti__reduce_fold(&call->inputs[0], &call->outputs[0], &plan, &fold);
    return TUTTI_OK;
}

static int sum_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__reduce_split(node, TUTTI_PARTIAL_SUM, capacity, ret);
}

extern const tutti_op tutti_op_sum;
tutti_sym tutti_sum_with(tutti_sym x, const tutti_reduce_options *options)
{
    return tutti__reduce_build(&tutti_op_sum, x, options);
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
    NULL,
};

const tutti_op tutti_op_sum = {
    .struct_size = sizeof(tutti_op),
    .name = "sum",
    .version = 1,
    .doc = "sum(x; axes, keepdims): y = sum of x over the axes",
    .category = "reduction",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_LINEAR,
    .attrs = attrs,
    .infer = tutti__reduce_numbers,
    .gradient = sum_gradient,
    .cost = tutti__reduce_cost,
    .split = sum_split,
    .reference = sum_reference,
    .samples = samples,
};
