/* ops_control.h: order, checks, branches and loops. */
#ifndef TUTTI_OPS_CONTROL_H
#define TUTTI_OPS_CONTROL_H

#include "tutti/ops_state.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A node that does nothing; control scopes give it what it waits for. It has no output: run it as a
 * target, or name it in a control scope. */
TUTTI_API tutti_sym tutti_no_op(tutti_graph *graph);
#define tutti_no_op(...) TUTTI_AT(tutti_no_op(__VA_ARGS__))
/* A node that is done when all the others are: tutti_group(g, train, count). No output. */
TUTTI_API tutti_sym tutti_group(tutti_graph *graph, const char *name, int count,
                                const tutti_sym *nodes);
#define tutti_group(graph, ...) TUTTI_AT(tutti_group((graph), NULL, TUTTI_SYMS(__VA_ARGS__)))

/* Fails the run with TUTTI_CHECK_FAILED, the message and the data's values when an element of
 * `condition` is false. The result is the condition; it is checked only when something depends on
 * it. */
TUTTI_API tutti_sym tutti_assert(tutti_sym condition, const char *message, int count,
                                 const tutti_sym *data);
#define tutti_assert(condition, ...) TUTTI_AT(tutti_assert_((condition), __VA_ARGS__, TUTTI_NO_SYM))
#define tutti_assert_(condition, message, ...)                                                     \
    tutti_assert(condition, message,                                                               \
                 (int)(sizeof((const tutti_sym[]){__VA_ARGS__}) / sizeof(tutti_sym)) - 1,          \
                 (const tutti_sym[]){__VA_ARGS__})
/* y = x; fails with TUTTI_CHECK_FAILED, the message, and the first NaN or infinity and its place.
 */
TUTTI_API tutti_sym tutti_check_numerics(tutti_sym x, const char *message);
#define tutti_check_numerics(...) TUTTI_AT(tutti_check_numerics(__VA_ARGS__))
/* y = x; every run logs the message and the value (at most 64 elements of it). In a body of cond or
 * while whose gradient is asked for it logs once more: the gradient computes the body again. */
TUTTI_API tutti_sym tutti_print(tutti_sym x, const char *message);
#define tutti_print(...) TUTTI_AT(tutti_print(__VA_ARGS__))

/* Builds one side of a branch, or a loop's condition or step, into the graph `body`: from `count`
 * arguments (parameters of the body) to the results. Only arguments and nodes made in `body` may be
 * used there; variables and placeholders are made outside, and those that the body reads are given
 * as arguments. */
typedef void tutti_body_fn(tutti_graph *body, int count, const tutti_sym *args,
                           tutti_sym *ret_results, void *context);

/* `then_fn` of the arguments when `pred` (a bool scalar) is true, else `else_fn`: only the one
 * taken runs. Both give `result_count` results of equal types; dimensions that differ become
 * unknown. Returns result 0; ret_results (or NULL) gets all. y = tutti_cond(tutti_greater(x, zero),
 * half, twice, NULL, TUTTI_SYMS(x), 1, NULL); */
TUTTI_API tutti_sym tutti_cond(tutti_sym pred, tutti_body_fn *then_fn, tutti_body_fn *else_fn,
                               void *context, int arg_count, const tutti_sym *args,
                               int result_count, tutti_sym *ret_results);
#define tutti_cond(...) TUTTI_AT(tutti_cond(__VA_ARGS__))

/* While `condition` of (variables, captures) gives a true bool scalar: variables = `step` of
 * (variables, captures). A loop variable keeps its type; its dimensions may be known, or unknown
 * and different in each round. Returns the first variable's last value; ret_results (or NULL) gets
 * all. `step` may be called again when a dimension turns out to be unknown. tutti_while(below, add,
 * NULL, TUTTI_SYMS(i, sum), TUTTI_SYMS(limit), results); */
TUTTI_API tutti_sym tutti_while(tutti_body_fn *condition, tutti_body_fn *step, void *context,
                                int variable_count, const tutti_sym *variables, int capture_count,
                                const tutti_sym *captures, tutti_sym *ret_results);
#define tutti_while(...) TUTTI_AT(tutti_while(__VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
