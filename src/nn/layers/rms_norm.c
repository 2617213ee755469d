/* rms_norm.c: each row with root mean square 1. */
#include "nn/layers/common.h"

static tutti_sym rms_norm_call(tutti_layer_call *call)
{
    const tutti_norm_settings *s = call->settings;
    tutti_type type = tutti_sym_type(call->inputs[0]);
    if (type.rank < 2 || !tutti__layer_takes(call, type.rank, "[batch, …, features]"))
        return tutti_layer_fail(call, "takes floats [batch, …, features]");
    int64_t size = type.dims[type.rank - 1];
    tutti_sym scale =
        s->no_scale ? tutti__layer_full(call, type.dtype, 1, size)
                    : tutti_weight(call, "scale", TUTTI_TYPE(TUTTI_F32, size),
                                   .initializer = tutti__text_or(s->gamma_initializer, "ones"),
                                   .regularizer = s->gamma_regularizer,
                                   .constraint = s->gamma_constraint, .sharding = "embed");
    return tutti_nn_rms_norm(call->inputs[0], scale, .epsilon = tutti__number_or(s->epsilon, 1e-6));
}

const tutti_layer_kind tutti_layer_rms_norm = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "rms_norm",
    .doc = "rms_norm(): y = x / sqrt(mean(x^2) + epsilon) scale over the last axis",
    .settings_size = sizeof(tutti_norm_settings),
    .fields = tutti__norm_fields,
    .flags = TUTTI_LAYER_KEEPS_MASK | TUTTI_LAYER_EACH_STEP,
    .call = rms_norm_call,
};
