/* outer.c: all products of two vectors. */
#include "ops/shape/rule.h"

static tutti_status infer(tutti_infer *node)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    TUTTI_TRY(tutti__shape_numbers(node, 0));
    TUTTI_TRY(tutti__shape_same_dtype(node, 1));
    if (node->inputs[0].rank != 1 || node->inputs[1].rank != 1)
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "inputs are %s and %s, both need 1 dimension; flatten them with tutti_reshape(x, -1)",
            tutti_type_text(&node->inputs[0], a), tutti_type_text(&node->inputs[1], b));
    return tutti__shape_output(node, 0, node->inputs[0].dtype, 2,
                               (int64_t[]){node->inputs[0].dims[0], node->inputs[1].dims[0]});
}

/* da = dy b, db = dyT a. */
static tutti_status gradient(tutti_gradient *node)
{
    tutti_sym dy = node->output_grads[0];
    if (node->wanted[0])
        node->input_grads[0] =
            tutti_squeeze(tutti_matmul(dy, tutti_expand_dims(node->inputs[1], 1)), 1);
    if (node->wanted[1])
        node->input_grads[1] = tutti_squeeze(
            tutti_matmul(dy, tutti_expand_dims(node->inputs[0], 1), .transpose_a = true), 1);
    return TUTTI_OK;
}

static tutti_status reference(const tutti_call *call)
{
    const tutti_view *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
    bool whole = tutti_dtype_is_int(y->dtype);
    for (int64_t i = 0, n = 0; i < a->dims[0]; i++)
        for (int64_t j = 0; j < b->dims[0]; j++, n++) {
            if (whole)
                tutti_view_set_int(y, n,
                                   (int64_t)((uint64_t)tutti_view_get_int(a, i) *
                                             (uint64_t)tutti_view_get_int(b, j)));
            else
                tutti_view_set(y, n, tutti_view_get(a, i) * tutti_view_get(b, j));
        }
    return TUTTI_OK;
}

static int split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    TUTTI_UNUSED(node);
    tutti__cut_pair(&cuts, 0, 0);
    tutti_split *way = tutti__cut(&cuts);
    way->inputs[1] = 0;
    way->outputs[0] = 1;
    return cuts.count;
}

extern const tutti_op tutti_op_outer;
tutti_sym(tutti_outer)(tutti_sym a, tutti_sym b)
{
    return tutti__binary(&tutti_op_outer, a, b);
}

static const char *const samples[] = {
    "f32[3] f32[4]", "f64[5] f64[1]", "i32[2] i32[3]", "f32[0] f32[3]", NULL,
};

const tutti_op tutti_op_outer = {
    .struct_size = sizeof(tutti_op),
    .name = "outer",
    .version = 1,
    .doc = "outer(a, b): y[i, j] = a[i] b[j]",
    .category = "linear algebra",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .infer = infer,
    .gradient = gradient,
    .cost = tutti__cost_elementwise,
    .split = split,
    .reference = reference,
    .samples = samples,
};
