/* relu.c: the part above a threshold, up to a maximum. */
#include "nn/layers/common.h"

static tutti_sym relu_call(tutti_layer_call *call)
{
    const tutti_relu_settings *s = call->settings;
    tutti_sym x = call->inputs[0];
    if (s->max_value < 0 || s->negative_slope < 0)
        return tutti_layer_fail(call, "max_value and negative_slope are not negative");
    if (s->threshold == 0 && s->negative_slope == 0 && s->max_value == 0)
        return tutti_relu(x);
    if (s->threshold == 0 && s->negative_slope == 0 && s->max_value == 6)
        return tutti_relu6(x);
    tutti_sym above = tutti_greater_equal(x, s->threshold);
    tutti_sym below = tutti_mul(tutti_add(x, -s->threshold), s->negative_slope);
    tutti_sym y = tutti_where(above, x, below);
    return s->max_value > 0 ? tutti_minimum(y, s->max_value) : y;
}

static const tutti_field fields[] = {
    TUTTI_NUMBER_FIELD(tutti_relu_settings, max_value),
    TUTTI_NUMBER_FIELD(tutti_relu_settings, negative_slope),
    TUTTI_NUMBER_FIELD(tutti_relu_settings, threshold),
    {0},
};

const tutti_layer_kind tutti_layer_relu = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "relu",
    .doc = "relu(): y = min(max_value, x >= threshold ? x : negative_slope (x - threshold))",
    .settings_size = sizeof(tutti_relu_settings),
    .fields = fields,
    .flags = TUTTI_LAYER_KEEPS_MASK | TUTTI_LAYER_EACH_STEP,
    .call = relu_call,
};
