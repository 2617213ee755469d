/* bias.h: which addend is a bias. */
#ifndef TUTTI_PASSES_PATTERNS_BIAS_H
#define TUTTI_PASSES_PATTERNS_BIAS_H

#include "passes/pattern.h"

/* Is it one row, whatever the number of rows of the batch: [n], or [1, n] of a variable, of a
 * constant, or made of [n]? By shapes alone anything in a batch of one row is a bias (a residual,
 * the gradient of another use); and a sum that is fused is not rounded where one that is not is, so
 * that bits would depend on the number of rows. */
static inline bool tutti__is_one_row(tutti_edge edge)
{
    const tutti_node *node = edge.node;
    if (tutti__edge_type(edge)->rank == 1)
        return true;
    while (tutti__is(node, "cast"))
        node = node->inputs[0].node;
    if (tutti__is(node, "reshape") || tutti__is(node, "expand_dims"))
        return tutti__edge_type(node->inputs[0])->rank == 1;
    return tutti__is(node, "read") || tutti__is(node, "constant");
}

#endif
