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
} tutti_row_groups;
/* Checks every index against `limit` first. `free` the groups with tutti__row_groups_free. */
tutti_status tutti__row_groups(const tutti_call *call, const tutti_view *indices, int64_t limit,
                               tutti_row_groups *ret);
void tutti__row_groups_free(tutti_row_groups *groups);
/* The sum over the group that begins at `at` of element `column` of its rows. */
double tutti__row_groups_sum(const tutti_row_groups *groups, const tutti_view *rows,
                             int64_t row_size, int64_t at, int64_t column);
/* Where the next group begins. */
int64_t tutti__row_groups_next(const tutti_row_groups *groups, int64_t at);

/* The Adam rule for one element. */
typedef struct tutti_adam {
    double beta1, beta2, epsilon;
    double rate;           /* lr, with the correction of Keras' form in it */
    double scale1, scale2; /* what m and s are divided by: 1 in Keras' form */
} tutti_adam;
/* From the attributes. A step below 1 counts as 1. */
tutti_adam tutti__adam_make(const tutti_call *call, double lr, int64_t step);
/* Moves element i of variable, m and s by gradient g. */
void tutti__adam_element(const tutti_adam *adam, const tutti_view *variable, const tutti_view *m,
                         const tutti_view *s, int64_t i, double g);
/* Attributes of both Adam operators, and their check. */
#define TUTTI_ADAM_ATTRS                                                                           \
    {"beta1", TUTTI_ATTR_FLOAT, "0.9"}, {"beta2", TUTTI_ATTR_FLOAT, "0.999"},                      \
        {"epsilon", TUTTI_ATTR_FLOAT, "1e-7"},                                                     \
    {                                                                                              \
        "form", TUTTI_ATTR_STRING, "keras"                                                         \
    }
tutti_status tutti__need_adam_attrs(const tutti_infer *node);
void tutti__adam_attrs(const tutti_adam_options *options, tutti_attr ret_attrs[4]);

#endif
