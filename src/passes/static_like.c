/* static_like.c: operators that need another tensor only for its shape get that shape as an
 * attribute. What they no longer wait for need not be kept, or even computed. */
#include <string.h>

#include "passes/rewrite.h"

/* One input goes, a list of its dimensions comes: [first, last) of them, last 0 means all. */
typedef struct shape_input {
    const char *op, *static_op;
    int input;
    const char *attr;
    int first, last;
} shape_input;

static const shape_input shape_inputs[] = {
    {"reshape_like", "reshape", 1, "dims", 0, 0},
    {"broadcast_like", "broadcast_to", 1, "dims", 0, 0},
    {"scatter_nd_like", "scatter_nd", 2, "dims", 0, 0},
    {"random_uniform", "random_uniform", 1, "dims", 0, 0},
    {"random_normal", "random_normal", 1, "dims", 0, 0},
    {"random_truncated_normal", "random_truncated_normal", 1, "dims", 0, 0},
    {"random_bernoulli", "random_bernoulli", 1, "dims", 0, 0},
    {"average_pool2d_backward", "average_pool2d_backward", 1, "size", 1, 3},
    {"conv2d_backward_input", "conv2d_backward_input", 2, "size", 1, 3},
    {"conv2d_backward_kernel", "conv2d_backward_kernel", 2, "size", 0, 2},
    {"conv3d_backward_input", "conv3d_backward_input", 2, "size", 1, 4},
    {"conv3d_backward_kernel", "conv3d_backward_kernel", 2, "size", 0, 3},
    {"resize_backward", "resize_backward", 1, "dims", 0, 0},
    {"grid_sample_backward_input", "grid_sample_backward_input", 2, "dims", 0, 0},
    {"tile_grad", "tile_grad", 1, "dims", 0, 0},
    {"pad_grad", "pad_grad", 1, "dims", 0, 0},
    {"gather_grad", "gather_grad", 2, "dims", 0, 0},
    {"put_along", "put_along", 2, "dims", 0, 0},
};

enum { MAX_INPUTS = 8, MAX_ATTRS = 16 };

static bool has_attr(const tutti_op *op, const char *name)
{
    for (const tutti_attr_spec *spec = op->attrs; spec != NULL && spec->name != NULL; spec++)
        if (strcmp(spec->name, name) == 0)
            return true;
    return false;
}

/* The attributes that both operators have, but for `except`. */
static int common_attrs(const tutti_node *node, const tutti_op *op, const char *except,
                        tutti_attr *ret)
{
    int count = 0;
    for (int i = 0; i < node->attr_count; i++)
        if (has_attr(op, node->attrs[i].name) && strcmp(node->attrs[i].name, except) != 0)
            ret[count++] = node->attrs[i];
    return count;
}

static tutti_status take_shape(tutti_rewrite *rewrite, tutti_node *node, const shape_input *rule,
                               tutti_edge *ret)
{
    const tutti_op *op = tutti_op_find(rule->static_op);
    const tutti_type *like = tutti__edge_type(node->inputs[rule->input]);
    tutti_edge inputs[MAX_INPUTS];
    tutti_attr attrs[MAX_ATTRS];
    int input_count = 0, last = rule->last > 0 ? rule->last : like->rank;
    if (op == NULL || node->input_count > MAX_INPUTS || node->attr_count >= MAX_ATTRS ||
        like->rank < last)
        return TUTTI_OK;
    for (int i = 0; i < node->input_count; i++)
        if (i != rule->input)
            inputs[input_count++] = node->inputs[i];
    int attr_count = common_attrs(node, op, rule->attr, attrs);
    attrs[attr_count++] = TUTTI_INTS(rule->attr, last - rule->first, like->dims + rule->first);
    return tutti__rewrite_add(rewrite, node, rule->static_op, input_count, inputs, attr_count,
                              attrs, ret);
}

static tutti_status static_like_fill(tutti_rewrite *rewrite, tutti_node *node, double value,
                                     tutti_edge *ret)
{
    const tutti_type *type = &node->types[0];
    tutti_attr attrs[] = {TUTTI_INTS("dims", type->rank, type->dims), TUTTI_FLOAT("value", value),
                          TUTTI_INT("dtype", type->dtype)};
    if (type->dtype == TUTTI_STRING)
        return TUTTI_OK;
    return tutti__rewrite_add(rewrite, node, "fill", 0, NULL, (int)TUTTI_COUNT(attrs), attrs, ret);
}

