/* multi_head_attention.c: softmax(q k^T / sqrt(key_dim)) v by heads. */
#include "nn/layers/common.h"

static bool multi_head_attention_check(tutti_layer_call *call)
{
    char text[TUTTI_TYPE_TEXT];
    for (int i = 0; i < call->input_count && i < 3; i++) {
        tutti_type type = tutti_sym_type(call->inputs[i]);
        if (type.rank == 3 && tutti_dtype_is_float(type.dtype) && type.dims[2] >= 0)
            continue;
        tutti_layer_fail(call,
                         "takes " TUTTI_SEQUENCES " of floats with known features; input %d "
                         "is %s",
                         i, tutti_type_text(&type, text));
        return false;
    }
    if (call->input_count < 4)
        return true;
    tutti_type mask = tutti_sym_type(call->inputs[3]);
    if (mask.rank == 3 && mask.dtype == TUTTI_BOOL)
        return true;
    tutti_layer_fail(call, "the mask is bool [batch, queries, keys], not %s",
                     tutti_type_text(&mask, text));
    return false;
}

static tutti_sym multi_head_attention_call(tutti_layer_call *call)
{
    const tutti_multi_head_attention_settings *s = call->settings;
    int value = call->input_count > 1 ? 1 : 0, key = call->input_count > 2 ? 2 : value;
    if (!multi_head_attention_check(call))
        return TUTTI_NO_SYM;
    tutti_heads heads = {.prefix = "",
                         .query = call->inputs[0],
                         .value = call->inputs[value],
                         .key = call->inputs[key],
                         .hidden = {tutti__layer_mask(call, value),
                                    key != value ? tutti__layer_mask(call, key) : TUTTI_NO_SYM,
                                    call->input_count > 3 ? call->inputs[3] : TUTTI_NO_SYM},
                         .output_dim = s->output_dim > 0 ? s->output_dim
                                                         : tutti_sym_type(call->inputs[0]).dims[2]};
    return tutti__layer_attention(call, &heads, s);
}

static const tutti_field fields[] = {
    TUTTI_INT_FIELD(tutti_multi_head_attention_settings, num_heads),
    TUTTI_INT_FIELD(tutti_multi_head_attention_settings, key_dim),
    TUTTI_INT_FIELD(tutti_multi_head_attention_settings, value_dim),
    TUTTI_INT_FIELD(tutti_multi_head_attention_settings, output_dim),
    TUTTI_FLAG_FIELD(tutti_multi_head_attention_settings, use_causal_mask),
    TUTTI_FLAG_FIELD(tutti_multi_head_attention_settings, no_bias),
    TUTTI_TEXT_FIELD(tutti_multi_head_attention_settings, kernel_initializer),
    TUTTI_TEXT_FIELD(tutti_multi_head_attention_settings, bias_initializer),
    TUTTI_TEXT_FIELD(tutti_multi_head_attention_settings, kernel_regularizer),
    TUTTI_TEXT_FIELD(tutti_multi_head_attention_settings, bias_regularizer),
    TUTTI_TEXT_FIELD(tutti_multi_head_attention_settings, kernel_constraint),
    TUTTI_TEXT_FIELD(tutti_multi_head_attention_settings, bias_constraint),
    TUTTI_FLAG_FIELD(tutti_multi_head_attention_settings, fused_qkv),
    TUTTI_TEXT_FIELD(tutti_multi_head_attention_settings, output_initializer),
    {0},
};

const tutti_layer_kind tutti_layer_multi_head_attention = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "multi_head_attention",
    .doc =
        "multi_head_attention(num_heads, key_dim): softmax(q k^T / sqrt(key_dim)) v by heads, of query, value, key",
    .settings_size = sizeof(tutti_multi_head_attention_settings),
    .fields = fields,
    .min_inputs = 1,
    .max_inputs = 4,
    .flags = TUTTI_LAYER_KEEPS_MASK | TUTTI_LAYER_EACH_STEP,
    .call = multi_head_attention_call,
};
