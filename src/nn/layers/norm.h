/* norm.h: the weights of layer_norm and group_norm. */
#ifndef TUTTI_NN_LAYERS_NORM_H
#define TUTTI_NN_LAYERS_NORM_H

#include "nn/layers/common.h"

/* gamma or beta, or ones or zeros in its place; `names`: of its dimension. */
static inline tutti_sym tutti__norm_factor(tutti_layer_call *call, bool scale, const char *names)
{
    const tutti_norm_settings *s = call->settings;
    tutti_type type = tutti_sym_type(call->inputs[0]);
    int64_t size = type.dims[type.rank - 1];
    if (scale ? s->no_scale : s->no_center)
        return tutti__layer_full(call, type.dtype, scale, size);
    if (scale)
        return tutti_weight(call, "gamma", TUTTI_TYPE(TUTTI_F32, size),
                            .initializer = tutti__text_or(s->gamma_initializer, "ones"),
                            .regularizer = s->gamma_regularizer, .constraint = s->gamma_constraint,
                            .sharding = names);
    return tutti_weight(call, "beta", TUTTI_TYPE(TUTTI_F32, size),
                        .initializer = tutti__text_or(s->beta_initializer, "zeros"),
                        .regularizer = s->beta_regularizer, .constraint = s->beta_constraint,
                        .sharding = names);
}

#endif
