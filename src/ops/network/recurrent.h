/* recurrent.h: what simple_rnn, gru and lstm share. A recurrent operator has inputs
 *     x [batch, time, features], states [batch, units] each, kernel [features, gates * units],
 *     recurrent [units, gates * units], bias, and possibly lengths [batch]
 * and outputs
 *     y [batch, time, units], final states, and possibly reserve [batch, time, kept * units],
 *     which the backward operator reuses.
 * The backward operator has inputs
 *     x, states, kernel, recurrent, y, reserve, the gradients of those outputs whose bits are set
 *     in attribute "grads", and possibly lengths
 * and gives the gradients of x, states, kernel, recurrent and bias. */
#ifndef TUTTI_OPS_NETWORK_RECURRENT_H
#define TUTTI_OPS_NETWORK_RECURRENT_H

#include <math.h>

#include "ops/network/network.h"

typedef struct tutti_cell tutti_cell;

/* The sizes of one node. */
typedef struct tutti_sequence {
    const tutti_cell *cell;
    int64_t batch, time, features, units;
    bool reverse;
    const tutti_view *lengths; /* NULL: all rows are full */
} tutti_sequence;

/* One step of one row, for the backward pass. */
typedef struct tutti_cell_step {
    const double *h, *h_before, *c_before; /* [units]; c only where the cell has two states */
    const double *reserve, *reserve_grad;  /* [kept * units]; reserve_grad may be NULL */
} tutti_cell_step;

/* The same as nodes: [.., units] each; the parts of reserve and of its gradient. */
typedef struct tutti_cell_nodes {
    tutti_sym h, h_before, c_before, reserve[5], reserve_grad[5];
} tutti_cell_nodes;

/* What makes a kind of recurrent network. */
struct tutti_cell {
    int gates, states, kept;
    int biases; /* 1: [gates * units]; 2: [2, gates * units], for the input and for the state */
    const char *backward; /* name of the backward operator */
    /* a [gates * units]: x kernel + bias; b: h recurrent (+ bias). Overwrites h, c; writes reserve.
     */
    void (*step)(int64_t units, const double *a, const double *b, double *h, double *c,
                 double *reserve);
    /* In: dh, dc, the gradients of this step's states. Out: what flows to the states before by
     * other ways than `recurrent`; da and db, the gradients of a and b. */
    void (*back)(int64_t units, const tutti_cell_step *s, double *dh, double *dc, double *da,
                 double *db);
    /* The same as nodes: states holds dh, dc; one that is zero becomes TUTTI_NO_SYM. */
    void (*back_nodes)(const tutti_cell_nodes *s, tutti_sym *states, tutti_sym *ret_da,
                       tutti_sym *ret_db);
};
extern const tutti_cell tutti__simple_rnn_cell, tutti__gru_cell, tutti__lstm_cell;

static inline double tutti__sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* The operator. */
tutti_status tutti__rnn_infer(tutti_infer *node, const tutti_cell *cell);
tutti_status tutti__rnn_gradient(tutti_gradient_call *node, const tutti_cell *cell);
void tutti__rnn_cost(const tutti_infer *node, const tutti_cell *cell, tutti_cost *ret);
int tutti__rnn_split(const tutti_infer *node, const tutti_cell *cell, int capacity,
                     tutti_split *ret);
tutti_status tutti__rnn_run(const tutti_kernel_call *call, const tutti_cell *cell,
                            const double *const *inputs, double *const *outputs,
                            tutti_arena *scratch);
/* Builder: `inputs` without lengths, and room for one more. */
tutti_sym tutti__rnn_build(const tutti_op *op, int count, tutti_sym *inputs,
                           const tutti_rnn_options *given);

/* The backward operator. */
tutti_status tutti__rnn_backward_infer(tutti_infer *node, const tutti_cell *cell);
void tutti__rnn_backward_cost(const tutti_infer *node, const tutti_cell *cell, tutti_cost *ret);
int tutti__rnn_backward_split(const tutti_infer *node, const tutti_cell *cell, int capacity,
                              tutti_split *ret);
tutti_status tutti__rnn_backward_run(const tutti_kernel_call *call, const tutti_cell *cell,
                                     const double *const *inputs, double *const *outputs,
                                     tutti_arena *scratch);

tutti_status tutti__rnn_second_gradient(tutti_gradient_call *node, const tutti_cell *cell);

/* For back_nodes: the slope of a sigmoid and of a tanh whose value is y, and 1 - y. */
tutti_sym tutti__one_minus(tutti_sym y);
tutti_sym tutti__sigmoid_slope(tutti_sym y);
tutti_sym tutti__tanh_slope(tutti_sym y);

/* Where the backward operator's inputs stand; -1 for none. */
typedef struct tutti_rnn_slots {
    int kernel, recurrent, y, reserve, grads[4], lengths, count;
} tutti_rnn_slots;
tutti_rnn_slots tutti__rnn_slots(const tutti_cell *cell, int64_t grads, int input_count);

#endif
