/* pull_back.h: gradients of what is made of other operators, for gradient rules. It is built and
 * differentiated in a graph of its own, where nothing is behind the arguments and no tape says what
 * was recorded, and then put into the graph. */
#ifndef TUTTI_OPS_PULL_BACK_H
#define TUTTI_OPS_PULL_BACK_H

#include "ops/build.h"

/* fn(args) gives result_count results; result_grads[i] without a node is zero. */
typedef struct tutti_pull_back {
    tutti_body_fn *fn;
    void *context;
    int arg_count, result_count;
    const tutti_sym *args, *result_grads;
    const bool *wanted; /* of args */
} tutti_pull_back;

/* The gradients of args; without a node where one is not wanted or zero. */
tutti_status tutti__pull_back(tutti_graph *graph, const tutti_pull_back *of, tutti_sym *ret_grads);

/* The gradient rule of a backward operator. Its inputs are the arguments of `forward`, which has
 * one result, and then that result's gradient; its output k is the gradient of argument of[k].
 * `forward` gets the node as its context. */
tutti_status tutti__backward_gradient(tutti_gradient_call *node, tutti_body_fn *forward,
                                      int output_count, const int *of);

#endif
