/* dense.c: y = activation(x kernel + bias). */
#include "nn/layers/common.h"

static tutti_sym dense_call(tutti_layer_call *call)
{
    const tutti_dense_settings *s = call->settings;
    tutti_type x = tutti_sym_type(call->inputs[0]);
    if (s->units < 1)
        return tutti_layer_fail(call, "needs at least one unit, not %lld", (long long)s->units);
    if (x.rank < 2 || !tutti_dtype_is_float(x.dtype)) {
        char text[TUTTI_TYPE_TEXT];
        return tutti_layer_fail(call, "takes floats [batch, …, features], the input is %s",
                                tutti_type_text(&x, text));
    }
    tutti_sym kernel =
        tutti_weight(call, "kernel", TUTTI_TYPE(TUTTI_F32, x.dims[x.rank - 1], s->units),
                     .initializer = s->kernel_initializer, .regularizer = s->kernel_regularizer,
                     .constraint = s->kernel_constraint,
                     .sharding = tutti__text_or(s->sharding, "embed,hidden"));
    tutti_sym y = tutti_matmul(call->inputs[0], kernel);
    if (!s->no_bias)
        y = tutti_add(y, tutti_weight(call, "bias", TUTTI_TYPE(TUTTI_F32, s->units),
                                      .initializer = tutti__text_or(s->bias_initializer, "zeros"),
                                      .regularizer = s->bias_regularizer,
                                      .constraint = s->bias_constraint,
                                      .sharding = s->sharding ? NULL : "hidden"));
    return tutti_nn_activation(y, s->activation);
}

static const tutti_field fields[] = {
    TUTTI_INT_FIELD(tutti_dense_settings, units),
    TUTTI_TEXT_FIELD(tutti_dense_settings, activation),
    TUTTI_FLAG_FIELD(tutti_dense_settings, no_bias),
    TUTTI_TEXT_FIELD(tutti_dense_settings, kernel_initializer),
    TUTTI_TEXT_FIELD(tutti_dense_settings, bias_initializer),
    TUTTI_TEXT_FIELD(tutti_dense_settings, kernel_regularizer),
    TUTTI_TEXT_FIELD(tutti_dense_settings, bias_regularizer),
    TUTTI_TEXT_FIELD(tutti_dense_settings, kernel_constraint),
    TUTTI_TEXT_FIELD(tutti_dense_settings, bias_constraint),
    TUTTI_TEXT_FIELD(tutti_dense_settings, sharding),
    {0},
};

const tutti_layer_kind tutti_layer_dense = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "dense",
    .doc = "dense(units): y = activation(x kernel + bias)",
    .settings_size = sizeof(tutti_dense_settings),
    .fields = fields,
    .flags = TUTTI_LAYER_KEEPS_MASK | TUTTI_LAYER_EACH_STEP,
    .call = dense_call,
};
