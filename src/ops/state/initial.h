/* initial.h: initial values of variables as nodes. */
#ifndef TUTTI_OPS_STATE_INITIAL_H
#define TUTTI_OPS_STATE_INITIAL_H

#include "ops/state/state.h"

/* The type of a variable that starts with `init`; `dtype` TUTTI_NO_DTYPE: the natural one. */
tutti_status tutti__init_type(const tutti_init *init, tutti_dtype dtype, tutti_type *ret_type);

/* Fans as Keras counts them, at least 1. */
void tutti__fans(int rank, const int64_t *dims, double *ret_in, double *ret_out);

/* The initial value as a node "initial_value" in the present scope. */
tutti_sym tutti__initial_value(tutti_graph *graph, const tutti_init *init, const tutti_type *type,
                               int64_t seed);

/* ---- initial_order.c ---- */
/* Of a value that is computed from other variables: the same, computed when these have their
 * initial values. */
tutti_status tutti__after_initializers(tutti_graph *graph, tutti_edge *value);

#endif
