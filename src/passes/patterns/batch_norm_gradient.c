/* batch_norm_gradient.c: the gradients of y = relu(batch_norm(x) + residual): with
 * g = y > 0 ? given + more : 0,  batch_norm_backward(x, …, g). g itself is a value too where the
 * residual's gradient uses it; `more` is the gradient of a second user of y and may be absent. */
#include "passes/patterns/batch_norm.h"

enum { GRAD = 4 };

/* where(y > 0, given, 0), all of one type. */
static bool is_mask(const tutti_node *g, const tutti_uses *uses)
{
    if (!tutti__is(g, "where") || !tutti__is_zero(g->inputs[2]))
        return false;
    const tutti_node *above = g->inputs[0].node;
    return tutti__is(above, "greater") && tutti__is_zero(above->inputs[1]) &&
           tutti__used_only_by(uses, above, g) &&
           tutti_type_equal(tutti__edge_type(above->inputs[0]), &g->types[0]) &&
           tutti_type_equal(tutti__edge_type(g->inputs[1]), &g->types[0]);
}

static bool batch_norm_gradient_match(tutti_node *node, const tutti_uses *uses,
                                      tutti_node_group *ret_group)
{
    if (!tutti__is(node, "batch_norm_backward"))
        return false;
    tutti_node *g = node->inputs[GRAD].node;
    if (!is_mask(g, uses))
        return false;
    tutti_node *add = g->inputs[1].node;
    if (tutti__is_plain_sum(add) && tutti__used_only_by(uses, add, g))
        ret_group->nodes[ret_group->count++] = add;
    ret_group->nodes[ret_group->count++] = g->inputs[0].node;
    ret_group->nodes[ret_group->count++] = g;
    ret_group->nodes[ret_group->count++] = node;
    return tutti__starts_complete(ret_group);
}

const tutti_pattern tutti_pattern_batch_norm_gradient = {
    .name = "batch_norm_gradient",
    .doc = "batch_norm_gradient: batch_norm_backward(x, ..., y > 0 ? given + more : 0)",
    .order = 14,
    .match = batch_norm_gradient_match,
    .side_by_side = true,
};
