/* einsum.h: an einsum becomes sums, products and transposes that have fast kernels.
 *
 * Invariants:
 *  1. A labelled value has one axis for each label of its term, in that order, and no label twice.
 *  2. Axes of size 1 have no label: they are left out at the start and come back at the end. So an
 *     axis of "..." that broadcasts is one that an operand does not have.
 *  3. In deterministic mode neither the order of a sum nor who multiplies whom depends on the sizes
 *     of labels that the result has: one of them may be the batch, of which a replica has a share,
 *     perhaps of one row. */
#ifndef TUTTI_PASSES_EINSUM_H
#define TUTTI_PASSES_EINSUM_H

#include "ops/linear/equation.h"
#include "passes/rewrite.h"

typedef struct tutti_labelled {
    tutti_edge edge;
    tutti_term term;
} tutti_labelled;

/* One einsum that is taken apart. */
typedef struct tutti_einsum_parts {
    tutti_rewrite *rewrite;
    const tutti_node *node;
    tutti_equation equation;
    int64_t sizes[TUTTI_LABELS]; /* 1 where a label is not used */
    tutti_term wanted;           /* the result's labels of more than 1 element */
} tutti_einsum_parts;

/* Other dimensions; a reshape of a reshape is one. */
tutti_status tutti__einsum_reshape(const tutti_einsum_parts *parts, tutti_edge x, int rank,
                                   const int64_t *dims, tutti_edge *ret);
/* The axes in another order of the same labels. */
tutti_status tutti__einsum_arrange(const tutti_einsum_parts *parts, const tutti_labelled *x,
                                   const tutti_term *order, tutti_labelled *ret);
/* Summed over the labels that are not in the set `kept`. */
tutti_status tutti__einsum_sum(const tutti_einsum_parts *parts, const tutti_labelled *x,
                               uint64_t kept, tutti_labelled *ret);
/* The sum over labels that are not in `kept`, each of which both have, of the product of two
 * values, in any order of axes. `last`: what comes out is the result, so its order counts. */
tutti_status tutti__einsum_multiply(const tutti_einsum_parts *parts, const tutti_labelled *a,
                                    const tutti_labelled *b, uint64_t kept, bool last,
                                    tutti_labelled *ret);

#endif
