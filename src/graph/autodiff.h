/* autodiff.h: reverse-mode differentiation as a graph rewrite. */
#ifndef TUTTI_GRAPH_AUTODIFF_H
#define TUTTI_GRAPH_AUTODIFF_H

#include "graph/graph.h"

/* Adds to the graph the gradients of ys, weighted by y_grads (NULL, or an entry without a node:
 * ones), with respect to xs. ret_grads[i] without a node: no y depends on xs[i]. ret_rows[i] with a
 * node: ret_grads[i] holds rows (see tutti_grad); ret_rows NULL asks for dense gradients. */
tutti_status tutti__gradients(tutti_graph *graph, int y_count, const tutti_sym *ys,
                              const tutti_sym *y_grads, int x_count, const tutti_sym *xs,
                              tutti_sym *ret_grads, tutti_sym *ret_rows);

#endif
