/* transpose.c: the axes in another order. */
#include "ops/shape/move.h"

/* order[i] is the axis of x that becomes axis i; an empty list reverses. */
static void order_of(int rank, int count, const int64_t *given, int *ret_order)
{
    for (int i = 0; i < rank; i++)
        ret_order[i] = count == 0 ? rank - 1 - i : tutti__axis_of(given[i], rank);
}

static tutti_status transpose_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0];
    const int64_t *given;
    int count = RULE_INTS(node, "order", &given), order[TUTTI_MAX_RANK];
    int64_t dims[TUTTI_MAX_RANK];
    uint32_t mask;
    if (count != 0 && count != x->rank)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "order has %d axes, input %s has %d; name each axis once", count,
                         tutti_type_text(x, text), x->rank);
    TUTTI_TRY(tutti__shape_axes(node, "order", x->rank, &mask));
    order_of(x->rank, count, given, order);
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->dims[order[i]];
    return tutti__shape_output(node, 0, x->dtype, x->rank, dims);
}

/* The order that puts every axis back. */
static tutti_status transpose_gradient(tutti_gradient_call *node)
{
    const int64_t *given;
    int count = RULE_INTS(node, "order", &given), rank = tutti_sym_type(node->inputs[0]).rank;
    int order[TUTTI_MAX_RANK];
    int64_t back[TUTTI_MAX_RANK];
    order_of(rank, count, given, order);
    for (int i = 0; i < rank; i++)
        back[order[i]] = i;
    node->input_grads[0] = (tutti_transpose)(node->output_grads[0], count == 0 ? 0 : rank, back);
    return TUTTI_OK;
}

static tutti_status transpose_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0], *y = &call->outputs[0];
    tutti_move move = {.rank = x->rank, .size = tutti_dtype_size(x->dtype)};
    const int64_t *given;
    int count = RULE_INTS(call, "order", &given), order[TUTTI_MAX_RANK];
    int64_t strides[TUTTI_MAX_RANK];
    order_of(x->rank, count, given, order);
    tutti__strides_of(x->rank, x->dims, strides);
    tutti__strides_of(y->rank, y->dims, move.to);
    for (int i = 0; i < x->rank; i++) {
        move.dims[i] = y->dims[i];
        move.from[i] = strides[order[i]];
    }
    tutti__move(call, &move, x->data, y->data);
    return TUTTI_OK;
}

static int transpose_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    const int64_t *given;
    int count = RULE_INTS(node, "order", &given), rank = node->inputs[0].rank,
        order[TUTTI_MAX_RANK];
    order_of(rank, count, given, order);
    for (int i = 0; i < rank; i++)
        tutti__cut_pair(&cuts, order[i], i);
    return cuts.count;
}

extern const tutti_op tutti_op_transpose;
tutti_sym(tutti_transpose)(tutti_sym x, int count, const int64_t *order)
{
    return TUTTI_NARY(&tutti_op_transpose, ((tutti_sym[]){x}), TUTTI_INTS("order", count, order));
}

static const tutti_attr_spec attrs[] = {
    {"order", TUTTI_ATTR_INTS, "[]"},
    {NULL},
};
static const char *const samples[] = {
    "f32[3,4]",
    "f32[2,3,4] | order=[0,2,1]",
    "f32[2,3,4,5] | order=[2,0,3,1]",
    "i32[4,3] | order=[-1,0]",
    "f32[5]",
    "f32[40,50]",
    "f32[0,3]",
    NULL,
};

const tutti_op tutti_op_transpose = {
    .struct_size = sizeof(tutti_op),
    .name = "transpose",
    .version = 1,
    .doc =
        "transpose(x; order): axis i of y is axis order[i] of x; without an order the axes are reversed",
    .category = "linear algebra",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_LINEAR,
    .attrs = attrs,
    .infer = transpose_infer,
    .gradient = transpose_gradient,
    .cost = tutti__cost_move,
    .split = transpose_split,
    .reference = transpose_reference,
    .samples = samples,
};
