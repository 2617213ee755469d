/* matmul_add.c: a product that is added to what is there, as gradients from several uses are:
 * y = x + a b. Where nobody else needs x, the product accumulates in its memory. */
#include "passes/pattern.h"

static bool is_product(tutti_edge edge, const tutti_node *add)
{
    return tutti__is(edge.node, "matmul") &&
           tutti_type_equal(tutti__edge_type(edge), &add->types[0]);
}

/* Which input is the product: of two the one that is made last. -1: none, or nothing to add to. */
static int product_of(const tutti_node *add)
{
    int found = -1;
    for (int i = 0; i < 2; i++)
        if (is_product(add->inputs[i], add) &&
            tutti_type_equal(tutti__edge_type(add->inputs[1 - i]), &add->types[0]) &&
            (found < 0 || add->inputs[i].node->id > add->inputs[found].node->id))
            found = i;
    return found >= 0 && add->inputs[0].node != add->inputs[1].node ? found : -1;
}

/* Whether x is made for this sum only, by something that is not element-wise: else the sum is
 * better fused with that. */
static bool accumulates(const tutti_node *add, int product, const tutti_uses *uses)
{
    const tutti_node *x = add->inputs[1 - product].node;
    if (x->scratch == NULL || uses->wanted[x->id] ||
        uses->first[x->id + 1] - uses->first[x->id] != 1)
        return false;
    return tutti__is(x, "matmul") || (tutti__is(x, "add") && product_of(x) >= 0);
}

static bool matmul_add_match(tutti_node *node, const tutti_uses *uses, tutti_node_group *ret_group)
{
    int product = tutti__is(node, "add") ? product_of(node) : -1;
    if (product < 0 || !accumulates(node, product, uses))
        return false;
    ret_group->count = 2;
    ret_group->nodes[0] = node->inputs[product].node;
    ret_group->nodes[1] = node;
    return true;
}

const tutti_pattern tutti_pattern_matmul_add = {
    .name = "matmul_add",
    .doc = "matmul_add: y = x + a b, x a sum of products that nobody else needs",
    .order = 30,
    .match = matmul_add_match,
};
