/* dropout_add.c: y = residual + dropout(x), as in the blocks of a transformer. Of two dropouts that
 * meet the later one is taken. The gradient, dropout(dy), draws the same numbers again. */
#include "passes/patterns/conv2d.h"

static bool dropout_add_match(tutti_node *node, const tutti_uses *uses, tutti_node_group *ret_group)
{
    int found = -1;
    for (int i = 0; i < 2 && tutti__is(node, "add"); i++)
        if (tutti__is(node->inputs[i].node, "dropout") &&
            tutti_type_equal(tutti__edge_type(node->inputs[0]), &node->types[0]) &&
            tutti_type_equal(tutti__edge_type(node->inputs[1]), &node->types[0]) &&
            (found < 0 || node->inputs[i].node->id > node->inputs[found].node->id))
            found = i;
    if (found < 0 || node->inputs[0].node == node->inputs[1].node ||
        !tutti__used_only_by(uses, node->inputs[found].node, node))
        return false;
    ret_group->count = 2;
    ret_group->nodes[0] = node->inputs[found].node;
    ret_group->nodes[1] = node;
    return true;
}

const tutti_pattern tutti_pattern_dropout_add = {
    .name = "dropout_add",
    .doc = "dropout_add: y = residual + dropout(x)",
    .order = 16,
    .match = dropout_add_match,
    .draws = true,
};
