/* check_numerics.c: y = x, which must be finite. */
#include <math.h>

#include "ops/state/state.h"

static tutti_status check_numerics_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    if (!tutti_dtype_is_float(node->inputs[0].dtype))
        return RULE_FAIL(node, TUTTI_INVALID, "input is %s, needs floats",
                         tutti_type_text(&node->inputs[0], text));
    return tutti_infer_same(node);
}

/* "element [2,0,5]" for a flat index. */
static void index_text(const tutti_view *view, int64_t index, tutti_text *text)
{
    int64_t at[TUTTI_MAX_RANK] = {0};
    for (int axis = view->rank - 1; axis >= 0; axis--) {
        at[axis] = index % view->dims[axis];
        index /= view->dims[axis];
    }
    for (int axis = 0; axis < view->rank; axis++)
        tutti__text_add(text, "%s%lld", axis ? "," : "element [", (long long)at[axis]);
    tutti__text_add(text, view->rank > 0 ? "]" : "the value");
}

static tutti_status check_numerics_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0];
    int64_t count = tutti_view_count(x);
    for (int64_t i = 0; i < count; i++) {
        double value = tutti_view_get(x, i);
        if (isfinite(value))
            continue;
        tutti_text at = {0};
        const char *message = RULE_STRING(call, "message");
        index_text(x, i, &at);
        value = isnan(value) ? (double)NAN : value; /* its sign says nothing */
        tutti_status status =
            RULE_FAIL(call, TUTTI_CHECK_FAILED, "%s is %g%s%s", at.data ? at.data : "it", value,
                      message[0] ? ": " : "", message);
        tutti__text_free(&at);
        return status;
    }
    return tutti__reference_copy(call);
}

static const tutti_attr_spec attrs[] = {
    {"message", TUTTI_ATTR_STRING, ""},
    {0},
};

static const char *const samples[] = {
    "f32[2,3]", "f64[] | message=loss", "bf16[5]", "f32[0]", NULL,
};

extern const tutti_op tutti_op_check_numerics;

tutti_sym(tutti_check_numerics)(tutti_sym x, const char *message)
{
    tutti_attr given = TUTTI_STR("message", message ? message : "");
    return tutti__nary(&tutti_op_check_numerics, 1, &x, 1, &given);
}

const tutti_op tutti_op_check_numerics = {
    .struct_size = sizeof(tutti_op),
    .name = "check_numerics",
    .version = 1,
    .doc = "check_numerics(x): y = x; fails at the first NaN or infinity",
    .category = "control",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_FALLIBLE,
    .attrs = attrs,
    .infer = check_numerics_infer,
    .gradient = tutti__gradient_pass,
    .cost = tutti__cost_elementwise,
    .split = tutti__split_first,
    .reference = check_numerics_reference,
    .samples = samples,
};
