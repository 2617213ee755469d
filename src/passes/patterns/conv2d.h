/* conv2d.h: what the patterns of convolutions look for. */
#ifndef TUTTI_PASSES_PATTERNS_CONV2D_H
#define TUTTI_PASSES_PATTERNS_CONV2D_H

#include "passes/patterns/bias.h"

/* Which input of an addition is a convolution, the other being its bias [filters] or
 * [1, 1, 1, filters]; -1 when none is. */
static inline int tutti__conv2d_of_add(const tutti_node *add)
{
    for (int i = 0; i < 2 && tutti__is(add, "add"); i++) {
        const tutti_type *bias = tutti__edge_type(add->inputs[1 - i]);
        if (tutti__is(add->inputs[i].node, "conv2d") && add->types[0].rank == 4 &&
            tutti_type_equal(tutti__edge_type(add->inputs[i]), &add->types[0]) && bias->rank >= 1 &&
            bias->dims[bias->rank - 1] == add->types[0].dims[3] &&
            tutti_type_count(bias) == add->types[0].dims[3] &&
            tutti__is_one_row(add->inputs[1 - i]))
            return i;
    }
    return -1;
}

/* Whether all users of a node are `user`. */
static inline bool tutti__used_only_by(const tutti_uses *uses, const tutti_node *node,
                                       const tutti_node *user)
{
    for (uint32_t u = uses->first[node->id]; u < uses->first[node->id + 1]; u++)
        if (uses->users[u] != user)
            return false;
    return !uses->wanted[node->id];
}

static inline bool tutti__same_edge(tutti_edge a, tutti_edge b)
{
    return a.node == b.node && a.index == b.index;
}

static inline bool tutti__is_zero(tutti_edge edge)
{
    tutti_tensor *constant = tutti__constant_of(edge);
    return constant != NULL && tutti_tensor_count(constant) == 1 &&
           tutti_tensor_get(constant, 0) == 0;
}

/* g = where(y > 0, max_pool2d_backward(y, dp), 0): the gradient of z in max_pool2d(y), y = relu(z)
 */
static inline bool tutti__is_map_gradient(const tutti_node *g, const tutti_uses *uses)
{
    if (!tutti__is(g, "where") || !tutti__is_zero(g->inputs[2]))
        return false;
    const tutti_node *above = g->inputs[0].node, *pool = g->inputs[1].node;
    return tutti__is(above, "greater") && tutti__is_zero(above->inputs[1]) &&
           tutti__is(pool, "max_pool2d_backward") &&
           tutti__same_edge(above->inputs[0], pool->inputs[0]) &&
           tutti__used_only_by(uses, above, g) && tutti__used_only_by(uses, pool, g);
}

#endif
