/* attr.h: attributes from inside the graph room. */
#ifndef TUTTI_GRAPH_ATTR_H
#define TUTTI_GRAPH_ATTR_H

#include "graph/graph.h"

const char *tutti__attr_kind_name(tutti_attr_kind kind);

/* Deep copy into a graph under `name` (a string that outlives it); tensors and sub-graphs are
 * retained. */
tutti_status tutti__attr_copy(tutti_graph *graph, const tutti_attr *from, const char *name,
                              tutti_attr *ret);

/* Checks what was given against the operator's table and fills in the defaults, in its order. */
tutti_status tutti__attrs_complete(tutti_graph *graph, const tutti_op *op, int given_count,
                                   const tutti_attr *given, int *ret_count, tutti_attr **ret_attrs);

/* Copies everything of a node but its edges; then its edges, through a map from old id to new node;
 * then, when the map is complete, what it is colocated with. Where that has no copy, a free node
 * takes its device. */
tutti_status tutti__node_copy(tutti_graph *to, const tutti_node *from, tutti_node **ret);
/* Gives output 0 of a node the sharding that an edge has, if it has one. */
tutti_status tutti__node_copy_sharding(tutti_graph *to, tutti_edge from, tutti_node *node);
tutti_status tutti__node_copy_edges(tutti_graph *to, const tutti_node *from, tutti_node **map,
                                    tutti_node *node);
tutti_status tutti__node_copy_colocation(tutti_graph *to, const tutti_node *from, tutti_node **map,
                                         tutti_node *node);

#endif
