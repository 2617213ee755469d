/* batch_norm.h: what the patterns of batch norm look for. */
#ifndef TUTTI_PASSES_PATTERNS_BATCH_NORM_H
#define TUTTI_PASSES_PATTERNS_BATCH_NORM_H

#include "passes/patterns/conv2d.h"

/* Whether every value from outside is there before the first node of the group: then the fused node
 * may stand where that one stood, and no path leads from one of its values back to it, however many
 * groups there are. */
static inline bool tutti__starts_complete(const tutti_node_group *group)
{
    tutti_edge inputs[TUTTI_GROUP_INPUTS];
    int count = tutti__group_inputs(group, TUTTI_GROUP_INPUTS, inputs);
    uint32_t first = group->nodes[0]->id;
    for (int i = 1; i < group->count; i++)
        first = group->nodes[i]->id < first ? group->nodes[i]->id : first;
    for (int i = 0; i < count && i < TUTTI_GROUP_INPUTS; i++)
        if (inputs[i].node->id >= first)
            return false;
    return count <= TUTTI_GROUP_INPUTS;
}

/* Whether `user` is all that takes an output of a node with several. */
static inline bool tutti__taken_only_by(const tutti_uses *uses, tutti_edge edge,
                                        const tutti_node *user)
{
    for (uint32_t u = uses->first[edge.node->id]; u < uses->first[edge.node->id + 1]; u++)
        for (int i = 0; uses->users[u] != user && i < uses->users[u]->input_count; i++)
            if (tutti__same_edge(uses->users[u]->inputs[i], edge))
                return false;
    return !uses->wanted[edge.node->id];
}

/* A sum of two values of its own shape. */
static inline bool tutti__is_plain_sum(const tutti_node *add)
{
    return tutti__is(add, "add") && add->inputs[0].node != add->inputs[1].node &&
           tutti_type_equal(tutti__edge_type(add->inputs[0]), &add->types[0]) &&
           tutti_type_equal(tutti__edge_type(add->inputs[1]), &add->types[0]);
}

#endif
