/* all.c: whether all elements are true. */
#include "ops/reduce/reduce.h"

static int64_t all_step_int(int64_t so_far, int64_t x)
{
    return so_far && x;
}

static tutti_status all_reference(const tutti_kernel_call *call)
{
    static const tutti_reduce_fold fold = {.start_int = 1, .step_int = all_step_int};
    tutti_reduce_plan plan = tutti__reduce_plan_of(call);
    tutti__reduce_fold(&call->inputs[0], &call->outputs[0], &plan, &fold);
    return TUTTI_OK;
}

static int all_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__reduce_split(node, TUTTI_PARTIAL_MIN, capacity, ret);
}

extern const tutti_op tutti_op_all;
tutti_sym tutti_all_with(tutti_sym x, const tutti_reduce_options *options)
{
    return tutti__reduce_build(&tutti_op_all, x, options);
}

static const tutti_attr_spec attrs[] = {
    TUTTI_REDUCE_ATTRS,
    {NULL},
};
static const char *const samples[] = {
    "bool[3,4] | axes=[1]", "bool[5]", "bool[4,3,2] | axes=[0,2] keepdims=true",
    "bool[2,0] | axes=[1]", "bool[]",  NULL,
};

const tutti_op tutti_op_all = {
    .struct_size = sizeof(tutti_op),
    .name = "all",
    .version = 1,
    .doc = "all(x; axes, keepdims): y = logical and of x over the axes",
    .category = "reduction",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = tutti__reduce_bools,
    .cost = tutti__reduce_cost,
    .split = all_split,
    .reference = all_reference,
    .samples = samples,
};
