/* layer_norm.c: each row with mean 0 and variance 1. */
#include "nn/layers/norm.h"

static tutti_sym layer_norm_call(tutti_layer_call *call)
{
    const tutti_norm_settings *s = call->settings;
    tutti_type type = tutti_sym_type(call->inputs[0]);
    if (type.rank < 2 || !tutti__layer_takes(call, type.rank, "[batch, …, features]"))
        return tutti_layer_fail(call, "takes floats [batch, …, features]");
    tutti_sym gamma = tutti__norm_factor(call, true, "embed"),
              beta = tutti__norm_factor(call, false, "embed");
    return tutti_nn_layer_norm(call->inputs[0], gamma, beta,
                               .epsilon = tutti__number_or(s->epsilon, 1e-3));
}

const tutti_layer_kind tutti_layer_layer_norm = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "layer_norm",
    .doc =
        "layer_norm(): y = (x - mean) / sqrt(variance + epsilon) gamma + beta over the last axis",
    .settings_size = sizeof(tutti_norm_settings),
    .fields = tutti__norm_fields,
    .flags = TUTTI_LAYER_KEEPS_MASK | TUTTI_LAYER_EACH_STEP,
    .call = layer_norm_call,
};
