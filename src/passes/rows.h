/* rows.h: which nodes work on rows of a shape, for fusion with element-wise work on that shape. */
#ifndef TUTTI_PASSES_ROWS_H
#define TUTTI_PASSES_ROWS_H

#include "passes/group.h"

/* A reduction along the last axes, of rows that fit a tile. *ret_kept (optional): its operand's
 * type with 1 along these axes.
 *
 * Operators over rows (softmax, layer_norm) stay apart, though fused.reduce runs them: a sum with
 * its layer_norm took 1.06 to 1.18 times as long in tiles as by two kernels on 0.5 to 4 MiB, 1.25
 * on 32 MiB; softmax as long. */
bool tutti__works_on_rows(const tutti_node *node, tutti_type *ret_kept);
/* A sum or mean of floats over any axes, of which few elements are left. */
bool tutti__is_total(const tutti_node *node);

/* The type whose elements a node of a group walks over: of what works on rows, the operand's. */
const tutti_type *tutti__rows_full(const tutti_node *node);
bool tutti__group_has_rows(const tutti_node_group *group);
/* Whether two groups walk over the same elements in rows of the same length; or `b` is one node
 * that takes nothing but what `a` has once for each row. */
bool tutti__rows_agree(const tutti_node_group *a, const tutti_node_group *b);
/* The group without sums that nobody in it uses and that are none of rows; whether there were any.
 */
bool tutti__rows_drop_totals(const tutti_node_group *group, tutti_node_group *ret);

#endif
