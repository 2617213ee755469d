/* dot.c: products of two inputs summed along one axis of each. */
#include "nn/layers/common.h"

/* Axis of input i behind the batch; 0 after a mistake. */
static int axis_of(tutti_layer_call *call, int i)
{
    const tutti_dot_settings *s = call->settings;
    tutti_type type = tutti_sym_type(call->inputs[i]);
    int64_t axis = s->axes[i] ? s->axes[i] : s->axes[0] ? s->axes[0] : -1;
    int64_t at = axis < 0 ? axis + type.rank : axis;
    char text[TUTTI_TYPE_TEXT];
    if (at >= 1 && at < type.rank)
        return (int)at;
    tutti_layer_fail(call, "axis %lld of input %d, %s, is not behind the batch", (long long)axis, i,
                     tutti_type_text(&type, text));
    return 0;
}

static tutti_sym unit_length(tutti_sym x, int axis)
{
    tutti_sym norm = tutti_norm(x, .axes = TUTTI_AXES(axis), .keepdims = true);
    return tutti_div(x, tutti_maximum(norm, 1e-6));
}

static tutti_sym dot_call(tutti_layer_call *call)
{
    const tutti_dot_settings *s = call->settings;
    tutti_sym inputs[2] = {call->inputs[0], call->inputs[1]};
    char equation[64], result[32] = "b";
    size_t at = 0, end = 1;
    for (int i = 0; i < 2; i++) {
        int rank = tutti_sym_type(inputs[i]).rank, axis = axis_of(call, i);
        if (axis == 0)
            return TUTTI_NO_SYM;
        if (s->normalize)
            inputs[i] = unit_length(inputs[i], axis);
        equation[at++] = 'b';
        for (int k = 1; k < rank; k++) {
            char label = (char)((i == 0 ? 'c' : 'n') + k);
            equation[at++] = k == axis ? 'z' : label;
            if (k != axis)
                result[end++] = label;
        }
        equation[at++] = ',';
    }
    memcpy(equation + at - 1, "->", 2);
    memcpy(equation + at + 1, result, end);
    equation[at + 1 + end] = '\0';
    tutti_sym y = (tutti_einsum)(equation, 2, inputs);
    return end == 1 ? tutti_expand_dims(y, 1) : y;
}

static const tutti_field fields[] = {
    TUTTI_INTS_FIELD(tutti_dot_settings, axes),
    TUTTI_FLAG_FIELD(tutti_dot_settings, normalize),
    {0},
};

const tutti_layer_kind tutti_layer_dot = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "dot",
    .doc = "dot(): products of two inputs summed along one axis of each",
    .settings_size = sizeof(tutti_dot_settings),
    .fields = fields,
    .min_inputs = 2,
    .max_inputs = 2,
    .call = dot_call,
};
