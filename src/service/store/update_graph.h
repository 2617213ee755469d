/* update_graph.h: a serialised graph that updates one variable, run by the house's engine. So any
 * optimizer, also a user's, is an update rule.
 *
 * By name the graph has: "value", the variable; "gradient", a placeholder of its type, or "indices"
 * and "rows" (i64 [n] and [n, ...]), or both kinds; (optional) "staleness", an f32 scalar. Its
 * first target is the update. All other variables are slots of the value (its shape) or counters. A
 * variable whose name ends in "learning_rate" is multiplied by an update's factor. */
#ifndef TUTTI_SERVICE_STORE_UPDATE_GRAPH_H
#define TUTTI_SERVICE_STORE_UPDATE_GRAPH_H

#include "graph/graph.h"
#include "service/store/rule.h"
#include "tutti/session.h"

typedef struct tutti_update_graph {
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym value, gradient, indices, rows, staleness, rate, target;
    TUTTI_VEC(tutti_sym) variables; /* all, in the order of the graph; the value among them */
    double base;                    /* of the learning rate */
    double factor;                  /* that it has now */
} tutti_update_graph;

/* `type`: what "value" must be. `name` stands in messages. */
tutti_status tutti__store_update_graph_open(const char *name, tutti_packed_data bytes,
                                            const tutti_type *type, tutti_update_graph *ret);
void tutti__store_update_graph_close(tutti_update_graph *g); /* a zeroed one is fine */
/* The rule of a shard that has [begin, begin + part.dims[axis]) along an axis of a variable, from
 * the serialised rule of the whole; *ret_data is from malloc. For a table whose rows exist where
 * they are touched `part` is a block of rows. */
tutti_status tutti__store_update_graph_cut(tutti_packed_data bytes, const tutti_type *whole,
                                           const tutti_type *part, int axis, int64_t begin,
                                           void **ret_data, size_t *ret_size);
/* Runs it on a dense gradient, or on rows with their indices (i64 [n]). */
tutti_status tutti__store_update_graph_run(tutti_update_graph *g, const tutti_store_update *update,
                                           tutti_tensor *gradient, tutti_tensor *indices);
/* A tensor over a gradient's elements, which live as long: [type], or [rows, ...]. */
tutti_status tutti__store_gradient_tensor(const tutti_type *type,
                                          const tutti_store_gradient *gradient, tutti_tensor **ret);

#endif
