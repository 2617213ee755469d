/* nonzero.c: where elements are not 0. */
#include "ops/shape/rule.h"

static tutti_status infer(tutti_infer *node)
{
    const tutti_type *x = &node->inputs[0];
    if (x->dtype == TUTTI_STRING)
        return RULE_FAIL(node, TUTTI_INVALID, "x holds strings, needs numbers or bools");
    return tutti__shape_output(node, 0, TUTTI_I64, 2, (int64_t[]){x->rank, TUTTI_ANY});
}

static tutti_status reference(const tutti_call *call)
{
    const tutti_view *x = &call->inputs[0];
    int64_t count = tutti_view_count(x), found = 0, at = 0;
    bool whole = !tutti_dtype_is_float(x->dtype);
    for (int64_t i = 0; i < count; i++)
        found += whole ? tutti_view_get_int(x, i) != 0 : tutti_view_get(x, i) != 0;
    TUTTI_TRY(tutti_call_allocate(call, 0, 2, (int64_t[]){x->rank, found}));
    int64_t *y = call->outputs[0].data;
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i;
        if (whole ? tutti_view_get_int(x, i) == 0 : tutti_view_get(x, i) == 0)
            continue;
        for (int k = x->rank - 1; k >= 0; k--) {
            y[k * found + at] = rest % x->dims[k];
            rest /= x->dims[k];
        }
        at++;
    }
    return TUTTI_OK;
}

extern const tutti_op tutti_op_nonzero;
tutti_sym(tutti_nonzero)(tutti_sym x)
{
    return tutti__nary(&tutti_op_nonzero, 1, (tutti_sym[]){x}, 0, NULL);
}

static const char *const samples[] = {
    "f32[2,3]{=0,1,0,-2,0.5,0}", "bool[2,2,2]", "i32[]{=1}", "i64[0,3]", NULL,
};

const tutti_op tutti_op_nonzero = {
    .struct_size = sizeof(tutti_op),
    .name = "nonzero",
    .version = 1,
    .doc =
        "nonzero(x): i64 [rank, n]: column by column the places where x is not 0, in row-major order",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_DYNAMIC | TUTTI_OP_NO_GRADIENT,
    .infer = infer,
    .cost = tutti__cost_move,
    .reference = reference,
    .samples = samples,
};
