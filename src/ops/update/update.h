/* update.h: what the optimizers' update operators share. Numbers are computed in double and rounded
 * once to the variable's type. */
#ifndef TUTTI_OPS_UPDATE_UPDATE_H
#define TUTTI_OPS_UPDATE_UPDATE_H

#include "ops/state/state.h"

/* Input i is a variable of floats; input i a variable of input 0's type. */
tutti_status tutti__need_float_variable(const tutti_infer *node, int i);
tutti_status tutti__need_slot(const tutti_infer *node, int i);

/* A gradient that is rows: equal indices belong together. */
typedef struct tutti_row_groups {
    int64_t count;  /* of all rows */
    int64_t *order; /* rows sorted by index, those of equal index in the order they came */
    int64_t *index; /* of each row in that order */
    void *memory;   /* to be freed, or NULL */
} tutti_row_groups;
/* Checks every index against `limit` first. `free` the groups with tutti__row_groups_free. */
tutti_status tutti__row_groups(const tutti_kernel_call *call, const tutti_view *indices,
                               int64_t limit, tutti_row_groups *ret);
void tutti__row_groups_free(tutti_row_groups *groups);
/* The same in memory of the caller, of as many bytes as `count` indices need. */
size_t tutti__row_groups_bytes(int64_t count);
tutti_status tutti__row_groups_in(const tutti_kernel_call *call, const tutti_view *indices,
                                  int64_t limit, void *memory, tutti_row_groups *ret);
/* The sum over the group that begins at `at` of element `column` of its rows. */
double tutti__row_groups_sum(const tutti_row_groups *groups, const tutti_view *rows,
                             int64_t row_size, int64_t at, int64_t column);
/* Where the next group begins. */
int64_t tutti__row_groups_next(const tutti_row_groups *groups, int64_t at);

/* A gradient's rows in which every sum stands in one piece: rows[i] is the sum over all of index
 * indices[i] where i is the first of them, else 0. Its norm is that of the dense gradient, and its
 * elements may be clipped. */
tutti_sym tutti__combine_rows(tutti_sym rows, tutti_sym indices);
/* f32 []: the sum of the squares of all elements of all xs. */
tutti_sym tutti__square_sum(int count, const tutti_sym *xs);
/* Which elements of an input, of `count`, such a node counts. */
void tutti__square_sum_range(const tutti_attr *attrs, int attr_count, int input, int64_t count,
                             int64_t *ret_first, int64_t *ret_end);
/* bool []: every element of every x is finite. */
tutti_sym tutti__all_finite(int count, const tutti_sym *xs);

#endif
