/* any.c: whether some element is true. */
#include "ops/reduce/reduce.h"

static int64_t any_step_int(int64_t so_far, int64_t x)
{
    return so_far || x;
}

static tutti_status any_reference(const tutti_kernel_call *call)
{
    static const tutti_reduce_fold fold = {.start_int = 0, .step_int = any_step_int};
    tutti_reduce_plan plan = tutti__reduce_plan_of(call);
    tutti__reduce_fold(&call->inputs[0], &call->outputs[0], &plan, &fold);
    return TUTTI_OK;
}

static int any_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__reduce_split(node, TUTTI_PARTIAL_MAX, capacity, ret);
}

extern const tutti_op tutti_op_any;
tutti_sym tutti_any_with(tutti_sym x, const tutti_reduce_options *options)
{
    return tutti__reduce_build(&tutti_op_any, x, options);
}

static const tutti_attr_spec attrs[] = {
    TUTTI_REDUCE_ATTRS,
    {NULL},
};
static const char *const samples[] = {
    "bool[3,4] | axes=[1]", "bool[5]", "bool[4,3,2] | axes=[0,2] keepdims=true",
    "bool[2,0] | axes=[1]", "bool[]",  NULL,
};

const tutti_op tutti_op_any = {
    .struct_size = sizeof(tutti_op),
    .name = "any",
    .version = 1,
    .doc = "any(x; axes, keepdims): y = logical or of x over the axes",
    .category = "reduction",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = tutti__reduce_bools,
    .cost = tutti__reduce_cost,
    .split = any_split,
    .reference = any_reference,
    .samples = samples,
};
