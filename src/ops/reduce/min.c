/* min.c: the smallest element over axes. */
#include "base/extremes.h"
#include "ops/reduce/reduce.h"

#include <math.h>

/* A NaN stays; 0 is larger than -0. */
static double min_step(double so_far, double x)
{
    return tutti__minimum(so_far, x);
}

static int64_t min_step_int(int64_t so_far, int64_t x)
{
    return x < so_far ? x : so_far;
}

/* Over no elements: the highest value of the type. */
static int64_t limit_of(tutti_dtype dtype)
{
    switch (dtype) {
    case TUTTI_I8:
        return INT8_MAX;
    case TUTTI_U8:
        return UINT8_MAX;
    case TUTTI_I32:
        return INT32_MAX;
    default:
        return INT64_MAX;
    }
}

static tutti_status min_reference(const tutti_kernel_call *call)
{
    tutti_reduce_fold fold = {(double)INFINITY, min_step, limit_of(call->inputs[0].dtype),
                              min_step_int};
    tutti_reduce_plan plan = tutti__reduce_plan_of(call);
    tutti__reduce_fold(&call->inputs[0], &call->outputs[0], &plan, &fold);
    return TUTTI_OK;
}

static int min_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__reduce_split(node, TUTTI_PARTIAL_MIN, capacity, ret);
}

extern const tutti_op tutti_op_min;
tutti_sym tutti_min_with(tutti_sym x, const tutti_reduce_options *options)
{
    return tutti__reduce_build(&tutti_op_min, x, options);
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

const tutti_op tutti_op_min = {
    .struct_size = sizeof(tutti_op),
    .name = "min",
    .version = 1,
    .doc = "min(x; axes, keepdims): y = smallest of x over the axes",
    .category = "reduction",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .infer = tutti__reduce_numbers,
    .gradient = tutti__reduce_extreme_gradient,
    .cost = tutti__reduce_cost,
    .split = min_split,
    .reference = min_reference,
    .samples = samples,
};
