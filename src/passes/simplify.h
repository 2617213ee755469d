/* simplify.h: the rules of simplify.c. Each looks at one node and says what may stand for it.
 *
 * A rule is exact: values compare equal with == before and after, a NaN stays a NaN, the type
 * stays. The sign of a zero may change (x + 0, neg(a - b)). No rule leaves out a NaN or an
 * infinity: x * 0 is 0 for integers only. */
#ifndef TUTTI_PASSES_SIMPLIFY_H
#define TUTTI_PASSES_SIMPLIFY_H

#include "passes/rewrite.h"

/* Arithmetic. */
tutti_rewrite_rule tutti__simplify_add_zero;      /* x + 0 = 0 + x = x */
tutti_rewrite_rule tutti__simplify_add_negated;   /* x + (-y) = x - y */
tutti_rewrite_rule tutti__simplify_sub_zero;      /* x - 0 = x */
tutti_rewrite_rule tutti__simplify_sub_negated;   /* x - (-y) = x + y */
tutti_rewrite_rule tutti__simplify_mul_one;       /* x * 1 = 1 * x = x */
tutti_rewrite_rule tutti__simplify_mul_zero;      /* x * 0 = 0 of integers */
tutti_rewrite_rule tutti__simplify_divide_by_one; /* x / 1 = x; also x // 1 of integers, x ^ 1 */
tutti_rewrite_rule tutti__simplify_divide_by_two; /* x / 2^k = x * 2^-k */
tutti_rewrite_rule tutti__simplify_negated_sub;   /* -(x - y) = y - x */
tutti_rewrite_rule tutti__simplify_involution;    /* f(f(x)) = x */
tutti_rewrite_rule tutti__simplify_idempotent;    /* f(f(x)) = f(x) */
tutti_rewrite_rule tutti__simplify_same_operands; /* f(x, x) = x */
tutti_rewrite_rule tutti__simplify_cast;          /* to its own type; there and back without loss */
tutti_rewrite_rule tutti__simplify_position;      /* of the largest of widened values: unwidened */
tutti_rewrite_rule tutti__simplify_where; /* a condition that is always true, always false */
tutti_rewrite_rule
    tutti__simplify_broadcast_operand; /* operators that broadcast need no broadcast_to */

/* Shapes. */
tutti_rewrite_rule tutti__simplify_view;      /* views that change nothing, views of views */
tutti_rewrite_rule tutti__simplify_transpose; /* that change nothing, of transposes, of axes of 1 */
tutti_rewrite_rule tutti__simplify_matmul;    /* a transposed operand: the product's own flag */
tutti_rewrite_rule tutti__simplify_broadcast; /* that change nothing, of broadcasts */
tutti_rewrite_rule tutti__simplify_whole;     /* pieces, paddings, joins that change nothing */
tutti_rewrite_rule tutti__simplify_reduce_nothing; /* over axes of size 1: a reshape */
tutti_rewrite_rule tutti__simplify_reduce_view;    /* over all axes: of what the view shows */

#endif
