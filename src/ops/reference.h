/* reference.h: runs a graph node by node with reference kernels: no passes, no program. The oracle
 * of every test, and what constant folding and fused bodies' references use. */
#ifndef TUTTI_OPS_REFERENCE_H
#define TUTTI_OPS_REFERENCE_H

#include "graph/graph.h"

/* Runs one node on host tensors. *ret_outputs: node->output_count tensors, the caller's to release.
 */
tutti_status tutti__reference_node(const tutti_node *node, tutti_tensor *const *inputs,
                                   tutti_tensor **ret_outputs);

/* Runs an operator that stands in no graph. `rule` gives operator, name, attributes, counts and the
 * inputs' types, which say what is a handle; its outputs (types) are not looked at. Outputs start
 * as noise, so that an element that a kernel forgets shows. */
tutti_status tutti__reference_op(const tutti_infer *rule, tutti_tensor *const *inputs,
                                 tutti_tensor **ret_outputs);

/* Runs what `fetches` need. Values of placeholders, parameters and variables' handles come from
 * `feeds`, pairs of edge and tensor (a handle's tensor is updated in place by update operators).
 * Shapes are inferred from the values as it goes. Runs cond and while too. */
typedef struct tutti_reference_feed {
    tutti_edge edge;
    tutti_tensor *value;
} tutti_reference_feed;
tutti_status tutti__reference_run(const tutti_graph *graph, int feed_count,
                                  const tutti_reference_feed *feeds, int fetch_count,
                                  const tutti_edge *fetches, tutti_tensor **ret_values);

/* Runs a sub-graph, its targets too, on `count` arguments (its parameters by index): ret_results
 * gets one tensor per result. */
tutti_status tutti__reference_subgraph(const tutti_graph *graph, int count,
                                       tutti_tensor *const *arguments, tutti_tensor **ret_results);

#endif
