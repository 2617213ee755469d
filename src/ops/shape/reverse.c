/* reverse.c: the other way round along some axes. */
#include "ops/shape/move.h"

static tutti_status reverse_infer(tutti_infer *node)
{
    uint32_t mask;
    TUTTI_TRY(tutti__shape_axes(node, "axes", node->inputs[0].rank, &mask));
    return tutti_infer_same(node);
}

extern const tutti_op tutti_op_reverse;
static tutti_status reverse_gradient(tutti_gradient_call *node)
{
    node->input_grads[0] = TUTTI_NARY(&tutti_op_reverse, ((tutti_sym[]){node->output_grads[0]}),
                                      RULE_ATTR(node, "axes"));
    return TUTTI_OK;
}

static tutti_status reverse_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0];
    uint32_t mask = tutti__axes_mask(x->rank, call->attrs, call->attr_count, "axes");
    tutti_move move = {.rank = x->rank, .size = tutti_dtype_size(x->dtype)};
    int64_t start = 0;
    tutti__strides_of(x->rank, x->dims, move.to);
    for (int i = 0; i < x->rank; i++) {
        bool backwards = mask >> i & 1;
        move.dims[i] = x->dims[i];
        move.from[i] = backwards ? -move.to[i] : move.to[i];
        start += backwards ? (x->dims[i] - 1) * move.to[i] : 0;
    }
    tutti__move(call, &move, tutti__element(x, start), call->outputs[0].data);
    return TUTTI_OK;
}

static int reverse_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    const tutti_type *x = &node->inputs[0];
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    uint32_t mask = tutti__axes_mask(x->rank, node->attrs, node->attr_count, "axes");
    for (int i = 0; i < x->rank; i++)
        if (!(mask >> i & 1))
            tutti__cut_pair(&cuts, i, i);
    return cuts.count;
}

tutti_sym(tutti_reverse)(tutti_sym x, int count, const int64_t *axes)
{
    return TUTTI_NARY(&tutti_op_reverse, ((tutti_sym[]){x}), TUTTI_INTS("axes", count, axes));
}

static const tutti_attr_spec attrs[] = {
    {"axes", TUTTI_ATTR_INTS, "[]"},
    {NULL},
};
static const char *const samples[] = {
    "f32[3,4] | axes=[1]",
    "f32[2,3,2] | axes=[0,-1]",
    "i32[5]",
    "f32[]",
    "f32[0,3] | axes=[0]",
    NULL,
};

const tutti_op tutti_op_reverse = {
    .struct_size = sizeof(tutti_op),
    .name = "reverse",
    .version = 1,
    .doc =
        "reverse(x; axes): y[.., i, ..] = x[.., n - 1 - i, ..] along the named axes, along all without names",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .infer = reverse_infer,
    .gradient = reverse_gradient,
    .cost = tutti__cost_move,
    .split = reverse_split,
    .reference = reverse_reference,
    .samples = samples,
};
