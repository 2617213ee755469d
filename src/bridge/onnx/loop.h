/* loop.h: Loop and Scan: what is built in place (loop.c) and what becomes while (loop_while.c). */
#ifndef TUTTI_BRIDGE_ONNX_LOOP_H
#define TUTTI_BRIDGE_ONNX_LOOP_H

#include "bridge/onnx/control.h"

/* One loop: the states go round; scanned values are handed out one after the other along an axis;
 * what each round gives beside the states is stacked. */
typedef struct tutti_onnx_rounds {
    tutti_onnx_import *m;
    const tutti_onnx_graph *graph;
    bool counts; /* Loop: the body sees the round and the condition */
    int states, scans, gives;
    int first_state; /* the node's input that is state 0 */
    int64_t axes[ONNX_STATES], out_axes[ONNX_STATES];
    bool back[ONNX_STATES], out_back[ONNX_STATES];
    int captures;
    const char *names[ONNX_CAPTURES];
    /* Of a while: */
    tutti_onnx_pack state[ONNX_STATES], captured[ONNX_CAPTURES];
    tutti_type given[ONNX_STATES]; /* what a round stacks */
    bool flat[ONNX_STATES];        /* per stack: its dimensions are not known; see flat_stack */
} tutti_onnx_rounds;

/* Element `at` of scanned input i. */
tutti_sym tutti__onnx_scanned(const tutti_onnx_rounds *l, int i, tutti_sym x, tutti_sym at);
/* The loop as a while: round by round as long as there are less than `limit` and the condition is
 * true. */
void tutti__onnx_go_round(tutti_onnx_rounds *l, tutti_sym limit, tutti_sym condition);

#endif
