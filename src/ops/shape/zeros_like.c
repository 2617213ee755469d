/* zeros_like.c: zeros in the shape of another tensor. */
#include "ops/shape/rule.h"

static tutti_status zeros_like_reference(const tutti_kernel_call *call)
{
    tutti__fill_view(&call->outputs[0], 0);
    return TUTTI_OK;
}

static int zeros_like_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__split_other_axes(node, -1, capacity, ret);
}

extern const tutti_op tutti_op_zeros_like;
tutti_sym(tutti_zeros_like)(tutti_sym x)
{
    return tutti__unary(&tutti_op_zeros_like, x);
}

static const char *const samples[] = {
    "f32[2,3]", "i32[4]", "f32[0,2]", "bool[3]", NULL,
};

const tutti_op tutti_op_zeros_like = {
    .struct_size = sizeof(tutti_op),
    .name = "zeros_like",
    .version = 1,
    .doc = "zeros_like(x): y = 0, in x's shape and type; strings are empty",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .infer = tutti_infer_same,
    .cost = tutti__cost_move,
    .split = zeros_like_split,
    .reference = zeros_like_reference,
    .samples = samples,
};
