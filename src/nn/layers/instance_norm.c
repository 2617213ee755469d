/* instance_norm.c: each channel of an example with mean 0 and variance 1. */
#include "nn/layers/norm.h"

static tutti_sym instance_norm_call(tutti_layer_call *call)
{
    const tutti_norm_settings *s = call->settings;
    tutti_type type = tutti_sym_type(call->inputs[0]);
    if (type.rank < 3 || !tutti__layer_takes(call, type.rank, "[batch, …, channels]"))
        return tutti_layer_fail(call, "takes floats [batch, …, channels]");
    if (!tutti__layer_knows(call, type.rank - 1))
        return TUTTI_NO_SYM;
    tutti_sym gamma = tutti__norm_factor(call, true, "channels"),
              beta = tutti__norm_factor(call, false, "channels");
    return tutti_nn_instance_norm(call->inputs[0], gamma, beta,
                                  .epsilon = tutti__number_or(s->epsilon, 1e-3));
}

const tutti_layer_kind tutti_layer_instance_norm = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "instance_norm",
    .doc =
        "instance_norm(): y = (x - mean) / sqrt(variance + epsilon) gamma + beta over each channel "
        "of each example",
    .settings_size = sizeof(tutti_norm_settings),
    .fields = tutti__norm_fields,
    .call = instance_norm_call,
};
