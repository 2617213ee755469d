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

#endif
