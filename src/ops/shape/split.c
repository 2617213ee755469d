/* split.c: cuts a tensor into pieces along an axis. */
#include "ops/shape/pieces.h"

/* The size of each piece: from attribute sizes, or equal parts. */
static int64_t piece_size(const int64_t *sizes, int size_count, int64_t dim, int pieces, int i)
{
    if (size_count > 0)
        return sizes[i];
    return dim == TUTTI_ANY ? TUTTI_ANY : dim / pieces;
}

static tutti_status check_sizes(const tutti_infer *node, int axis, int count, const int64_t *sizes)
{
    char text[TUTTI_TYPE_TEXT];
    int64_t sum = 0, dim = node->inputs[0].dims[axis];
    tutti_type_text(&node->inputs[0], text);
    if (node->output_count < 1)
        return RULE_FAIL(node, TUTTI_INVALID, "%d outputs are asked for, needs at least 1",
                         node->output_count);
    if (count == 0 && dim != TUTTI_ANY && dim % node->output_count != 0)
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "axis %d of input %s has size %lld, which %d pieces do not divide; give the "
            "sizes with tutti_split_sizes",
            axis, text, (long long)dim, node->output_count);
    if (count != 0 && count != node->output_count)
        return RULE_FAIL(node, TUTTI_INVALID, "%d sizes are given for %d outputs", count,
                         node->output_count);
    for (int i = 0; i < count; i++)
        if (sizes[i] < 0 || !tutti__add_size(sum, sizes[i], &sum))
            return RULE_FAIL(node, TUTTI_INVALID,
                             "size %d is %lld, needs 0 or more and a sum that fits", i,
                             (long long)sizes[i]);
    if (count != 0 && dim != TUTTI_ANY && sum != dim)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "the sizes add up to %lld, but axis %d of input %s has size %lld",
                         (long long)sum, axis, text, (long long)dim);
    return TUTTI_OK;
}

static tutti_status split_infer(tutti_infer *node)
{
    tutti_type y = node->inputs[0];
    const int64_t *sizes;
    int count = RULE_INTS(node, "sizes", &sizes), axis;
    TUTTI_TRY(tutti__rule_axis(node, RULE_INT(node, "axis"), y.rank, &axis));
    TUTTI_TRY(check_sizes(node, axis, count, sizes));
    for (int i = 0; i < node->output_count; i++) {
        y.dims[axis] = piece_size(sizes, count, node->inputs[0].dims[axis], node->output_count, i);
        TUTTI_TRY(tutti__shape_output(node, i, y.dtype, y.rank, y.dims));
    }
    return TUTTI_OK;
}

static tutti_status split_gradient(tutti_gradient_call *node)
{
    int axis = (int)RULE_INT(node, "axis");
    tutti_sym *grads =
        tutti__arena_array(&node->graph->arena, (size_t)node->output_count, sizeof *grads);
    if (grads == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "split '%s': no memory for its gradient", node->name);
    for (int i = 0; i < node->output_count; i++)
        grads[i] = tutti_sym_ok(node->output_grads[i]) ? node->output_grads[i]
                                                       : tutti_zeros_like(node->outputs[i]);
    node->input_grads[0] = tutti_concatenate(node->output_count, grads, .axis = axis);
    return TUTTI_OK;
}

static int split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int axis = tutti__axis_of(RULE_INT(node, "axis"), node->inputs[0].rank);
    return tutti__split_other_axes(node, axis, capacity, ret);
}

extern const tutti_op tutti_op_split;
tutti_sym(tutti_split_into)(tutti_sym x, int axis, int count)
{
    return TUTTI_NARY(&tutti_op_split, ((tutti_sym[]){x}), TUTTI_INT("axis", axis),
                      TUTTI_INT("outputs", count));
}

tutti_sym(tutti_split_sizes)(tutti_sym x, int axis, int count, const int64_t *sizes)
{
    return TUTTI_NARY(&tutti_op_split, ((tutti_sym[]){x}), TUTTI_INT("axis", axis),
                      TUTTI_INTS("sizes", count, sizes), TUTTI_INT("outputs", count));
}

static const tutti_attr_spec attrs[] = {
    {"axis", TUTTI_ATTR_INT, "0"},
    {"sizes", TUTTI_ATTR_INTS, "[]"},
    {"outputs", TUTTI_ATTR_INT, NULL},
    {NULL},
};
static const char *const samples[] = {
    "f32[6,2] | axis=0 outputs=3",
    "f32[3,7] | axis=1 sizes=[2,4,1] outputs=3",
    "i32[4,5] | axis=-1 sizes=[5] outputs=1",
    "f32[2,0,3] | axis=0 outputs=2",
    "f32[3] | sizes=[0,3] outputs=2",
    NULL,
};

const tutti_op tutti_op_split = {
    .struct_size = sizeof(tutti_op),
    .name = "split",
    .version = 1,
    .doc =
        "split(x; axis, sizes, outputs): y0, y1, ... are pieces of x along the axis, of the given sizes or all equal",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = -1,
    .attrs = attrs,
    .infer = split_infer,
    .gradient = split_gradient,
    .cost = tutti__cost_move,
    .split = split,
    .reference = tutti__pieces_reference,
    .samples = samples,
};
