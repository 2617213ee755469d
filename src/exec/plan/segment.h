/* segment.h: cuts a graph where shapes depend on data. */
#ifndef TUTTI_EXEC_PLAN_SEGMENT_H
#define TUTTI_EXEC_PLAN_SEGMENT_H

#include "graph/graph.h"

/* The nodes that must wait: they follow a value of unknown shape; when there are any, updates wait
 * too, so that a run still has one commit, and so do all that meet one that waits: the peers of a
 * collective, a send and its recv. ret_any: whether anything waits. ret_late: by node id, zeroed.
 * fallback: the device of nodes without a wish. */
tutti_status tutti__segment_find(tutti_graph *graph, const char *fallback, bool *ret_any,
                                 bool *ret_late);

/* Cuts off what is late: `graph` keeps the early nodes and gets as results the early fetches and
 * the edges that late nodes use; ret_rest is a copy of everything, to be fed at those edges. */
typedef struct tutti_segment_cut {
    tutti_graph *rest;
    int feed_count, fetch_count, target_count;
    tutti_edge *feeds, *fetches; /* of rest */
    tutti_node **targets;
    int *fetch_map; /* by job result: early result index, or ~index into fetches */
} tutti_segment_cut;
tutti_status tutti__segment_cut(tutti_graph *graph, const bool *late, tutti_segment_cut *ret);
void tutti__cut_free(tutti_segment_cut *cut);

#endif
