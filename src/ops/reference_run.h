/* reference_run.h: the parts of the reference interpreter to each other; users take
 * ops/reference.h. */
#ifndef TUTTI_OPS_REFERENCE_RUN_H
#define TUTTI_OPS_REFERENCE_RUN_H

#include "graph/graph.h"

/* Runs a node of operator cond, while or while_history. */
tutti_status tutti__reference_control(const tutti_node *node, tutti_tensor *const *inputs,
                                      tutti_tensor **ret_outputs);

#endif
