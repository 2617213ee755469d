/* simplify_shape.c: rules about shapes and the order of elements; see simplify.h. */
#include "passes/simplify.h"

static bool is_view(const tutti_node *node)
{
    return (node->op->flags & TUTTI_OP_VIEW) && tutti__is_pure(node) && node->output_count == 1 &&
           node->input_count >= 1 &&
           node->types[0].dtype == tutti__edge_type(node->inputs[0])->dtype;
}

/* A view of one number, repeated, is that number repeated in other dimensions. */
static tutti_status view_of_repeated(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    const tutti_node *repeated = node->inputs[0].node;
    const tutti_type *type = &node->types[0];
    tutti_edge number;
    if (tutti_type_count(tutti__edge_type(repeated->inputs[0])) != 1)
        return TUTTI_OK;
    TUTTI_TRY(
        tutti__rewrite_reshape(rewrite, node, repeated->inputs[0], 0, (int64_t[1]){0}, &number));
    return tutti__rewrite_add(rewrite, node, "broadcast_to", 1, &number, 1,
                              &TUTTI_INTS("dims", type->rank, type->dims), ret);
}

/* A view has its input's bytes, so only the dimensions at the end of a chain of views count. */
tutti_status tutti__simplify_view(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    tutti_edge x = node->inputs[0];
    const tutti_type *type = &node->types[0];
    if (!is_view(node))
        return TUTTI_OK;
    if (tutti_type_equal(type, tutti__edge_type(x))) {
        *ret = x;
        return TUTTI_OK;
    }
    if (tutti__is(x.node, "broadcast_to"))
        return view_of_repeated(rewrite, node, ret);
    if (!is_view(x.node) || !tutti_type_is_static(tutti__edge_type(x.node->inputs[0])))
        return TUTTI_OK;
    return tutti__rewrite_reshape(rewrite, node, x.node->inputs[0], type->rank, type->dims, ret);
}

tutti_status tutti__simplify_transpose(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    int order[TUTTI_MAX_RANK], inner[TUTTI_MAX_RANK];
    int64_t combined[TUTTI_MAX_RANK];
    tutti_edge x = node->inputs[0];
    const tutti_type *type = &node->types[0];
    tutti__transpose_order(node, order);
    if (tutti__order_moves_nothing(type->rank, tutti__edge_type(x)->dims, order))
        return tutti__rewrite_reshape(rewrite, node, x, type->rank, type->dims, ret);
    if (!tutti__is(x.node, "transpose"))
        return TUTTI_OK;
    tutti__transpose_order(x.node, inner);
    for (int i = 0; i < type->rank; i++)
        combined[i] = inner[order[i]];
    return tutti__rewrite_add(rewrite, node, "transpose", 1, x.node->inputs, 1,
                              &TUTTI_INTS("order", type->rank, combined), ret);
}

/* Whether a node swaps the last two axes and nothing else. */
static bool swaps_last_two(const tutti_node *node)
{
    int order[TUTTI_MAX_RANK], rank = node->types[0].rank;
    if (!tutti__is(node, "transpose") || rank < 2)
        return false;
    tutti__transpose_order(node, order);
    for (int i = 0; i < rank - 2; i++)
        if (order[i] != i)
            return false;
    return order[rank - 2] == rank - 1;
}

tutti_status tutti__simplify_matmul(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    static const char *const flags[] = {"transpose_a", "transpose_b"};
    tutti_edge inputs[2];
    tutti_attr attrs[2];
    bool changed = false;
    for (int i = 0; i < 2; i++) {
        bool swapped = swaps_last_two(node->inputs[i].node);
        inputs[i] = swapped ? node->inputs[i].node->inputs[0] : node->inputs[i];
        attrs[i] = TUTTI_INT(flags[i], (tutti__int(node, flags[i]) != 0) != swapped);
        changed = changed || swapped;
    }
    return changed ? tutti__rewrite_add(rewrite, node, "matmul", 2, inputs, 2, attrs, ret)
                   : TUTTI_OK;
}

tutti_status tutti__simplify_broadcast(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    tutti_edge x = node->inputs[0];
    const tutti_type *type = &node->types[0];
    if (tutti_type_equal(type, tutti__edge_type(x)))
        *ret = x;
    else if (tutti__is(x.node, "broadcast_to"))
        return tutti__rewrite_add(rewrite, node, "broadcast_to", 1, x.node->inputs, 1,
                                  &TUTTI_INTS("dims", type->rank, type->dims), ret);
    return TUTTI_OK;
}

/* Whether an operator that keeps the type also keeps every element in its place. */
static bool rolls_nothing(const tutti_node *node)
{
    const tutti_type *type = &node->types[0];
    int64_t axis = tutti__int(node, "axis");
    int64_t size = type->dims[axis < 0 ? axis + type->rank : axis];
    return size == 0 || tutti__int(node, "shift") % size == 0;
}

static bool has_negative_step(const tutti_node *node)
{
    const int64_t *steps;
    int count = tutti_attr_ints(node->attrs, node->attr_count, "step", &steps);
    for (int i = 0; i < count; i++)
        if (steps[i] < 0)
            return true;
    return false;
}

/* Slices, paddings, tiles, splits and joins that keep every axis' size took or added nothing. */
tutti_status tutti__simplify_whole(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    const tutti_type *type = &node->types[0];
    if (node->input_count != 1 || node->output_count != 1)
        return TUTTI_OK;
    if (tutti__is(node, "stack"))
        return tutti__rewrite_reshape(rewrite, node, node->inputs[0], type->rank, type->dims, ret);
    if (!tutti_type_equal(type, tutti__edge_type(node->inputs[0])))
        return TUTTI_OK;
    if (tutti__is(node, "roll") ? rolls_nothing(node) : !has_negative_step(node))
        *ret = node->inputs[0];
    return TUTTI_OK;
}

/* Every reduced axis has size 1 when as many elements come out as went in. */
tutti_status tutti__simplify_reduce_nothing(tutti_rewrite *rewrite, tutti_node *node,
                                            tutti_edge *ret)
{
    const tutti_type *type = &node->types[0], *x = tutti__edge_type(node->inputs[0]);
    if (node->output_count != 1 || node->input_count != 1 || type->dtype != x->dtype ||
        tutti_type_count(type) != tutti_type_count(x))
        return TUTTI_OK;
    return tutti__rewrite_reshape(rewrite, node, node->inputs[0], type->rank, type->dims, ret);
}

/* A reduction over all axes does not see how they are cut. */
tutti_status tutti__simplify_reduce_view(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    const tutti_type *type = &node->types[0];
    const tutti_node *view = node->inputs[0].node;
    if (node->output_count != 1 || node->input_count != 1 || tutti_type_count(type) != 1 ||
        !is_view(view) || tutti__is(view, "read"))
        return TUTTI_OK;
    const int64_t *axes;
    int count = tutti_attr_ints(node->attrs, node->attr_count, "axes", &axes);
    tutti_edge sum;
    if ((count > 0 && count != tutti__edge_type(node->inputs[0])->rank) ||
        !tutti_type_is_static(tutti__edge_type(view->inputs[0])))
        return TUTTI_OK;
    TUTTI_TRY(
        tutti__rewrite_add(rewrite, node, node->op->name, 1, &view->inputs[0], 0, NULL, &sum));
    return tutti__rewrite_reshape(rewrite, node, sum, type->rank, type->dims, ret);
}
