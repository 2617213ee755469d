/* group_norm.c: groups of channels of an example with mean 0 and variance 1. */
#include "nn/layers/norm.h"

static tutti_sym group_norm_call(tutti_layer_call *call)
{
    const tutti_norm_settings *s = call->settings;
    tutti_type type = tutti_sym_type(call->inputs[0]);
    if (type.rank < 2 || !tutti__layer_takes(call, type.rank, "[batch, …, channels]"))
        return tutti_layer_fail(call, "takes floats [batch, …, channels]");
    if (!tutti__layer_knows(call, type.rank - 1))
        return TUTTI_NO_SYM;
    int64_t channels = type.dims[type.rank - 1];
    int64_t groups = s->groups == 0 ? 32 : s->groups == -1 ? channels : s->groups;
    if (groups < 1 || channels % groups)
        return tutti_layer_fail(call, "%lld channels cannot be cut into %lld groups",
                                (long long)channels, (long long)groups);
    tutti_sym gamma = tutti__norm_factor(call, true, "channels"),
              beta = tutti__norm_factor(call, false, "channels");
    return tutti_nn_group_norm(call->inputs[0], gamma, beta, groups,
                               .epsilon = tutti__number_or(s->epsilon, 1e-3));
}

const tutti_layer_kind tutti_layer_group_norm = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "group_norm",
    .doc =
        "group_norm(groups): y = (x - mean) / sqrt(variance + epsilon) gamma + beta over each group of channels",
    .settings_size = sizeof(tutti_norm_settings),
    .fields = tutti__norm_fields,
    .flags = TUTTI_LAYER_KEEPS_MASK,
    .call = group_norm_call,
};
