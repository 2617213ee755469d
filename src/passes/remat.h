/* remat.h: recomputation for those who choose what is to be computed again. */
#ifndef TUTTI_PASSES_REMAT_H
#define TUTTI_PASSES_REMAT_H

#include "graph/graph.h"

/* Whether a node may be computed a second time: it is a function of its inputs. */
bool tutti__remat_may(const tutti_node *node);

/* Rewrites as the pass does, by the marks of the nodes. *ret_copies: nodes that are there twice. */
tutti_status tutti__remat(tutti_graph *graph, int *ret_copies);

#endif
