/* transformer_block.c: attention and a small network, each with a residual connection. */
#include "nn/layers/common.h"

#include <stdio.h>

static tutti_sym normalize(tutti_layer_call *call, tutti_sym x, const char *name)
{
    const tutti_transformer_block_settings *s = call->settings;
    tutti_type vector = TUTTI_TYPE(TUTTI_F32, tutti_sym_type(x).dims[2]);
    char gamma[32], beta[32];
    snprintf(gamma, sizeof gamma, "%s/gamma", name);
    snprintf(beta, sizeof beta, "%s/beta", name);
    tutti_sym scale = tutti_weight(call, gamma, vector, .initializer = "ones", .sharding = "embed");
    tutti_sym offset =
        tutti_weight(call, beta, vector, .initializer = "zeros", .sharding = "embed");
    return tutti_nn_layer_norm(x, scale, offset, .epsilon = tutti__number_or(s->epsilon, 1e-5));
}

static tutti_sym attend(tutti_layer_call *call, tutti_sym x)
{
    const tutti_transformer_block_settings *s = call->settings;
    int64_t features = tutti_sym_type(x).dims[2];
    tutti_multi_head_attention_settings inner = {
        .num_heads = s->num_heads,
        .key_dim = s->key_dim > 0 ? s->key_dim : features / s->num_heads,
        .use_causal_mask = s->use_causal_mask,
        .kernel_initializer = s->kernel_initializer,
        .bias_initializer = s->bias_initializer,
        .fused_qkv = s->fused_qkv,
        .output_initializer = s->output_initializer};
    tutti_heads heads = {.prefix = "attention/",
                         .query = x,
                         .value = x,
                         .key = x,
                         .hidden = {call->mask},
                         .output_dim = features};
    tutti_sym y = tutti__layer_attention(call, &heads, &inner);
    return tutti__layer_dropout(call, y, s->dropout, s->seed, "attention");
}

static tutti_sym think(tutti_layer_call *call, tutti_sym x)
{
    const tutti_transformer_block_settings *s = call->settings;
    int64_t features = tutti_sym_type(x).dims[2];
    double units = tutti__number_or(s->mlp_ratio, 4) * (double)features;
    if (!(units >= 1 && units < 1e9))
        return tutti_layer_fail(call, "mlp_ratio %g gives no middle layer", s->mlp_ratio);
    tutti_affine up = {.name = "mlp/up",
                       .units = (int64_t)units,
                       .activation = tutti__text_or(s->activation, "gelu"),
                       .kernel_initializer = s->kernel_initializer,
                       .bias_initializer = s->bias_initializer,
                       .dims = "embed,hidden",
                       .bias_dims = "hidden"};
    tutti_affine down = {.name = "mlp/down",
                         .units = features,
                         .kernel_initializer =
                             tutti__text_or(s->output_initializer, s->kernel_initializer),
                         .bias_initializer = s->bias_initializer,
                         .dims = "hidden,embed",
                         .bias_dims = "embed"};
    tutti_sym y = tutti__layer_affine(call, tutti__layer_affine(call, x, &up), &down);
    return tutti__layer_dropout(call, y, s->dropout, s->seed, "mlp");
}

static tutti_sym transformer_block_call(tutti_layer_call *call)
{
    const tutti_transformer_block_settings *s = call->settings;
    tutti_sym x = call->inputs[0];
    tutti_type type = tutti_sym_type(x);
    if (!tutti__layer_takes(call, 3, TUTTI_SEQUENCES) || !tutti__layer_knows(call, 2))
        return TUTTI_NO_SYM;
    if (s->num_heads < 1 || (s->key_dim <= 0 && type.dims[2] % s->num_heads))
        return tutti_layer_fail(call, "%lld features cannot be cut into %lld heads",
                                (long long)type.dims[2], (long long)s->num_heads);
    if (s->normalize_first) {
        x = tutti_add(x, attend(call, normalize(call, x, "attention_norm")));
        return x.node ? tutti_add(x, think(call, normalize(call, x, "mlp_norm"))) : x;
    }
    x = tutti_add(x, attend(call, x));
    if (!x.node)
        return x;
    x = normalize(call, x, "attention_norm");
    tutti_sym y = tutti_add(x, think(call, x));
    return y.node ? normalize(call, y, "mlp_norm") : y;
}

static const tutti_field fields[] = {
    TUTTI_INT_FIELD(tutti_transformer_block_settings, num_heads),
    TUTTI_INT_FIELD(tutti_transformer_block_settings, key_dim),
    TUTTI_NUMBER_FIELD(tutti_transformer_block_settings, mlp_ratio),
    TUTTI_TEXT_FIELD(tutti_transformer_block_settings, activation),
    TUTTI_NUMBER_FIELD(tutti_transformer_block_settings, dropout),
    TUTTI_INT_FIELD(tutti_transformer_block_settings, seed),
    TUTTI_FLAG_FIELD(tutti_transformer_block_settings, use_causal_mask),
    TUTTI_FLAG_FIELD(tutti_transformer_block_settings, normalize_first),
    TUTTI_NUMBER_FIELD(tutti_transformer_block_settings, epsilon),
    TUTTI_TEXT_FIELD(tutti_transformer_block_settings, kernel_initializer),
    TUTTI_TEXT_FIELD(tutti_transformer_block_settings, bias_initializer),
    TUTTI_FLAG_FIELD(tutti_transformer_block_settings, fused_qkv),
    TUTTI_TEXT_FIELD(tutti_transformer_block_settings, output_initializer),
    {0},
};

const tutti_layer_kind tutti_layer_transformer_block = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "transformer_block",
    .doc = "transformer_block(num_heads): a = norm(x + attention(x)), y = norm(a + mlp(a))",
    .settings_size = sizeof(tutti_transformer_block_settings),
    .fields = fields,
    .flags = TUTTI_LAYER_KEEPS_MASK | TUTTI_LAYER_EACH_STEP,
    .call = transformer_block_call,
};
