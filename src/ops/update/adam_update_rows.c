/* adam_update_rows.c: Adam where the gradient is rows at indices; other rows and their moments
 * rest. */
#include "ops/update/update.h"

/* variable [n, ...], m, s (variables), indices [k...], rows [k..., ...], lr f32 [], step i64 [] */
static tutti_status infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__need_float_variable(node, 0));
    TUTTI_TRY(tutti__need_slot(node, 1));
    TUTTI_TRY(tutti__need_slot(node, 2));
    TUTTI_TRY(tutti__need_rows(node, 0, 3, 4));
    TUTTI_TRY(tutti__need_scalar(node, 5, TUTTI_F32, "lr"));
    TUTTI_TRY(tutti__need_scalar(node, 6, TUTTI_I64, "step"));
    TUTTI_TRY(tutti__need_adam_attrs(node));
    return tutti_infer_same(node);
}

static tutti_status reference(const tutti_call *call)
{
    const tutti_view *in = call->inputs, *rows = &call->inputs[4];
    int64_t size = tutti__row_count(&in[0]);
    tutti_row_groups groups;
    tutti_adam adam =
        tutti__adam_make(call, tutti_view_get(&in[5], 0), tutti_view_get_int(&in[6], 0));
    TUTTI_TRY(tutti__row_groups(call, &in[3], in[0].dims[0], &groups));
    for (int64_t at = 0; at < groups.count; at = tutti__row_groups_next(&groups, at))
        for (int64_t column = 0; column < size; column++)
            tutti__adam_element(&adam, &in[0], &in[1], &in[2], groups.index[at] * size + column,
                                tutti__row_groups_sum(&groups, rows, size, at, column));
    tutti__row_groups_free(&groups);
    tutti__view_copy(&call->outputs[0], &in[0]);
    return TUTTI_OK;
}

static void cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_elementwise(node, ret);
    ret->bytes_written *= 3; /* m and s too */
    ret->flops *= 14;
}

static int split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int ways = 0, shift = node->inputs[3].rank - 1;
    for (int axis = 1; axis < node->inputs[0].rank; axis++, ways++) {
        int8_t a = (int8_t)axis;
        if (ways < capacity)
            ret[ways] = (tutti_split){
                .inputs = {a, a, a, TUTTI_WHOLE, (int8_t)(axis + shift), TUTTI_WHOLE, TUTTI_WHOLE},
                .outputs = {a}};
    }
    return ways;
}

static const tutti_attr_spec attrs[] = {TUTTI_ADAM_ATTRS, {0}};

static const char *const samples[] = {
    "&f32[4,3] &f32[4,3] &f32[4,3]{0.1:1} i64[3]{=2,0,2} f32[3,3] f32[]{0.1:0.2} i64[]{=1}",
    "&f64[5] &f64[5] &f64[5]{0.1:1} i32[2]{=1,4} f64[2] f32[]{0.1:0.2} i64[]{=7} | form=torch",
    NULL,
};

extern const tutti_op tutti_op_adam_update_rows;

tutti_sym(tutti_adam_update_rows)(tutti_sym variable, tutti_sym m, tutti_sym s, tutti_sym indices,
                                  tutti_sym rows, tutti_sym lr, tutti_sym step,
                                  const tutti_adam_options *options)
{
    tutti_attr given[4];
    tutti_sym inputs[] = {
        variable,
        m,
        s,
        tutti__value_of(indices),
        tutti__value_of(rows),
        tutti__value_of(lr),
        tutti__value_of(step),
    };
    tutti__adam_attrs(options, given);
    return tutti__nary(&tutti_op_adam_update_rows, TUTTI_COUNT(inputs), inputs, 4, given);
}

const tutti_op tutti_op_adam_update_rows = {
    .struct_size = sizeof(tutti_op),
    .name = "adam_update_rows",
    .version = 1,
    .doc =
        "adam_update_rows(v, m, s, indices, rows, lr, t): adam_update on the rows at the indices, equal ones summed first; y = v",
    .category = "update",
    .min_inputs = 7,
    .max_inputs = 7,
    .outputs = 1,
    .flags = TUTTI_OP_UPDATES | TUTTI_OP_TAKES_HANDLE | TUTTI_OP_STATEFUL | TUTTI_OP_FALLIBLE,
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .split = split,
    .reference = reference,
    .samples = samples,
};
