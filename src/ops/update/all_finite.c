/* all_finite.c: whether gradients have neither an infinity nor a NaN. */
#include <math.h>

#include "ops/update/update.h"

static tutti_status all_finite_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    for (int i = 0; i < node->input_count; i++) {
        TUTTI_TRY(tutti__need_value(node, i));
        if (!tutti_dtype_is_float(node->inputs[i].dtype))
            return RULE_FAIL(node, TUTTI_INVALID, "input %d is %s, needs floats", i,
                             tutti_type_text(&node->inputs[i], text));
    }
    node->outputs[0] = (tutti_type){.dtype = TUTTI_BOOL};
    return TUTTI_OK;
}

static tutti_status all_finite_reference(const tutti_kernel_call *call)
{
    bool finite = true;
    for (int k = 0; finite && k < call->input_count; k++) {
        int64_t count = tutti_view_count(&call->inputs[k]);
        for (int64_t i = 0; finite && i < count; i++)
            finite = isfinite(tutti_view_get(&call->inputs[k], i));
    }
    tutti_view_set_int(&call->outputs[0], 0, finite);
    return TUTTI_OK;
}

/* Of one input any part: all parts must be finite. */
static int all_finite_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    if (node->input_count != 1)
        return 0;
    for (int axis = 0; axis < node->inputs[0].rank && axis < capacity; axis++)
        ret[axis] = (tutti_split){.inputs = {(int8_t)axis}, .outputs = {TUTTI_PARTIAL_MIN}};
    return node->inputs[0].rank;
}

/* By how many numbers are not finite: counts of parts add up, so that those of all inputs are
 * exchanged at once. */
static tutti_status all_finite_expand(tutti_expansion *node)
{
    tutti_sym count = {0};
    for (int i = 0; i < node->input_count; i++) {
        tutti_sym bad = tutti_logical_not(tutti_is_finite(node->inputs[i]));
        tutti_sym each = tutti_sum(tutti_cast(bad, TUTTI_F32));
        count = i == 0 ? each : tutti_add(count, each);
    }
    node->outputs[0] = tutti_equal(count, 0);
    return TUTTI_OK;
}

static const char *const samples[] = {
    "f32[2,3]", "f32[5] f64[2] bf16[]", "f16[4]", "f32[0]", "f32[3]{=1,3e38,3}", NULL,
};

extern const tutti_op tutti_op_all_finite;

tutti_sym tutti__all_finite(int count, const tutti_sym *xs)
{
    return tutti__nary(&tutti_op_all_finite, count, xs, 0, NULL);
}

const tutti_op tutti_op_all_finite = {
    .struct_size = sizeof(tutti_op),
    .name = "all_finite",
    .version = 1,
    .doc = "all_finite(x...): y = whether every element of every x is finite",
    .category = "update",
    .min_inputs = 1,
    .max_inputs = -1,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .infer = all_finite_infer,
    .cost = tutti__cost_move,
    .split = all_finite_split,
    .expand = all_finite_expand,
    .reference = all_finite_reference,
    .samples = samples,
};
