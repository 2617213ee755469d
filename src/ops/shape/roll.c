/* roll.c: shifts along an axis; what leaves at one end comes in at the other. */
#include "ops/shape/move.h"

static tutti_status roll_infer(tutti_infer *node)
{
    int axis;
    TUTTI_TRY(tutti__rule_axis(node, RULE_INT(node, "axis"), node->inputs[0].rank, &axis));
    return tutti_infer_same(node);
}

extern const tutti_op tutti_op_roll;
static tutti_status roll_gradient(tutti_gradient_call *node)
{
    int64_t shift = RULE_INT(node, "shift");
    /* -INT64_MIN does not exist, but shifting back by its half twice does the same. */
    tutti_sym grad = node->output_grads[0];
    if (shift == INT64_MIN) {
        shift = INT64_MIN / 2;
        grad = tutti_roll(grad, -shift, (int)RULE_INT(node, "axis"));
    }
    node->input_grads[0] = tutti_roll(grad, -shift, (int)RULE_INT(node, "axis"));
    return TUTTI_OK;
}

static tutti_status roll_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0], *y = &call->outputs[0];
    tutti_blocks blocks = tutti__blocks(x, tutti__axis_of(RULE_INT(call, "axis"), x->rank));
    size_t size = tutti_dtype_size(x->dtype);
    int64_t row = blocks.size * blocks.inner;
    if (row == 0)
        return TUTTI_OK;
    int64_t shift = RULE_INT(call, "shift") % blocks.size;
    int64_t head = (shift < 0 ? shift + blocks.size : shift) * blocks.inner;
    tutti__move_rows(call, size, blocks.outer, row - head, x->data, row, tutti__element(y, head),
                     row);
    tutti__move_rows(call, size, blocks.outer, head, tutti__element(x, row - head), row, y->data,
                     row);
    return TUTTI_OK;
}

static int roll_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int axis = tutti__axis_of(RULE_INT(node, "axis"), node->inputs[0].rank);
    return tutti__split_other_axes(node, axis, capacity, ret);
}

tutti_sym(tutti_roll)(tutti_sym x, int64_t shift, int axis)
{
    return TUTTI_NARY(&tutti_op_roll, ((tutti_sym[]){x}), TUTTI_INT("shift", shift),
                      TUTTI_INT("axis", axis));
}

static const tutti_attr_spec attrs[] = {
    {"shift", TUTTI_ATTR_INT, NULL},
    {"axis", TUTTI_ATTR_INT, NULL},
    {NULL},
};
static const char *const samples[] = {
    "f32[3,5] | shift=2 axis=1",
    "f32[4,3] | shift=-1 axis=0",
    "i32[2,3,2] | shift=7 axis=-2",
    "f32[0,2] | shift=1 axis=0",
    NULL,
};

const tutti_op tutti_op_roll = {
    .struct_size = sizeof(tutti_op),
    .name = "roll",
    .version = 1,
    .doc = "roll(x; shift, axis): y[.., (i + shift) mod n, ..] = x[.., i, ..]",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .infer = roll_infer,
    .gradient = roll_gradient,
    .cost = tutti__cost_move,
    .split = roll_split,
    .reference = roll_reference,
    .samples = samples,
};
