/* lambda.c: the user's function. */
#include "nn/layers/common.h"

static tutti_sym lambda_call(tutti_layer_call *call)
{
    const tutti_lambda_settings *s = call->settings;
    if (!s->fn)
        return tutti_layer_fail(call, "needs a function: tutti_lambda(fn, context)");
    tutti_sym y = s->fn(call->inputs[0], s->context);
    if (!y.node && tutti_graph_check(call->graph) == TUTTI_OK)
        return tutti_layer_fail(call, "the function gave no symbol");
    return y;
}

static const tutti_field fields[] = {
    TUTTI_CODE_FIELD(tutti_lambda_settings, fn),
    TUTTI_CODE_FIELD(tutti_lambda_settings, context),
    {0},
};

const tutti_layer_kind tutti_layer_lambda = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "lambda",
    .doc = "lambda(fn, context): y = fn(x, context)",
    .settings_size = sizeof(tutti_lambda_settings),
    .fields = fields,
    .flags = TUTTI_LAYER_KEEPS_MASK,
    .call = lambda_call,
};
