/* adam_update.c: Adam. */
#include "ops/update/update.h"

/* variable, m, s (variables), gradient, lr f32 [], step i64 [] */
static tutti_status infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__need_float_variable(node, 0));
    TUTTI_TRY(tutti__need_slot(node, 1));
    TUTTI_TRY(tutti__need_slot(node, 2));
    TUTTI_TRY(tutti__need_type(node, 3, &node->inputs[0], "the variable"));
    TUTTI_TRY(tutti__need_scalar(node, 4, TUTTI_F32, "lr"));
    TUTTI_TRY(tutti__need_scalar(node, 5, TUTTI_I64, "step"));
    TUTTI_TRY(tutti__need_adam_attrs(node));
    return tutti_infer_same(node);
}

static tutti_status reference(const tutti_call *call)
{
    const tutti_view *in = call->inputs;
    int64_t count = tutti_view_count(&in[0]);
    tutti_adam adam =
        tutti__adam_make(call, tutti_view_get(&in[4], 0), tutti_view_get_int(&in[5], 0));
    for (int64_t i = 0; i < count; i++)
        tutti__adam_element(&adam, &in[0], &in[1], &in[2], i, tutti_view_get(&in[3], i));
    tutti__view_copy(&call->outputs[0], &in[0]);
    return TUTTI_OK;
}

static void cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_elementwise(node, ret);
    ret->bytes_written *= 3; /* m and s too */
    ret->flops *= 14;
}

static int split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    for (int axis = 0; axis < node->inputs[0].rank && axis < capacity; axis++) {
        int8_t a = (int8_t)axis;
        ret[axis] = (tutti_split){.inputs = {a, a, a, a, TUTTI_WHOLE, TUTTI_WHOLE}, .outputs = {a}};
    }
    return node->inputs[0].rank;
}

static const tutti_attr_spec attrs[] = {TUTTI_ADAM_ATTRS, {0}};

static const char *const samples[] = {
    "&f32[2,3] &f32[2,3] &f32[2,3]{0.1:1} f32[2,3] f32[]{0.1:0.2} i64[]{=1}",
    "&f64[5] &f64[5] &f64[5]{0.1:1} f64[5] f32[]{0.1:0.2} i64[]{=7} | form=torch epsilon=1e-8",
    "&bf16[4] &bf16[4] &bf16[4]{0.1:1} bf16[4] f32[]{0.1:0.2} i64[]{=100} | beta1=0.5 beta2=0.9",
    NULL,
};

extern const tutti_op tutti_op_adam_update;

tutti_sym(tutti_adam_update)(tutti_sym variable, tutti_sym m, tutti_sym s, tutti_sym gradient,
                             tutti_sym lr, tutti_sym step, const tutti_adam_options *options)
{
    tutti_attr given[4];
    tutti_sym inputs[] = {
        variable, m, s, tutti__value_of(gradient), tutti__value_of(lr), tutti__value_of(step),
    };
    tutti__adam_attrs(options, given);
    return tutti__nary(&tutti_op_adam_update, TUTTI_COUNT(inputs), inputs, 4, given);
}

const tutti_op tutti_op_adam_update = {
    .struct_size = sizeof(tutti_op),
    .name = "adam_update",
    .version = 1,
    .doc =
        "adam_update(v, m, s, g, lr, t): m = b1 m + (1-b1) g; s = b2 s + (1-b2) g^2; v = v - lr sqrt(1-b2^t)/(1-b1^t) m/(sqrt(s)+e); y = v",
    .category = "update",
    .min_inputs = 6,
    .max_inputs = 6,
    .outputs = 1,
    .flags = TUTTI_OP_UPDATES | TUTTI_OP_TAKES_HANDLE | TUTTI_OP_STATEFUL,
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .split = split,
    .reference = reference,
    .samples = samples,
};
