/* conv2d_pool_gradient.c: the gradients of a layer p = max_pool2d(y), y = relu(conv2d(x, kernel) +
 * bias), whose input needs none: with g = max_pool2d_backward(y, dp) where y > 0, else 0,
 *     dkernel = conv2d_backward_kernel(x, g)    dbias = sum of g over batch, height and width
 *
 * Nothing that uses one of the two can lead to the other: both depend on y and dp, and y on x. */
#include "passes/patterns/conv2d.h"

/* Over all axes but the last. */
static bool is_bias_gradient(const tutti_node *sum)
{
    const int64_t *axes;
    int count = tutti_attr_ints(sum->attrs, sum->attr_count, "axes", &axes), seen = 0;
    for (int i = 0; i < count; i++)
        seen |= 1 << (axes[i] < 0 ? axes[i] + 4 : axes[i]);
    return tutti__is(sum, "sum") && count == 3 && seen == 7;
}

/* The users of g: the kernel's gradient and, if there is one, the bias's; false if there are more.
 */
static bool find_gradients(const tutti_node *g, const tutti_uses *uses, tutti_node **ret_kernel,
                           tutti_node **ret_bias)
{
    *ret_kernel = *ret_bias = NULL;
    for (uint32_t u = uses->first[g->id]; u < uses->first[g->id + 1]; u++) {
        tutti_node *user = uses->users[u];
        if (*ret_kernel == NULL && tutti__is(user, "conv2d_backward_kernel") &&
            user->input_count == 2 && user->inputs[1].node == g && user->inputs[0].node != g)
            *ret_kernel = user;
        else if (*ret_bias == NULL && is_bias_gradient(user))
            *ret_bias = user;
        else
            return false;
    }
    return *ret_kernel != NULL && !uses->wanted[g->id];
}

/* Whether y = relu(conv2d(x, ...) + bias): then y depends on x. */
static bool depends_on(tutti_edge y, tutti_edge x)
{
    if (!tutti__is(y.node, "relu"))
        return false;
    const tutti_node *add = y.node->inputs[0].node;
    int conv = tutti__conv2d_of_add(add);
    return conv >= 0 && tutti__same_edge(add->inputs[conv].node->inputs[0], x);
}

static bool conv2d_pool_gradient_match(tutti_node *node, const tutti_uses *uses,
                                       tutti_node_group *ret_group)
{
    int input = tutti__is(node, "conv2d_backward_kernel") ? 1 : tutti__is(node, "sum") ? 0 : -1;
    if (input < 0 || node->input_count <= input)
        return false;
    tutti_node *g = node->inputs[input].node, *kernel, *bias;
    if (!tutti__is_map_gradient(g, uses) || !find_gradients(g, uses, &kernel, &bias) ||
        !depends_on(g->inputs[1].node->inputs[0], kernel->inputs[0]))
        return false;
    tutti_node *last = bias == NULL || bias->id < kernel->id ? kernel : bias;
    if (last != node)
        return false;
    ret_group->nodes[ret_group->count++] = g->inputs[0].node;
    ret_group->nodes[ret_group->count++] = g->inputs[1].node;
    ret_group->nodes[ret_group->count++] = g;
    if (bias != NULL)
        ret_group->nodes[ret_group->count++] = last == kernel ? bias : kernel;
    ret_group->nodes[ret_group->count++] = last;
    return true;
}

const tutti_pattern tutti_pattern_conv2d_pool_gradient = {
    .name = "conv2d_pool_gradient",
    .doc =
        "conv2d_pool_gradient: gradients of kernel and bias of max_pool2d(relu(conv2d(x, kernel) "
        "+ bias)), without the gradient of the map",
    .order = 4,
    .match = conv2d_pool_gradient_match,
    .side_by_side = true,
};
