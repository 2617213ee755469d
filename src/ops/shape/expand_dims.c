/* expand_dims.c: a new axis of size 1. */
#include "ops/shape/rule.h"

static tutti_status expand_dims_infer(tutti_infer *node)
{
    const tutti_type *x = &node->inputs[0];
    int64_t dims[TUTTI_MAX_RANK + 1];
    int axis;
    TUTTI_TRY(tutti__rule_axis(node, RULE_INT(node, "axis"), x->rank + 1, &axis));
    for (int i = 0; i <= x->rank; i++)
        dims[i] = i == axis ? 1 : x->dims[i - (i > axis)];
    return tutti__shape_output(node, 0, x->dtype, x->rank + 1, dims);
}

static tutti_status expand_dims_gradient(tutti_gradient_call *node)
{
    node->input_grads[0] = tutti_reshape_like(node->output_grads[0], node->inputs[0]);
    return TUTTI_OK;
}

static int expand_dims_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int axis = tutti__axis_of(RULE_INT(node, "axis"), node->outputs[0].rank);
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    for (int i = 0; i < node->inputs[0].rank; i++)
        tutti__cut_pair(&cuts, i, i + (i >= axis));
    return cuts.count;
}

extern const tutti_op tutti_op_expand_dims;
tutti_sym(tutti_expand_dims)(tutti_sym x, int axis)
{
    return TUTTI_NARY(&tutti_op_expand_dims, ((tutti_sym[]){x}), TUTTI_INT("axis", axis));
}

static const tutti_attr_spec attrs[] = {
    {"axis", TUTTI_ATTR_INT, NULL},
    {NULL},
};
static const char *const samples[] = {
    "f32[3,4] | axis=1", "f32[5] | axis=-1", "f32[] | axis=0", "i32[0,2] | axis=0", NULL,
};

const tutti_op tutti_op_expand_dims = {
    .struct_size = sizeof(tutti_op),
    .name = "expand_dims",
    .version = 1,
    .doc = "expand_dims(x; axis): y is x with a new axis of size 1 at position axis",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_VIEW | TUTTI_OP_LINEAR,
    .attrs = attrs,
    .infer = expand_dims_infer,
    .gradient = expand_dims_gradient,
    .cost = tutti__cost_move,
    .split = expand_dims_split,
    .reference = tutti__reference_view,
    .samples = samples,
};
