/* flatten.c: all axes but the first made one. */
#include "ops/shape/rule.h"

static tutti_status flatten_infer(tutti_infer *node)
{
    const tutti_type *x = &node->inputs[0];
    if (x->rank == 0)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "input is a scalar, needs at least 1 dimension [batch, ...]; add one with "
                         "tutti_reshape");
    tutti_type rest = tutti_type_make(x->dtype, x->rank - 1, x->dims + 1);
    int64_t count = tutti_type_count(&rest);
    if (count == -2)
        return RULE_FAIL(node, TUTTI_TOO_LARGE, "the product of the dimensions overflows 64 bits");
    return tutti__shape_output(node, 0, x->dtype, 2, (int64_t[]){x->dims[0], count});
}

static tutti_status flatten_gradient(tutti_gradient_call *node)
{
    node->input_grads[0] = tutti_reshape_like(node->output_grads[0], node->inputs[0]);
    return TUTTI_OK;
}

static int flatten_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    TUTTI_UNUSED(node);
    tutti__cut_pair(&cuts, 0, 0);
    return cuts.count;
}

extern const tutti_op tutti_op_flatten;
tutti_sym(tutti_nn_flatten)(tutti_sym x)
{
    return tutti__unary(&tutti_op_flatten, x);
}

static const char *const samples[] = {
    "f32[4,3,2]", "f32[5]", "i32[0,3,2]", "f32[3,0,2]", NULL,
};

const tutti_op tutti_op_flatten = {
    .struct_size = sizeof(tutti_op),
    .name = "flatten",
    .version = 1,
    .doc = "flatten(x): y[i, j] = the j-th element of x[i, ...]; [d0, d1, d2] becomes [d0, d1 d2]",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_VIEW | TUTTI_OP_LINEAR,
    .infer = flatten_infer,
    .gradient = flatten_gradient,
    .cost = tutti__cost_move,
    .split = flatten_split,
    .reference = tutti__reference_view,
    .samples = samples,
};
