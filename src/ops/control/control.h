/* control.h: sub-graphs of cond and while: making them from C functions, checking them against a
 * node's inputs, putting one into another graph. */
#ifndef TUTTI_OPS_CONTROL_CONTROL_H
#define TUTTI_OPS_CONTROL_CONTROL_H

#include "ops/state/state.h"

/* A sub-graph in the making. Its parameters are the arguments, then one that stands for the random
 * counter (see ops/random/random.h), which is dropped when nothing in the body draws. */
typedef struct tutti_control_body {
    tutti_graph *graph;
    tutti_node *counter;
    bool draws; /* the counter is used */
} tutti_control_body;

/* Calls `fn` to build a body with arguments of these types. Names in it begin with `label`, which
 * no other body shares. A mistake in it is the outer graph's: TUTTI status and message. On failure
 * there is nothing to destroy. */
tutti_status tutti__body_build(const char *label, tutti_body_fn *fn, void *context, int arg_count,
                               const tutti_type *arg_types, int result_count,
                               tutti_control_body *ret_body);
/* Whether these can be arguments of a body of `op`: the graph's values and variables, which are
 * read. */
tutti_status tutti__body_takes(const tutti_graph *graph, const char *op, int count,
                               const tutti_sym *args);
/* Drops the counter's parameter. */
tutti_status tutti__body_drop_counter(tutti_control_body *body);
/* Makes the counter parameter `position`; parameters from there on move up by one. */
void tutti__body_move_counter(tutti_control_body *body, int position);
/* "scope/cond_2/then": the name that the operator's node will have, and the part. Random numbers go
 * by it, so nothing but others of its kind may change it: in a trace it is the operator and how
 * many of them the step has made. */
tutti_status tutti__body_label(tutti_graph *outer, const char *op, const char *part, char *text,
                               size_t size);

/* A graph with parameters of these types: args[i] is parameter i. */
tutti_status tutti__subgraph_create(int count, const tutti_type *types, tutti_graph **ret_graph,
                                    tutti_sym *ret_args);
tutti_status tutti__subgraph_results(tutti_graph *graph, int count, const tutti_sym *results);

/* Copies the nodes of a sub-graph into another graph, with `args` in place of its parameters. Types
 * are inferred anew; names, made unique, stand in the present scope; origins are kept. */
tutti_status tutti__inline(tutti_graph *to, const tutti_graph *from, int count,
                           const tutti_sym *args, tutti_sym *ret_results);

/* Parameters of a sub-graph agree with `types`; `part` names it in messages: "then branch". */
tutti_status tutti__need_parameters(const tutti_infer *node, const tutti_graph *graph,
                                    const char *part, int count, const tutti_type *types);
tutti_graph *tutti__attr_graph(const tutti_attr *attrs, int count, const char *name);

/* Loops: what while and while_history share. Outputs [0, loop_count) are the last values. */
tutti_status tutti__infer_loop(tutti_infer *node);
/* The gradients of a loop's inputs from those of its last values and (NULL: none) of its history.
 * `trips` is the number of rounds; `history` and `shapes`, per loop variable, are what history.h
 * says. */
typedef struct tutti_loop_gradient {
    tutti_sym trips;
    const tutti_sym *history, *shapes, *history_grads;
} tutti_loop_gradient;
tutti_status tutti__gradient_loop(tutti_gradient_call *node, const tutti_loop_gradient *loop);

#endif
