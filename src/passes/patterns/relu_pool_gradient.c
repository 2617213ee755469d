/* relu_pool_gradient.c: the gradient of z in max_pool2d(y), y = relu(z): where(y > 0,
 * max_pool2d_backward(y, dp), 0). A window's gradient goes to its maximum if that is above 0, which
 * takes one pass over the map instead of two. */
#include "passes/patterns/conv2d.h"

static bool relu_pool_gradient_match(tutti_node *node, const tutti_uses *uses,
                                     tutti_node_group *ret_group)
{
    if (!tutti__is_map_gradient(node, uses))
        return false;
    ret_group->nodes[ret_group->count++] = node->inputs[0].node;
    ret_group->nodes[ret_group->count++] = node->inputs[1].node;
    ret_group->nodes[ret_group->count++] = node;
    return true;
}

const tutti_pattern tutti_pattern_relu_pool_gradient = {
    .name = "relu_pool_gradient",
    .doc = "relu_pool_gradient: where(y > 0, max_pool2d_backward(y, dp), 0), y = relu(z)",
    .order = 6,
    .match = relu_pool_gradient_match,
};
