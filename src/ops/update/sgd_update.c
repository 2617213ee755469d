/* sgd_update.c: gradient descent. */
#include "ops/update/update.h"

/* variable, gradient, lr f32 [] */
static tutti_status infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__need_float_variable(node, 0));
    TUTTI_TRY(tutti__need_type(node, 1, &node->inputs[0], "the variable"));
    TUTTI_TRY(tutti__need_scalar(node, 2, TUTTI_F32, "lr"));
    return tutti_infer_same(node);
}

static tutti_status reference(const tutti_call *call)
{
    const tutti_view *variable = &call->inputs[0], *gradient = &call->inputs[1];
    double lr = tutti_view_get(&call->inputs[2], 0);
    int64_t count = tutti_view_count(variable);
    for (int64_t i = 0; i < count; i++)
        tutti_view_set(variable, i, tutti_view_get(variable, i) - lr * tutti_view_get(gradient, i));
    tutti__view_copy(&call->outputs[0], variable);
    return TUTTI_OK;
}

static void cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_elementwise(node, ret);
    ret->flops *= 2;
}

static int split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    for (int axis = 0; axis < node->inputs[0].rank && axis < capacity; axis++)
        ret[axis] = (tutti_split){.inputs = {(int8_t)axis, (int8_t)axis, TUTTI_WHOLE},
                                  .outputs = {(int8_t)axis}};
    return node->inputs[0].rank;
}

static const char *const samples[] = {
    "&f32[2,3] f32[2,3] f32[]{0.1:0.2}",
    "&f64[5] f64[5] f32[]{0.1:0.2}",
    "&bf16[4] bf16[4] f32[]{0.1:0.2}",
    "&f32[] f32[] f32[]{0.1:0.2}",
    NULL,
};

extern const tutti_op tutti_op_sgd_update;

tutti_sym(tutti_sgd_update)(tutti_sym variable, tutti_sym gradient, tutti_sym lr)
{
    tutti_sym inputs[] = {variable, tutti__value_of(gradient), tutti__value_of(lr)};
    return tutti__nary(&tutti_op_sgd_update, 3, inputs, 0, NULL);
}

const tutti_op tutti_op_sgd_update = {
    .struct_size = sizeof(tutti_op),
    .name = "sgd_update",
    .version = 1,
    .doc = "sgd_update(v, g, lr): v = v - lr g; y = v",
    .category = "update",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .flags = TUTTI_OP_UPDATES | TUTTI_OP_TAKES_HANDLE | TUTTI_OP_STATEFUL,
    .infer = infer,
    .cost = cost,
    .split = split,
    .reference = reference,
    .samples = samples,
};
