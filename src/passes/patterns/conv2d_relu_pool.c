/* conv2d_relu_pool.c: p = max_pool2d(y), y = relu(conv2d(x, kernel) + bias). Gradients use y, then
 * it is a result too.
 *
 * Nothing that uses y outside can lead back: the inputs are x, kernel and bias, on which y depends.
 */
#include "passes/patterns/conv2d.h"

static bool conv2d_relu_pool_match(tutti_node *node, const tutti_uses *uses,
                                   tutti_node_group *ret_group)
{
    tutti_node *relu = tutti__is(node, "max_pool2d") ? node->inputs[0].node : NULL;
    if (relu == NULL || !tutti__is(relu, "relu"))
        return false;
    tutti_node *add = relu->inputs[0].node;
    int conv = tutti__conv2d_of_add(add);
    if (conv < 0 || !tutti__used_only_by(uses, add, relu) ||
        !tutti__used_only_by(uses, add->inputs[conv].node, add))
        return false;
    ret_group->count = 4;
    ret_group->nodes[0] = add->inputs[conv].node;
    ret_group->nodes[1] = add;
    ret_group->nodes[2] = relu;
    ret_group->nodes[3] = node;
    return true;
}

const tutti_pattern tutti_pattern_conv2d_relu_pool = {
    .name = "conv2d_relu_pool",
    .doc = "conv2d_relu_pool: p = max_pool2d(relu(conv2d(x, kernel) + bias))",
    .order = 5,
    .match = conv2d_relu_pool_match,
    .side_by_side = true,
};
