/* conv2d.h: what the patterns of convolutions look for. */
#ifndef TUTTI_PASSES_PATTERNS_CONV2D_H
#define TUTTI_PASSES_PATTERNS_CONV2D_H

#include "passes/pattern.h"

/* Which input of an addition is a convolution, the other being its bias [filters] or
 * [1, 1, 1, filters]; -1 when none is. */
static inline int tutti__conv2d_of_add(const tutti_node *add)
{
    for (int i = 0; i < 2 && tutti__is(add, "add"); i++) {
        const tutti_type *bias = tutti__edge_type(add->inputs[1 - i]);
        if (tutti__is(add->inputs[i].node, "conv2d") && add->types[0].rank == 4 &&
            tutti_type_equal(tutti__edge_type(add->inputs[i]), &add->types[0]) && bias->rank >= 1 &&
            bias->dims[bias->rank - 1] == add->types[0].dims[3] &&
            tutti_type_count(bias) == add->types[0].dims[3])
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

#endif
