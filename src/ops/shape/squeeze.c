/* squeeze.c: drops axes of size 1. */
#include "ops/shape/rule.h"

static tutti_status squeeze_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0];
    const int64_t *axes;
    bool named = RULE_INTS(node, "axes", &axes) > 0;
    int64_t dims[TUTTI_MAX_RANK];
    uint32_t mask;
    int rank = 0;
    TUTTI_TRY(tutti__shape_axes(node, "axes", x->rank, &mask));
    for (int i = 0; i < x->rank; i++) {
        bool asked = mask >> i & 1;
        if (asked && named && x->dims[i] != 1 && x->dims[i] != TUTTI_ANY)
            return RULE_FAIL(
                node, TUTTI_INVALID,
                "axis %d of input %s has size %lld, only axes of size 1 can be dropped", i,
                tutti_type_text(x, text), (long long)x->dims[i]);
        if (asked && !named && x->dims[i] == TUTTI_ANY)
            return RULE_FAIL(
                node, TUTTI_INVALID,
                "the size of axis %d of input %s is not known, so the rank of the result "
                "cannot be told; name the axes to drop",
                i, tutti_type_text(x, text));
        if (!asked || (!named && x->dims[i] != 1))
            dims[rank++] = x->dims[i];
    }
    return tutti__shape_output(node, 0, x->dtype, rank, dims);
}

static tutti_status squeeze_gradient(tutti_gradient_call *node)
{
    node->input_grads[0] = tutti_reshape_like(node->output_grads[0], node->inputs[0]);
    return TUTTI_OK;
}

/* Without names a piece of size 1 would be dropped. */
static int squeeze_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    const tutti_type *x = &node->inputs[0];
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    const int64_t *axes;
    bool named = RULE_INTS(node, "axes", &axes) > 0;
    uint32_t mask = tutti__axes_mask(x->rank, node->attrs, node->attr_count, "axes");
    for (int i = 0, j = 0; named && i < x->rank; i++)
        if (!(mask >> i & 1))
            tutti__cut_pair(&cuts, i, j++);
    return cuts.count;
}

extern const tutti_op tutti_op_squeeze;
tutti_sym(tutti_squeeze)(tutti_sym x, int count, const int64_t *axes)
{
    return TUTTI_NARY(&tutti_op_squeeze, ((tutti_sym[]){x}), TUTTI_INTS("axes", count, axes));
}

static const tutti_attr_spec attrs[] = {
    {"axes", TUTTI_ATTR_INTS, "[]"},
    {NULL},
};
static const char *const samples[] = {
    "f32[3,1,4,1] | axes=[1]", "f32[1,5,1]", "i32[1,1] | axes=[-1]", "f32[1,0] | axes=[0]", NULL,
};

const tutti_op tutti_op_squeeze = {
    .struct_size = sizeof(tutti_op),
    .name = "squeeze",
    .version = 1,
    .doc =
        "squeeze(x; axes): y is x without the named axes, which have size 1; without names, without all of size 1",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_VIEW | TUTTI_OP_LINEAR,
    .attrs = attrs,
    .infer = squeeze_infer,
    .gradient = squeeze_gradient,
    .cost = tutti__cost_move,
    .split = squeeze_split,
    .reference = tutti__reference_view,
    .samples = samples,
};
