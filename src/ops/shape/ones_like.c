/* ones_like.c: ones in the shape of another tensor. */
#include "ops/shape/rule.h"

static tutti_status ones_like_infer(tutti_infer *node)
{
    if (node->inputs[0].dtype == TUTTI_STRING)
        return RULE_FAIL(node, TUTTI_INVALID, "input holds strings, needs numbers or bools");
    return tutti_infer_same(node);
}

static tutti_status ones_like_reference(const tutti_kernel_call *call)
{
    tutti__fill_view(&call->outputs[0], 1);
    return TUTTI_OK;
}

static int ones_like_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__split_other_axes(node, -1, capacity, ret);
}

extern const tutti_op tutti_op_ones_like;
tutti_sym(tutti_ones_like)(tutti_sym x)
{
    return tutti__unary(&tutti_op_ones_like, x);
}

static const char *const samples[] = {
    "f32[2,3]", "i32[4]", "f32[0,2]", "bool[3]", NULL,
};

const tutti_op tutti_op_ones_like = {
    .struct_size = sizeof(tutti_op),
    .name = "ones_like",
    .version = 1,
    .doc = "ones_like(x): y = 1, in x's shape and type",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .infer = ones_like_infer,
    .cost = tutti__cost_move,
    .split = ones_like_split,
    .reference = ones_like_reference,
    .samples = samples,
};
