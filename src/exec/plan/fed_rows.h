/* fed_rows.h: what each device takes of the values that a run is fed. */
#ifndef TUTTI_EXEC_PLAN_FED_ROWS_H
#define TUTTI_EXEC_PLAN_FED_ROWS_H

#include "passes/pass.h"

struct tutti_plan_piece;

/* Where a fed value is read by nothing but a slice of its rows, the piece is fed these rows. */
tutti_status tutti__fed_rows_find(tutti_piece_graph *piece);
/* The piece's inputs from the values that the run is fed: references, to be dropped by the caller;
 * none are left on failure. */
tutti_status tutti__fed_rows_take(const struct tutti_plan_piece *piece, tutti_tensor *const *values,
                                  tutti_tensor **ret);

#endif
