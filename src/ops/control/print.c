/* print.c: y = x, and x's text to the log. */
#include "base/log.h"
#include "ops/state/state.h"

static tutti_status print_reference(const tutti_kernel_call *call)
{
    tutti_text text = {0};
    const char *message = RULE_STRING(call, "message");
    tutti__text_add(&text, "%s%s", message[0] ? message : call->name, ": ");
    tutti__view_text(&call->inputs[0], 64, &text);
    if (!text.failed)
        tutti__log(TUTTI_LOG_INFO, "%s", text.data);
    tutti__text_free(&text);
    return tutti__reference_copy(call);
}

static const tutti_attr_spec attrs[] = {
    {"message", TUTTI_ATTR_STRING, ""},
    {0},
};

static const char *const samples[] = {
    "f32[2,3] | message=x",
    "i64[]",
    "string[2]",
    NULL,
};

extern const tutti_op tutti_op_print;

tutti_sym(tutti_print)(tutti_sym x, const char *message)
{
    tutti_attr given = TUTTI_STR("message", message ? message : "");
    return tutti__nary(&tutti_op_print, 1, &x, 1, &given);
}

const tutti_op tutti_op_print = {
    .struct_size = sizeof(tutti_op),
    .name = "print",
    .version = 1,
    .doc = "print(x): y = x, logged with the message",
    .category = "control",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_STATEFUL | TUTTI_OP_HOST,
    .attrs = attrs,
    .infer = tutti_infer_same,
    .gradient = tutti__gradient_pass,
    .cost = tutti__cost_move,
    .reference = print_reference,
    .samples = samples,
};
