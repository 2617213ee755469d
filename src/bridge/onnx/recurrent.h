/* recurrent.h: how LSTM, GRU and RNN lie in files, for writing and reading them.
 *            ours                        ONNX's (one direction)
 *   x        [batch, time, features]     [time, batch, features]
 *   kernel   [features, gates units]     W [1, gates units, features]
 *   recurrent[units, gates units]        R [1, gates units, units]
 *   bias     [gates units], of gru [2, gates units]   B [1, 2 gates units]: of W, then of R
 *   gates    lstm i f c o, gru z r h     LSTM i o f c, GRU z r h
 *   sequence [batch, time, units]        Y [time, 1, batch, units]
 *   states   [batch, units]              Y_h, Y_c [1, batch, units]
 * Past a row's length ONNX's sequence is 0; ours repeats the state. */
#ifndef TUTTI_BRIDGE_ONNX_RECURRENT_H
#define TUTTI_BRIDGE_ONNX_RECURRENT_H

#include "bridge/onnx.h"

typedef struct tutti_onnx_cell {
    const char *type;
    int gates, states, biases;
    int order[4]; /* ONNX's gate i is ours order[i] */
} tutti_onnx_cell;

const tutti_onnx_cell *tutti__onnx_cell_of(const char *type);
void tutti__onnx_read_recurrent(tutti_onnx_import *m);
/* One direction of a cell that our operators are not, over x [batch, time, features]; weights are
 * kernel, recurrent and bias in our form. Gives the sequence, then the states; false after a
 * failure. */
bool tutti__onnx_run_steps(tutti_onnx_import *m, const tutti_onnx_cell *c, int direction,
                           tutti_sym x, const tutti_sym *states, const tutti_sym *weights,
                           const tutti_rnn_options *options, tutti_sym *ret);

#endif
