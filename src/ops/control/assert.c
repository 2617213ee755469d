/* assert.c: a condition that must hold. */
#include <stdlib.h>

#include "ops/state/state.h"

static tutti_status assert_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    if (node->inputs[0].dtype != TUTTI_BOOL)
        return RULE_FAIL(node, TUTTI_INVALID, "the condition is %s, needs bools; compare something",
                         tutti_type_text(&node->inputs[0], text));
    return tutti_infer_same(node);
}

static tutti_status assert_refuse(const tutti_kernel_call *call, int64_t index)
{
    tutti_text text = {0};
    for (int i = 1; i < call->input_count; i++) {
        tutti__text_add(&text, "%s", i > 1 ? ", " : "; data: ");
        tutti__view_text(&call->inputs[i], 16, &text);
    }
    tutti_status status =
        RULE_FAIL(call, TUTTI_CHECK_FAILED, "%s (element %lld of the condition is false)%s",
                  RULE_STRING(call, "message"), (long long)index, text.data ? text.data : "");
    tutti__text_free(&text);
    return status;
}

static tutti_status assert_reference(const tutti_kernel_call *call)
{
    int64_t count = tutti_view_count(&call->inputs[0]);
    for (int64_t i = 0; i < count; i++)
        if (!tutti_view_get_int(&call->inputs[0], i))
            return assert_refuse(call, i);
    return tutti__reference_copy(call);
}

static const tutti_attr_spec attrs[] = {
    {"message", TUTTI_ATTR_STRING, "the assertion failed"},
    {0},
};

static const char *const samples[] = {
    "bool[]{=1}",
    "bool[3]{=1,1,1} f32[2] i64[]",
    NULL,
};

extern const tutti_op tutti_op_assert;

tutti_sym(tutti_assert)(tutti_sym condition, const char *message, int count, const tutti_sym *data)
{
    tutti_sym inputs[17] = {condition};
    tutti_graph *graph = tutti_sym_graph(condition);
    if (count < 0 || count > 16)
        return tutti__poison(graph, TUTTI_INVALID, "assert: takes at most 16 data, not %d", count);
    for (int i = 0; i < count && data; i++)
        inputs[1 + i] = data[i];
    tutti_attr given = TUTTI_STR("message", message ? message : "the assertion failed");
    return tutti__nary(&tutti_op_assert, 1 + count, inputs, 1, &given);
}

const tutti_op tutti_op_assert = {
    .struct_size = sizeof(tutti_op),
    .name = "assert",
    .version = 1,
    .doc = "assert(condition, data...): y = condition; fails where it is false",
    .category = "control",
    .min_inputs = 1,
    .max_inputs = 17,
    .outputs = 1,
    .flags = TUTTI_OP_FALLIBLE | TUTTI_OP_HOST | TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = assert_infer,
    .cost = tutti__cost_move,
    .reference = assert_reference,
    .samples = samples,
};
