/* cells.h: steps of recurrent cells on rows of floats, one set for each instruction set. What they
 * compute stands in ops/network/lstm_cell.c and its neighbours.
 * tables: tutti_rows_cell */
#ifndef TUTTI_DEVICE_CPU_RECURRENT_CELLS_H
#define TUTTI_DEVICE_CPU_RECURRENT_CELLS_H

#include "ops/network/recurrent.h"

/* One row at one time. Arrays that a cell does not have are NULL. */
typedef struct tutti_row_step {
    int64_t units;
    const float *a, *b; /* forward: x kernel and h recurrent, [gates * units], without biases */
    const float *bias, *state_bias;
    float *h, *c, *reserve; /* forward: states are overwritten, reserve is written */
    const float *h_now, *h_before, *c_before, *kept, *kept_grad; /* backward */
    float *dh, *dc, *da, *db;                                    /* backward; db may be da */
} tutti_row_step;

typedef struct tutti_rows_cell {
    const char *isa;
    const tutti_cell *cell;
    void (*step)(const tutti_row_step *s);
    void (*back)(const tutti_row_step *s);
    void (*add)(float *to, const float *from, int64_t count);      /* to += from */
    void (*round)(int64_t count, const float *from, uint16_t *to); /* to bf16 */
} tutti_rows_cell;

const tutti_rows_cell *tutti__rows_cell(const tutti_cell *cell);

#endif
