/* sgd_update_rows.c: gradient descent where the gradient is rows at indices. */
#include "ops/update/update.h"

/* variable [n, ...], indices [k...], rows [k..., ...], lr f32 [] */
static tutti_status infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__need_float_variable(node, 0));
    TUTTI_TRY(tutti__need_rows(node, 0, 1, 2));
    TUTTI_TRY(tutti__need_scalar(node, 3, TUTTI_F32, "lr"));
    return tutti_infer_same(node);
}

static tutti_status reference(const tutti_call *call)
{
    const tutti_view *variable = &call->inputs[0], *rows = &call->inputs[2];
    double lr = tutti_view_get(&call->inputs[3], 0);
    int64_t size = tutti__row_count(variable);
    tutti_row_groups groups;
    TUTTI_TRY(tutti__row_groups(call, &call->inputs[1], variable->dims[0], &groups));
    for (int64_t at = 0; at < groups.count; at = tutti__row_groups_next(&groups, at))
        for (int64_t column = 0; column < size; column++) {
            int64_t i = groups.index[at] * size + column;
            double g = tutti__row_groups_sum(&groups, rows, size, at, column);
            tutti_view_set(variable, i, tutti_view_get(variable, i) - lr * g);
        }
    tutti__row_groups_free(&groups);
    tutti__view_copy(&call->outputs[0], variable);
    return TUTTI_OK;
}

static int split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int ways = 0, shift = node->inputs[1].rank - 1;
    for (int axis = 1; axis < node->inputs[0].rank; axis++, ways++)
        if (ways < capacity)
            ret[ways] = (tutti_split){
                .inputs = {(int8_t)axis, TUTTI_WHOLE, (int8_t)(axis + shift), TUTTI_WHOLE},
                .outputs = {(int8_t)axis}};
    return ways;
}

static const char *const samples[] = {
    "&f32[4,3] i64[3]{=2,0,2} f32[3,3] f32[]{0.1:0.2}",
    "&f64[5] i32[2,2]{=1,4,4,4} f64[2,2] f32[]{0.1:0.2}",
    "&bf16[3,2] i64[0] bf16[0,2] f32[]{0.1:0.2}",
    NULL,
};

extern const tutti_op tutti_op_sgd_update_rows;

tutti_sym(tutti_sgd_update_rows)(tutti_sym variable, tutti_sym indices, tutti_sym rows,
                                 tutti_sym lr)
{
    tutti_sym inputs[] = {variable, tutti__value_of(indices), tutti__value_of(rows),
                          tutti__value_of(lr)};
    return tutti__nary(&tutti_op_sgd_update_rows, 4, inputs, 0, NULL);
}

const tutti_op tutti_op_sgd_update_rows = {
    .struct_size = sizeof(tutti_op),
    .name = "sgd_update_rows",
    .version = 1,
    .doc =
        "sgd_update_rows(v, indices, rows, lr): v[j] = v[j] - lr sum of rows[i] with indices[i] = j; y = v",
    .category = "update",
    .min_inputs = 4,
    .max_inputs = 4,
    .outputs = 1,
    .flags = TUTTI_OP_UPDATES | TUTTI_OP_TAKES_HANDLE | TUTTI_OP_STATEFUL | TUTTI_OP_FALLIBLE,
    .infer = infer,
    .cost = tutti__cost_elementwise,
    .split = split,
    .reference = reference,
    .samples = samples,
};
