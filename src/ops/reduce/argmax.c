/* argmax.c: the position of the first largest element along an axis. */
#include "ops/reduce/reduce.h"

static bool better(double a, double b)
{
    return a > b;
}

static bool better_int(int64_t a, int64_t b)
{
    return a > b;
}

static tutti_status argmax_reference(const tutti_kernel_call *call)
{
    return tutti__reduce_position(call, better, better_int);
}

extern const tutti_op tutti_op_argmax;
tutti_sym(tutti_argmax)(tutti_sym x, int axis)
{
    return TUTTI_NARY(&tutti_op_argmax, ((tutti_sym[]){x}), TUTTI_INT("axis", axis));
}

static const tutti_attr_spec attrs[] = {
    {"axis", TUTTI_ATTR_INT, NULL},
    {NULL},
};
static const char *const samples[] = {
    "f32[3,4] | axis=1", "f32[4,3,2] | axis=0", "i32[5] | axis=-1", "f32[0,3] | axis=1", NULL,
};

const tutti_op tutti_op_argmax = {
    .struct_size = sizeof(tutti_op),
    .name = "argmax",
    .version = 1,
    .doc = "argmax(x; axis): y = the first i for which x[.., i, ..] is largest, as i64",
    .category = "reduction",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = tutti__reduce_position_infer,
    .cost = tutti__reduce_cost,
    .split = tutti__reduce_position_split,
    .expand_on = tutti__argmax_expand_on,
    .reference = argmax_reference,
    .samples = samples,
};