/* Sums over the axes that `like` lacks or has with size 1, then gives it like's dimensions. */
static tutti_status sum_like(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    const tutti_type *x = tutti__edge_type(node->inputs[0]), *like = &node->types[0];
    int64_t axes[TUTTI_MAX_RANK];
    int count = 0, lead = x->rank - like->rank;
    tutti_edge sum = node->inputs[0];
    for (int i = 0; i < x->rank; i++)
        if ((i < lead || like->dims[i - lead] == 1) && x->dims[i] != 1)
            axes[count++] = i;
    if (count > 0)
        TUTTI_TRY(tutti__rewrite_add(rewrite, node, "sum", 1, &sum, 1,
                                     &TUTTI_INTS("axes", count, axes), &sum));
    return tutti__rewrite_reshape(rewrite, node, sum, like->rank, like->dims, ret);
}

/* Pieces as large as others: pieces of these sizes. The outputs correspond one to one. */
static tutti_status split_like(tutti_rewrite *rewrite, tutti_node *node)
{
    enum { MAX_PIECES = 64 };
    int64_t sizes[MAX_PIECES], axis = tutti__int(node, "axis");
    tutti_edge split;
    if (node->output_count > MAX_PIECES)
        return TUTTI_OK;
    axis += axis < 0 ? node->types[0].rank : 0;
    for (int i = 0; i < node->output_count; i++)
        sizes[i] = node->types[i].dims[axis];
    tutti_attr attrs[] = {TUTTI_INT("axis", axis), TUTTI_INTS("sizes", node->output_count, sizes),
                          TUTTI_INT("outputs", node->output_count)};
    TUTTI_TRY(tutti__rewrite_add(rewrite, node, "split", 1, node->inputs, (int)TUTTI_COUNT(attrs),
                                 attrs, &split));
    for (int i = 0; i < node->output_count; i++)
        TUTTI_TRY(tutti__rewrite_replace(rewrite, node, (uint32_t)i,
                                         (tutti_edge){split.node, (uint32_t)i}));
    rewrite->changes -= node->output_count - 1; /* one change, however many pieces */
    return TUTTI_OK;
}

/* Entry i of a list that may be shorter than the rank. */
static int64_t entry(const tutti_node *node, const char *attr, int i, int64_t otherwise)
{
    const int64_t *values;
    int count = tutti_attr_ints(node->attrs, node->attr_count, attr, &values);
    return i < count ? values[i] : otherwise;
}

/* Where a slice of step 1 begins, as slice counts: negative from the end, beyond an end stops
 * there. */
static int64_t begin_of(const tutti_node *node, int axis, int64_t dim)
{
    int64_t begin = entry(node, "begin", axis, 0);
    if (begin < 0)
        begin = begin < -dim ? 0 : begin + dim;
    return begin > dim ? dim : begin;
}

/* The adjoint of a slice without steps pads with zeros. */
static tutti_status slice_grad(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    const tutti_type *x = tutti__edge_type(node->inputs[0]), *y = &node->types[0];
    int64_t paddings[2 * TUTTI_MAX_RANK];
    for (int i = 0; i < y->rank; i++) {
        int64_t begin = begin_of(node, i, y->dims[i]);
        if (entry(node, "step", i, 1) != 1 || x->dims[i] == 0)
            return TUTTI_OK;
        paddings[2 * i] = begin;
        paddings[2 * i + 1] = y->dims[i] - begin - x->dims[i];
    }
    return tutti__rewrite_add(rewrite, node, "pad", 1, node->inputs, 1,
                              &TUTTI_INTS("paddings", 2 * y->rank, paddings), ret);
}

static bool shapes_are_known(const tutti_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (!tutti_type_is_static(tutti__edge_type(node->inputs[i])))
            return false;
    for (int i = 0; i < node->output_count; i++)
        if (!tutti_type_is_static(&node->types[i]))
            return false;
    return true;
}

static tutti_status rule(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    if (!shapes_are_known(node))
        return TUTTI_OK;
    for (size_t i = 0; i < TUTTI_COUNT(shape_inputs); i++)
        if (node->input_count > shape_inputs[i].input && tutti__is(node, shape_inputs[i].op))
            return take_shape(rewrite, node, &shape_inputs[i], ret);
    if (tutti__is(node, "zeros_like"))
        return static_like_fill(rewrite, node, 0, ret);
    if (tutti__is(node, "ones_like"))
        return static_like_fill(rewrite, node, 1, ret);
    if (tutti__is(node, "sum_like"))
        return sum_like(rewrite, node, ret);
    if (tutti__is(node, "split_like"))
        return split_like(rewrite, node);
    if (tutti__is(node, "slice_grad"))
        return slice_grad(rewrite, node, ret);
    return TUTTI_OK;
}

static tutti_status static_like_run(tutti_graph *graph, const tutti_pass_context *context,
                                    int *ret_changes)
{
    return tutti__rewrite_nodes(graph, context, rule, ret_changes);
}

const tutti_pass tutti_pass_static_like = {
    .name = "static_like",
    .doc = "operators that look only at another tensor's shape get it as an attribute",
    .stage = TUTTI_PASS_JOB,
    .order = 5,
    .run = static_like_run,
};
