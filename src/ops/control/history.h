/* history.h: what loop variables were at the start of each round, as while_history gives it.
 *
 * The values of a variable are stacked along a new axis 0: [rounds, ...]. Where they differ in
 * shape, each is the leading block of its row, and the rest of the row is zero. `shapes`, i64,
 * holds the dimensions of each value, [rounds, rank], or one row, [1, rank], where all have the
 * same: then a row of the history is a value as it stands. */
#ifndef TUTTI_OPS_CONTROL_HISTORY_H
#define TUTTI_OPS_CONTROL_HISTORY_H

#include "ops/shape/move.h"

/* Whether a loop variable of this type has the same shape in every round. */
bool tutti__history_fixed(const tutti_type *type);

/* values[round * step] is the value at the start of each round. Without rounds the shape is that of
 * `last`. */
tutti_status tutti__history_stack(int64_t rounds, int step, tutti_tensor *const *values,
                                  const tutti_tensor *last, tutti_tensor **ret_stacked,
                                  tutti_tensor **ret_shapes);

/* The value at the start of a round, of `type` as far as that is known before it runs. */
tutti_sym tutti__history_row(tutti_sym history, tutti_sym shapes, tutti_sym round,
                             const tutti_type *type);

/* What history_row and its adjoint share. Inputs from `first` on: history, shapes, round. */
tutti_status tutti__history_infer(const tutti_infer *node, int first, tutti_type *ret_value);
/* Element (0, 0, ..) of the value is element `ret_start` of the history; `ret_move` goes from there
 * to a value of its own. */
tutti_status tutti__history_find(const tutti_kernel_call *call, int first, tutti_move *ret_move,
                                 int64_t *ret_start);

#endif
