/* flow.h: finding lowered loops and branches: what flow.c (where nodes stand) and
 * flow_find.c (loops and branches themselves) share. */
#ifndef TUTTI_BRIDGE_GRAPHDEF_FLOW_H
#define TUTTI_BRIDGE_GRAPHDEF_FLOW_H

#include "bridge/graphdef/graphdef.h"

#define FLOW_CONTEXT 32 /* loops and branches that a node stands in */

/* One thing that a node stands in: side 0 or 1 of what output `output` of `node` decides, or the
 * loop whose first Enter is `node` (side 2). */
typedef struct tutti_graphdef_place {
    const tutti_graphdef_node *node;
    int output, side;
} tutti_graphdef_place;

/* All that a node stands in. */
typedef struct tutti_graphdef_context {
    int count;
    tutti_graphdef_place places[];
} tutti_graphdef_context;

typedef struct tutti_graphdef_frame {
    const tutti_graphdef_node *first; /* Enter */
    tutti_graphdef_flow *flow;
} tutti_graphdef_frame;

typedef struct tutti_graphdef_study {
    tutti_graphdef *def;
    tutti_graphdef_graph *graph;
    tutti_map frames;                        /* name → tutti_graphdef_frame */
    const tutti_graphdef_context **contexts; /* per node */
    int *levels;                             /* per node: Merges one after the other before it */
    int *order, ordered;                     /* nodes after what they take */
    tutti_map branches;                      /* → tutti_graphdef_flow */
    int *stamps, stamp;                      /* per node: visited by a search */
    int64_t steps;                           /* of all searches */
} tutti_graphdef_study;

static inline size_t tutti__graphdef_number(const tutti_graphdef_study *s,
                                            const tutti_graphdef_node *node)
{
    return (size_t)(node - s->graph->nodes.items);
}

/* The node of data input i; NULL: none. */
tutti_graphdef_node *tutti__graphdef_taken(const tutti_graphdef_study *s,
                                           const tutti_graphdef_node *node, size_t i,
                                           int *ret_output);
bool tutti__graphdef_is(const tutti_graphdef_node *node, const char *op);
/* A Merge that a NextIteration goes into; which input that is, or -1. */
int tutti__graphdef_next_input(const tutti_graphdef_study *s, const tutti_graphdef_node *node);
/* What decides a Switch, behind Identity nodes; NULL: nothing. */
const tutti_graphdef_node *tutti__graphdef_decider(const tutti_graphdef_study *s,
                                                   const tutti_graphdef_node *node,
                                                   int *ret_output);
/* The frame of an Enter, loop Merge, loop Switch or Exit, or NULL. */
tutti_graphdef_frame *tutti__graphdef_frame_of(const tutti_graphdef_study *s,
                                               const tutti_graphdef_node *node);
bool tutti__graphdef_stands_in(const tutti_graphdef_context *context, tutti_graphdef_place place);
/* The two sides that a Merge joins: which input is side 1; -1 when it joins none. */
int tutti__graphdef_joined(const tutti_graphdef_study *s, const tutti_graphdef_node *merge,
                           tutti_graphdef_place *ret);
/* The context of input i of a node. */
tutti_status tutti__graphdef_context_in(tutti_graphdef_study *s, const tutti_graphdef_node *node,
                                        size_t i, const tutti_graphdef_context **ret);
/* Loops and branches, once contexts are known. */
tutti_status tutti__graphdef_make_flows(tutti_graphdef_study *s);

#endif
