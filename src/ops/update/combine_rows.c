/* combine_rows.c: a gradient that is rows, in which no index has its sum in pieces. */
#include "ops/update/update.h"

/* rows [k..., ...], indices [k...] */
static tutti_status combine_rows_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT], index_text[TUTTI_TYPE_TEXT];
    const tutti_type *rows = &node->inputs[0], *indices = &node->inputs[1];
    TUTTI_TRY(tutti__need_value(node, 0));
    TUTTI_TRY(tutti__need_indices(node, 1));
    bool fits = tutti_dtype_is_float(rows->dtype) && rows->rank >= indices->rank;
    for (int i = 0; fits && i < indices->rank; i++)
        fits = rows->dims[i] == indices->dims[i] || rows->dims[i] < 0 || indices->dims[i] < 0;
    if (!fits)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "rows are %s, indices %s; rows must be floats that begin with the "
                         "dimensions of the indices",
                         tutti_type_text(rows, text), tutti_type_text(indices, index_text));
    return tutti_infer_same(node);
}

static tutti_status combine_rows_reference(const tutti_kernel_call *call)
{
    const tutti_view *rows = &call->inputs[0], *out = &call->outputs[0];
    int64_t count = tutti_view_count(&call->inputs[1]);
    int64_t size = count > 0 ? tutti_view_count(rows) / count : 0;
    tutti_row_groups groups;
    TUTTI_TRY(tutti__row_groups(call, &call->inputs[1], INT64_MAX, &groups));
    for (int64_t at = 0; at < count; at++) {
        bool first = at == 0 || groups.index[at] != groups.index[at - 1];
        for (int64_t column = 0; column < size; column++)
            tutti_view_set(out, groups.order[at] * size + column,
                           first ? tutti__row_groups_sum(&groups, rows, size, at, column) : 0);
    }
    tutti__row_groups_free(&groups);
    return TUTTI_OK;
}

/* Across the rows. */
static int combine_rows_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int ways = 0;
    for (int axis = node->inputs[1].rank; axis < node->inputs[0].rank; axis++, ways++)
        if (ways < capacity)
            ret[ways] =
                (tutti_split){.inputs = {(int8_t)axis, TUTTI_WHOLE}, .outputs = {(int8_t)axis}};
    return ways;
}

static const char *const samples[] = {
    "f32[3,2] i64[3]{=4,0,4}", "f64[2,2,3] i32[2,2]{=1,0,1,1}",
    "bf16[] i64[]{=2}",        "f32[5] i64[5]{=1,1,1,0,7}",
    "f32[0,2] i64[0]",         NULL,
};

extern const tutti_op tutti_op_combine_rows;

tutti_sym tutti__combine_rows(tutti_sym rows, tutti_sym indices)
{
    return tutti__binary(&tutti_op_combine_rows, rows, indices);
}

const tutti_op tutti_op_combine_rows = {
    .struct_size = sizeof(tutti_op),
    .name = "combine_rows",
    .version = 1,
    .doc =
        "combine_rows(rows, indices): y[i] = sum of rows[j] with indices[j] = indices[i] where i is the first of them, else 0",
    .category = "update",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_FALLIBLE | TUTTI_OP_NO_GRADIENT,
    .infer = combine_rows_infer,
    .cost = tutti__cost_elementwise,
    .split = combine_rows_split,
    .reference = combine_rows_reference,
    .samples = samples,
};
