/* range_dynamic.c: equally spaced numbers between scalars that are known only when it runs. */
#include "ops/shape/rule.h"

#include <math.h>

/* How many of start, start + delta, … lie before limit; -1 when that cannot be. Integers exactly.
 */
static int64_t count_ints(int64_t start, int64_t limit, int64_t delta)
{
    if (delta == 0)
        return -1;
    if (delta > 0 ? start >= limit : start <= limit)
        return 0;
    uint64_t way =
        delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    uint64_t size = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta;
    uint64_t count = (way - 1) / size + 1;
    return count > INT64_MAX ? -1 : (int64_t)count;
}

static int64_t count_floats(double start, double limit, double delta)
{
    if (!isfinite(start) || !isfinite(limit) || !isfinite(delta) || delta == 0)
        return -1;
    double count = ceil((limit - start) / delta);
    return count >= 0x1p53 ? -1 : count > 0 ? (int64_t)count : 0;
}

static tutti_status range_dynamic_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    int64_t count = TUTTI_ANY;
    for (int i = 0; i < 3; i++) {
        TUTTI_TRY(tutti__shape_numbers(node, i));
        TUTTI_TRY(tutti__shape_same_dtype(node, i));
        if (node->inputs[i].rank != 0)
            return RULE_FAIL(node, TUTTI_INVALID, "input %d is %s, needs a scalar", i,
                             tutti_type_text(&node->inputs[i], text));
    }
    if (node->values != NULL && node->values[0] && node->values[1] && node->values[2]) {
        tutti_tensor *const *v = node->values;
        count = tutti_dtype_is_int(node->inputs[0].dtype)
                    ? count_ints(tutti_tensor_get_int(v[0], 0), tutti_tensor_get_int(v[1], 0),
                                 tutti_tensor_get_int(v[2], 0))
                    : count_floats(tutti_tensor_get(v[0], 0), tutti_tensor_get(v[1], 0),
                                   tutti_tensor_get(v[2], 0));
    }
    return tutti__shape_output(node, 0, node->inputs[0].dtype, 1, &count);
}

static tutti_status range_dynamic_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = call->inputs;
    bool whole = tutti_dtype_is_int(x[0].dtype);
    double start = tutti_view_get(&x[0], 0), limit = tutti_view_get(&x[1], 0);
    double delta = tutti_view_get(&x[2], 0);
    uint64_t first = (uint64_t)tutti_view_get_int(&x[0], 0),
             step = (uint64_t)tutti_view_get_int(&x[2], 0);
    int64_t count = whole ? count_ints((int64_t)first, tutti_view_get_int(&x[1], 0), (int64_t)step)
                          : count_floats(start, limit, delta);
    if (count < 0)
        return RULE_FAIL(
            call, TUTTI_INVALID,
            "start %g, limit %g, delta %g: all must be finite, delta not 0, and the elements "
            "not too many",
            start, limit, delta);
    TUTTI_TRY(tutti_kernel_call_allocate(call, 0, 1, &count));
    for (int64_t i = 0; i < count; i++) {
        if (whole)
            tutti_view_set_int(&call->outputs[0], i, (int64_t)(first + (uint64_t)i * step));
        else
            tutti_view_set(&call->outputs[0], i, start + (double)i * delta);
    }
    return TUTTI_OK;
}

extern const tutti_op tutti_op_range_dynamic;
tutti_sym(tutti_range_dynamic)(tutti_sym start, tutti_sym limit, tutti_sym delta)
{
    return tutti__nary(&tutti_op_range_dynamic, 3, (tutti_sym[]){start, limit, delta}, 0, NULL);
}

static const char *const samples[] = {
    "i32[]{=0} i32[]{=5} i32[]{=1}",
    "f32[]{=1} f32[]{=0} f32[]{=-0.25}",
    "i64[]{=3} i64[]{=3} i64[]{=2}",
    NULL,
};

const tutti_op tutti_op_range_dynamic = {
    .struct_size = sizeof(tutti_op),
    .name = "range_dynamic",
    .version = 1,
    .doc =
        "range_dynamic(start, limit, delta): y[i] = start + i delta, up to but not including limit",
    .category = "shape",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .flags = TUTTI_OP_DYNAMIC | TUTTI_OP_FALLIBLE,
    .infer = range_dynamic_infer,
    .cost = tutti__cost_move,
    .reference = range_dynamic_reference,
    .samples = samples,
};
