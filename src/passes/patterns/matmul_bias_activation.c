/* matmul_bias_activation.c: a dense layer: y = f(a b + bias), f the identity or relu. */
#include "passes/patterns/bias.h"

/* A row [n] or [1, n], of which every row of the product gets a copy. */
static bool is_row_of(tutti_edge edge, const tutti_type *product)
{
    const tutti_type *bias = tutti__edge_type(edge);
    if (!tutti__is_one_row(edge) || bias->rank < 1 || bias->rank > product->rank ||
        bias->dims[bias->rank - 1] != product->dims[product->rank - 1])
        return false;
    for (int i = 0; i < bias->rank - 1; i++)
        if (bias->dims[i] != 1)
            return false;
    return true;
}

/* Which input of an addition is a product, the other being its bias; -1 when none is. */
static int product_of(const tutti_node *add)
{
    for (int i = 0; i < 2; i++) {
        tutti_edge product = add->inputs[i];
        if (tutti__is(product.node, "matmul") &&
            tutti_type_equal(tutti__edge_type(product), &add->types[0]) &&
            is_row_of(add->inputs[1 - i], &add->types[0]))
            return i;
    }
    return -1;
}

/* Whether element-wise work on the result goes on: then bias and activation are better fused with
 * that, into one walk over the product. */
static bool goes_on(const tutti_node *node, const tutti_uses *uses)
{
    uint32_t first = uses->first[node->id];
    if (uses->wanted[node->id] || uses->first[node->id + 1] - first != 1)
        return false;
    const tutti_node *user = uses->users[first];
    return (user->op->flags & TUTTI_OP_ELEMENTWISE) && user->output_count == 1 &&
           tutti__same_dims(&user->types[0], &node->types[0]);
}

static bool matmul_bias_activation_match(tutti_node *node, const tutti_uses *uses,
                                         tutti_node_group *ret_group)
{
    bool activated = tutti__is(node, "relu");
    tutti_node *add = activated ? node->inputs[0].node : node;
    int product = tutti__is(add, "add") ? product_of(add) : -1;
    if (product < 0 || goes_on(node, uses))
        return false;
    ret_group->count = activated ? 3 : 2;
    ret_group->nodes[0] = add->inputs[product].node;
    ret_group->nodes[1] = add;
    ret_group->nodes[2] = activated ? node : NULL;
    return true;
}

const tutti_pattern tutti_pattern_matmul_bias_activation = {
    .name = "matmul_bias_activation",
    .doc = "matmul_bias_activation: y = f(a b + bias), bias a row, f the identity or relu",
    .order = 10,
    .match = matmul_bias_activation_match,
};
