/* rows_to_dense.c: a gradient that is rows at indices, as a dense one. */
#include "ops/sparse/sparse.h"

/* rows [k..., ...], indices [k...], like [n, ...] -> [n, ...]; of `like` only the shape counts */
static tutti_status rows_to_dense_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *rows = &node->inputs[0];
    if (!tutti_dtype_is_float(rows->dtype) && !tutti_dtype_is_int(rows->dtype))
        return RULE_FAIL(node, TUTTI_INVALID, "rows are %s, need numbers",
                         tutti_type_text(rows, text));
    TUTTI_TRY(tutti__need_rows(node, 2, 1, 0));
    node->outputs[0] = node->inputs[2];
    node->outputs[0].handle = false;
    return TUTTI_OK;
}

static tutti_status rows_to_dense_reference(const tutti_kernel_call *call)
{
    const tutti_view *rows = &call->inputs[0], *indices = &call->inputs[1],
                     *out = &call->outputs[0];
    int64_t size = tutti__row_count(out), count = tutti_view_count(indices);
    tutti_sums sums;
    TUTTI_TRY(tutti__check_indices(call, indices, out->dims[0]));
    TUTTI_TRY(tutti__sums_begin(call, out, &sums));
    for (int64_t i = 0; i < count; i++)
        tutti__sums_add(&sums, tutti_view_get_int(indices, i) * size, rows, i * size, size);
    tutti__sums_end(&sums);
    return TUTTI_OK;
}

static tutti_status rows_to_dense_gradient(tutti_gradient_call *node)
{
    if (node->wanted[0])
        node->input_grads[0] = tutti_gather(node->output_grads[0], node->inputs[1], 0);
    return TUTTI_OK;
}

/* Rows, whose sums add up; or across them. */
static int rows_to_dense_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int ways = 0, index_rank = node->inputs[1].rank;
    for (int axis = 0; axis < index_rank; axis++, ways++)
        if (ways < capacity)
            ret[ways] = (tutti_split){.inputs = {(int8_t)axis, (int8_t)axis, TUTTI_WHOLE},
                                      .outputs = {TUTTI_PARTIAL_SUM}};
    for (int axis = 1; axis < node->inputs[2].rank; axis++, ways++)
        if (ways < capacity)
            ret[ways] = (tutti_split){
                .inputs = {(int8_t)(axis + index_rank - 1), TUTTI_WHOLE, (int8_t)axis},
                .outputs = {(int8_t)axis}};
    return ways;
}

static const char *const samples[] = {
    "f32[3,2] i64[3]{=4,0,4} f32[5,2]", "f64[2,2,3] i32[2,2]{=1,0,1,1} f64[2,3]",
    "f32[] i64[]{=2} f32[4]",           "i64[2] i64[2]{=1,1} i64[3]",
    "f32[0,2] i64[0] f32[3,2]",         NULL,
};

extern const tutti_op tutti_op_rows_to_dense;

tutti_sym(tutti_rows_to_dense)(tutti_sym rows, tutti_sym indices, tutti_sym like)
{
    tutti_sym inputs[] = {rows, indices, like};
    return tutti__nary(&tutti_op_rows_to_dense, 3, inputs, 0, NULL);
}

const tutti_op tutti_op_rows_to_dense = {
    .struct_size = sizeof(tutti_op),
    .name = "rows_to_dense",
    .version = 1,
    .doc = "rows_to_dense(rows, indices, like): y = 0 in like's shape but y[indices[i]] += rows[i]",
    .category = "sparse",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .flags = TUTTI_OP_FALLIBLE,
    .infer = rows_to_dense_infer,
    .gradient = rows_to_dense_gradient,
    .cost = tutti__cost_move,
    .split = rows_to_dense_split,
    .reference = rows_to_dense_reference,
    .samples = samples,
};
