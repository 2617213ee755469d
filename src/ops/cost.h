/* cost.h: what a node of a graph costs. */
#ifndef TUTTI_OPS_COST_H
#define TUTTI_OPS_COST_H

#include "graph/graph.h"

/* By its operator's rule; zeros when it has none or shapes are not known. */
tutti_cost tutti__node_cost(const tutti_node *node);

#endif
