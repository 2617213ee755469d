/* conv2d_chain.c: y = g(f(conv2d(x, kernel) + bias) + residual) whose kernel is a constant, as in
 * inference: f bounds (relu, relu6, clip), g bounds or any function of one element; each but the
 * convolution may be absent. Training keeps to the smaller patterns, because gradients want the
 * values in between. */
#include "passes/patterns/conv2d.h"

static bool is_bounds(const tutti_node *node)
{
    return tutti__is(node, "relu") || tutti__is(node, "relu6") || tutti__is(node, "clip");
}

static bool is_function(const tutti_node *node)
{
    return (node->op->flags & TUTTI_OP_ELEMENTWISE) && node->input_count == 1 &&
           node->output_count == 1 &&
           tutti_type_equal(tutti__edge_type(node->inputs[0]), &node->types[0]);
}

static bool is_conv(const tutti_node *node)
{
    return tutti__is(node, "conv2d") && tutti__constant_of(node->inputs[1]) != NULL;
}

/* The convolution of an addition of a bias, which is the other input, or the node itself. */
static tutti_node *conv_under(tutti_node *node)
{
    int conv = tutti__conv2d_of_add(node);
    return conv < 0 ? node : node->inputs[conv].node;
}

static void conv2d_chain_push(tutti_node_group *group, tutti_node *node)
{
    group->nodes[group->count++] = node;
}

/* bounded(conv + bias), from the convolution down to `node`; false where it is something else. */
static bool push_inner(tutti_node_group *group, tutti_node *node, bool bounded,
                       const tutti_uses *uses, const tutti_node *user)
{
    tutti_node *sum = bounded && is_bounds(node) ? node->inputs[0].node : node;
    tutti_node *conv = conv_under(sum);
    if (!is_conv(conv) || !tutti__used_only_by(uses, node, user))
        return false;
    conv2d_chain_push(group, conv);
    if (sum != conv)
        conv2d_chain_push(group, sum);
    if (node != sum)
        conv2d_chain_push(group, node);
    return true;
}

/* A sum of two of one shape, one of which is such a layer. */
static bool push_sum(tutti_node_group *group, tutti_node *add, const tutti_uses *uses)
{
    for (int i = 0; i < 2 && tutti__is(add, "add"); i++) {
        tutti_node_group inner = {0};
        if (!tutti_type_equal(tutti__edge_type(add->inputs[0]), &add->types[0]) ||
            !tutti_type_equal(tutti__edge_type(add->inputs[1]), &add->types[0]) ||
            add->inputs[0].node == add->inputs[1].node)
            return false;
        /* The later of two layers, whose convolution is nearer: the other is there by then. */
        int at = add->inputs[0].node->id > add->inputs[1].node->id ? i : 1 - i;
        if (!push_inner(&inner, add->inputs[at].node, true, uses, add))
            continue;
        conv2d_chain_push(&inner, add);
        *group = inner;
        return true;
    }
    return false;
}

static bool conv2d_chain_match(tutti_node *node, const tutti_uses *uses,
                               tutti_node_group *ret_group)
{
    tutti_node_group group = {0};
    bool last = is_function(node);
    tutti_node *sum = last ? node->inputs[0].node : node;
    if (node->types[0].rank != 4 || (last && !tutti__used_only_by(uses, sum, node)))
        return false;
    if (!push_sum(&group, sum, uses)) {
        tutti_node *conv = conv_under(sum);
        if (!is_conv(conv))
            return false;
        conv2d_chain_push(&group, conv);
        if (sum != conv)
            conv2d_chain_push(&group, sum);
    }
    if (last)
        conv2d_chain_push(&group, node);
    *ret_group = group;
    return group.count >= 2;
}

const tutti_pattern tutti_pattern_conv2d_chain = {
    .name = "conv2d_chain",
    .doc = "conv2d_chain: y = g(f(conv2d(x, kernel) + bias) + residual), kernel a constant",
    .order = 11,
    .match = conv2d_chain_match,
};
