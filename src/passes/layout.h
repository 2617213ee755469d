/* layout.h: parts of a graph whose axes are put into another order; see layout.c. */
#ifndef TUTTI_PASSES_LAYOUT_H
#define TUTTI_PASSES_LAYOUT_H

#include "passes/group.h"

enum { TUTTI_LAYOUT_RIM = 64 };

/* Values whose axes are to be reordered: new axis i is old axis order[i]. */
typedef struct tutti_region {
    tutti_rewrite *rewrite;
    const tutti_uses *uses;
    bool *member;       /* by id */
    tutti_edge *turned; /* by id: of members, once they are turned */
    tutti_node **nodes; /* members, in topological order */
    int count;
    int rank, order[TUTTI_MAX_RANK];
    struct {
        tutti_edge from, to;
    } rim[TUTTI_LAYOUT_RIM]; /* values from outside that have been transposed */
    int rim_count;
} tutti_region;

/* Whether a node works the same whatever the order of its axes, which its attributes may name. */
bool tutti__layout_is_free(const tutti_region *r, const tutti_node *node);
/* Whether it transposes by the region's order, or by the inverse of it. */
bool tutti__layout_is_order(const tutti_region *r, const tutti_node *node);
bool tutti__layout_is_inverse(const tutti_region *r, const tutti_node *node);
/* A reduction that takes the reordered value as well: its result has no axis in another order. */
bool tutti__layout_absorbs(const tutti_region *r, const tutti_node *node);
/* The dimensions of an operand, with the axes of 1 that broadcasting puts before them. */
void tutti__layout_padded(const tutti_region *r, const tutti_type *type, int64_t *ret_dims);

/* Bytes that transposes move less when the region is turned; negative: more. */
int64_t tutti__layout_gain(const tutti_region *r);
/* Turns it: members are replaced by new nodes, transposed back where somebody outside needs that.
 */
tutti_status tutti__layout_turn(tutti_region *r);

#endif
