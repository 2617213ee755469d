/* batch_norm_activation.c: y = relu(batch_norm(x) + residual), the residual may be absent. Mean and
 * variance are values too, which gradients and moving averages use.
 *
 * Of two norms that meet the later one is taken: the other is the residual, and there before it. */
#include "passes/patterns/batch_norm.h"

static bool is_norm(tutti_edge edge, const tutti_node *user, const tutti_uses *uses)
{
    return tutti__is(edge.node, "batch_norm") && edge.index == 0 &&
           tutti__taken_only_by(uses, edge, user);
}

static bool batch_norm_activation_match(tutti_node *node, const tutti_uses *uses,
                                        tutti_node_group *ret_group)
{
    if (!tutti__is(node, "relu"))
        return false;
    tutti_edge norm = node->inputs[0];
    tutti_node *add = tutti__is_plain_sum(norm.node) ? norm.node : NULL;
    if (add != NULL) {
        int later = add->inputs[0].node->id > add->inputs[1].node->id ? 0 : 1;
        norm = add->inputs[later];
        if (!tutti__used_only_by(uses, add, node))
            return false;
    }
    if (!is_norm(norm, add != NULL ? add : node, uses))
        return false;
    ret_group->nodes[ret_group->count++] = norm.node;
    if (add != NULL)
        ret_group->nodes[ret_group->count++] = add;
    ret_group->nodes[ret_group->count++] = node;
    return tutti__starts_complete(ret_group);
}

const tutti_pattern tutti_pattern_batch_norm_activation = {
    .name = "batch_norm_activation",
    .doc = "batch_norm_activation: y = relu(batch_norm(x) + residual), with or without residual",
    .order = 14,
    .match = batch_norm_activation_match,
    .side_by_side = true,
};
