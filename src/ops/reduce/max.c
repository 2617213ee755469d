/* max.c: the largest element over axes. */
#include "base/extremes.h"
#include "ops/reduce/reduce.h"

#include <math.h>

/* A NaN stays; 0 is larger than -0. */
static double max_step(double so_far, double x)
{
    return tutti__maximum(so_far, x);
}

static int64_t max_step_int(int64_t so_far, int64_t x)
{
    return x > so_far ? x : so_far;
}

/* Over no elements: the lowest value of the type. */
static int64_t limit_of(tutti_dtype dtype)
{
    switch (dtype) {
    case TUTTI_I8:
        return INT8_MIN;
    case TUTTI_U8:
        return 0;
    case TUTTI_I32:
        return INT32_MIN;
    default:
        return INT64_MIN;
    }
}

static tutti_status max_reference(const tutti_kernel_call *call)
{
    tutti_reduce_fold fold = {(double)-INFINITY, max_step, limit_of(call->inputs[0].dtype),
                              max_step_int};
    tutti_reduce_plan plan = tutti__reduce_plan_of(call);
    tutti__reduce_fold(&call->inputs[0], &call->outputs[0], &plan, &fold);
    return TUTTI_OK;
}

static int max_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__reduce_split(node, TUTTI_PARTIAL_MAX, capacity, ret);
}

extern const tutti_op tutti_op_max;
tutti_sym tutti_max_with(tutti_sym x, const tutti_reduce_options *options)
{
    return tutti__reduce_build(&tutti_op_max, x, options);
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
    "u8[3,0] | axes=[1]",
    NULL,
};

const tutti_op tutti_op_max = {
    .struct_size = sizeof(tutti_op),
    .name = "max",
    .version = 1,
    .doc = "max(x; axes, keepdims): y = largest of x over the axes",
    .category = "reduction",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .infer = tutti__reduce_numbers,
    .gradient = tutti__reduce_extreme_gradient,
    .cost = tutti__reduce_cost,
    .split = max_split,
    .reference = max_reference,
    .samples = samples,
};
