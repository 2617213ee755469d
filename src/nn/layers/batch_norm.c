/* batch_norm.c: each channel with mean 0 and variance 1 over the batch. */
#include "nn/layers/common.h"

/* gamma, beta, or ones and zeros in their place; f32, because batches' moments need it. */
static tutti_sym factor(tutti_layer_call *call, bool absent, const char *name, double fixed,
                        int64_t channels, tutti_weight_options options)
{
    options.struct_size = sizeof options;
    options.full_precision = true;
    return absent ? tutti__layer_full(call, TUTTI_F32, fixed, channels)
                  : tutti_weight_with(call, name, TUTTI_TYPE(TUTTI_F32, channels), &options);
}

/* m = m - (1 - momentum) (m - value) */
static void move(tutti_layer_call *call, tutti_sym state, tutti_sym value, double momentum)
{
    tutti_sym step = tutti_mul(tutti_sub(tutti_read(state), value), 1 - momentum);
    tutti_layer_update(call, tutti_assign_sub(state, tutti_stop_gradient(step)));
}

static tutti_sym batch_norm_call(tutti_layer_call *call)
{
    const tutti_batch_norm_settings *s = call->settings;
    tutti_type type = tutti_sym_type(call->inputs[0]);
    double epsilon = tutti__number_or(s->epsilon, 1e-3);
    double momentum = tutti__number_or(s->momentum, 0.99);
    if (type.rank < 2 || !tutti__layer_takes(call, type.rank, "[batch, …, channels]"))
        return tutti_layer_fail(call, "takes floats [batch, …, channels]");
    if (!(momentum > 0 && momentum < 1))
        return tutti_layer_fail(call, "the momentum is between 0 and 1, not %g", momentum);
    int64_t channels = type.dims[type.rank - 1];
    tutti_sym gamma =
        factor(call, s->no_scale, "gamma", 1, channels,
               (tutti_weight_options){.initializer = tutti__text_or(s->gamma_initializer, "ones"),
                                      .regularizer = s->gamma_regularizer,
                                      .constraint = s->gamma_constraint,
                                      .sharding = "channels"});
    tutti_sym beta =
        factor(call, s->no_center, "beta", 0, channels,
               (tutti_weight_options){.initializer = tutti__text_or(s->beta_initializer, "zeros"),
                                      .regularizer = s->beta_regularizer,
                                      .constraint = s->beta_constraint,
                                      .sharding = "channels"});
    tutti_type vector = TUTTI_TYPE(TUTTI_F32, channels);
    tutti_sym mean =
        tutti_layer_state(call, "moving_mean", vector,
                          .initializer = tutti__text_or(s->moving_mean_initializer, "zeros"));
    tutti_sym variance =
        tutti_layer_state(call, "moving_variance", vector,
                          .initializer = tutti__text_or(s->moving_variance_initializer, "ones"));
    tutti_sym x =
        type.dtype == TUTTI_F32 ? call->inputs[0] : tutti_cast(call->inputs[0], TUTTI_F32);
    tutti_sym y;
    if (!tutti__layer_frozen(call, "moving_mean") && call->training) {
        y = tutti_nn_batch_norm(x, gamma, beta, .epsilon = epsilon);
        move(call, mean, tutti_sym_output(y, 1), momentum);
        move(call, variance, tutti_sym_output(y, 2), momentum);
    } else {
        y = tutti_nn_batch_norm_inference(x, gamma, beta, mean, variance, .epsilon = epsilon);
    }
    return type.dtype == TUTTI_F32 ? y : tutti_cast(y, type.dtype);
}

static const tutti_field fields[] = {
    TUTTI_NUMBER_FIELD(tutti_batch_norm_settings, momentum),
    TUTTI_NUMBER_FIELD(tutti_batch_norm_settings, epsilon),
    TUTTI_FLAG_FIELD(tutti_batch_norm_settings, no_center),
    TUTTI_FLAG_FIELD(tutti_batch_norm_settings, no_scale),
    TUTTI_TEXT_FIELD(tutti_batch_norm_settings, beta_initializer),
    TUTTI_TEXT_FIELD(tutti_batch_norm_settings, gamma_initializer),
    TUTTI_TEXT_FIELD(tutti_batch_norm_settings, moving_mean_initializer),
    TUTTI_TEXT_FIELD(tutti_batch_norm_settings, moving_variance_initializer),
    TUTTI_TEXT_FIELD(tutti_batch_norm_settings, beta_regularizer),
    TUTTI_TEXT_FIELD(tutti_batch_norm_settings, gamma_regularizer),
    TUTTI_TEXT_FIELD(tutti_batch_norm_settings, beta_constraint),
    TUTTI_TEXT_FIELD(tutti_batch_norm_settings, gamma_constraint),
    {0},
};

const tutti_layer_kind tutti_layer_batch_norm = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "batch_norm",
    .doc =
        "batch_norm(): y = (x - mean) / sqrt(variance + epsilon) gamma + beta over the batch; moving averages when not training",
    .settings_size = sizeof(tutti_batch_norm_settings),
    .fields = fields,
    .flags = TUTTI_LAYER_KEEPS_MASK | TUTTI_LAYER_EACH_STEP,
    .call = batch_norm_call,
};
