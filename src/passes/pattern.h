/* pattern.h: sub-graphs that one kernel may claim. One file each in patterns/, ending in one
 * descriptor. A match becomes a fused node of the pattern's name, if a kernel bids for that.
 * tables: tutti_pattern */
#ifndef TUTTI_PASSES_PATTERN_H
#define TUTTI_PASSES_PATTERN_H

#include "passes/group.h"

typedef struct tutti_pattern {
    const char *name; /* attribute "pattern" of the fused node, by which kernels know it */
    const char *doc;  /* one line with the formula */
    int order;        /* ascending: the larger of two patterns that overlap comes first */
    /* Whether a sub-graph of this kind ends in `node`: its nodes in topological order, `node` last.
     * Operators, types and attributes are looked at, and `uses` where another fusion might be the
     * better one. That the inner values are used nowhere else, and that nothing waits for them, is
     * seen to elsewhere. */
    bool (*match)(tutti_node *node, const tutti_uses *uses, tutti_node_group *ret_group);
    /* The nodes stand side by side: all may be used outside, and `match` has made sure that no path
     * leads from one to another, also where other matches of this pattern count as one node. They
     * may fail, and have several outputs. */
    bool side_by_side;
    /* The nodes may draw random numbers: from a counter that is an input, so that they are
     * functions of their inputs all the same. */
    bool draws;
} tutti_pattern;

#endif
