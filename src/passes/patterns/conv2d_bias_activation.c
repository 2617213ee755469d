/* conv2d_bias_activation.c: y = f(conv2d(x, kernel) + bias), f the identity or relu. */
#include "passes/patterns/conv2d.h"

/* Whether element-wise work on a sum without activation goes on: then bias is better fused with
 * that, into one walk over the map. */
static bool goes_on(const tutti_node *node, const tutti_uses *uses)
{
    uint32_t first = uses->first[node->id];
    if (uses->wanted[node->id] || uses->first[node->id + 1] - first != 1)
        return false;
    const tutti_node *user = uses->users[first];
    return (user->op->flags & TUTTI_OP_ELEMENTWISE) && user->output_count == 1 &&
           tutti__same_dims(&user->types[0], &node->types[0]);
}

static bool conv2d_bias_activation_match(tutti_node *node, const tutti_uses *uses,
                                         tutti_node_group *ret_group)
{
    bool activated = tutti__is(node, "relu");
    tutti_node *add = activated ? node->inputs[0].node : node;
    int conv = tutti__conv2d_of_add(add);
    if (conv < 0 || (!activated && goes_on(node, uses)))
        return false;
    ret_group->count = activated ? 3 : 2;
    ret_group->nodes[0] = add->inputs[conv].node;
    ret_group->nodes[1] = add;
    ret_group->nodes[2] = activated ? node : NULL;
    return true;
}

const tutti_pattern tutti_pattern_conv2d_bias_activation = {
    .name = "conv2d_bias_activation",
    .doc = "conv2d_bias_activation: y = f(conv2d(x, kernel) + bias), f the identity or relu",
    .order = 12,
    .match = conv2d_bias_activation_match,
};
