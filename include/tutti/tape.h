/* clang-format off */
/* tape.h: applying operators to values one after the other, with gradients: custom training loops.
 *
 *     tutti_eager *e;
 *     tutti_eager_open(&e);
 *     tutti_sym w = tutti_variable(tutti_eager_graph(e), tutti_glorot_uniform(784, 10), .name = "w");
 *     while (next_batch(&images, &labels))
 *         TUTTI_STEP(e) {
 *             tutti_sym x = tutti_eager_feed(e, images), y = tutti_eager_feed(e, labels), loss;
 *             TUTTI_TAPE(tape, e)
 *                 loss = tutti_mean(tutti_nn_sparse_cross_entropy(y, tutti_matmul(x, w)));
 *             tutti_grad grad;
 *             tutti_tape_gradients(&tape, loss, 1, &w, &grad);
 *             tutti_apply_gradients(tutti_sgd(0.5), 1, &w, &grad);
 *             printf("%g\n", tutti_scalar_value(loss));
 *         }
 *     if (tutti_eager_check(e) != TUTTI_OK)
 *         fprintf(stderr, "%s\n", tutti_error_message());
 *     tutti_eager_close(e);
 *
 * Operators queue until a value is read or the step ends; what is queued then runs as one program.
 * A step that does the same as an earlier one runs from the cache; another one is compiled anew.
 *
 * Symbols live until the end of their step; variables live on. A read value is the caller's tensor.
 * One thread at a time may use an eager context. */
/* clang-format on */
#ifndef TUTTI_TAPE_H
#define TUTTI_TAPE_H

#include "tutti/gradients.h"
#include "tutti/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_eager tutti_eager;

/* Options as a session's. */
TUTTI_API tutti_status tutti_eager_open_with(const tutti_session_options *options,
                                             tutti_eager **ret_eager);
#define tutti_eager_open(ret_eager, ...)                                                           \
    tutti_eager_open_with(TUTTI_OPTIONS(tutti_session_options, __VA_ARGS__), ret_eager)
TUTTI_API void tutti_eager_close(tutti_eager *eager); /* NULL is fine */

/* Where variables are made, which last, and constants, which are of the step like all other values.
 */
TUTTI_API tutti_graph *tutti_eager_graph(tutti_eager *eager);

/* A tensor as a symbol of this step; retained until the step ends, and read when what is queued
 * runs: its contents must not change before. What changes from step to step should come this way:
 * tutti_constant makes it part of the program, and a step with another one is compiled anew. */
TUTTI_API tutti_sym tutti_eager_feed(tutti_eager *eager, tutti_tensor *value);
#define tutti_eager_feed(...) TUTTI_AT(tutti_eager_feed(__VA_ARGS__))

/* The value of a symbol: runs what is queued. A copy for the caller to release. */
TUTTI_API tutti_status tutti_value(tutti_sym sym, tutti_tensor **ret_value);
/* Its first element as a number; NaN when it cannot be computed (tutti_error_message says why, and
 * tutti_eager_check). */
TUTTI_API double tutti_scalar_value(tutti_sym sym);

/* Ends a step: runs what is queued for its effect (updates), then forgets the step's symbols.
 * Returns the step's first mistake; the next step begins clean. */
TUTTI_API tutti_status tutti_eager_step(tutti_eager *eager);
/* From now on values with as many rows as this process has in the step (tutti_strategy_agree, or
 * the element taken last of tutti_distribute_from_function) are its rows of the whole batch, for
 * which the step is written. Without it every process uses the whole batch. */
TUTTI_API void tutti_eager_own_rows(tutti_eager *eager, bool own);
/* The first failure of a step since the context was opened or this was asked last, with its message
 * in tutti_error_message; TUTTI_OK when every step went well. Asking again gives TUTTI_OK. */
TUTTI_API tutti_status tutti_eager_check(tutti_eager *eager);
/* A step as a block: TUTTI_STEP(e) { … } ends it by itself; tutti_eager_check tells how it went.
 * Leave the block by its end: after break, goto or return the step is not over, and what follows
 * belongs to it. */
#define TUTTI_STEP(eager)                                                                          \
    for (int tutti_once_step = 1; tutti_once_step; tutti_once_step = (tutti_eager_step(eager), 0))

/* What happens inside is recorded; tapes may nest. Gradients flow through recorded operators only.
 * Declares `tape`, so it stands where a declaration may stand. */
typedef struct tutti_tape {
    tutti_graph *graph;
    uint32_t first, last; /* nodes recorded; last 0 while recording */
    uint32_t generation;
    const struct tutti_watched *watched; /* of the step */
} tutti_tape;
TUTTI_API tutti_tape tutti_tape_begin(tutti_eager *eager);
TUTTI_API void tutti_tape_end(tutti_tape *tape);
#define TUTTI_TAPE(tape, eager)                                                                    \
    tutti_tape tape = tutti_tape_begin(eager);                                                     \
    for (int tutti_once_##tape = 1; tutti_once_##tape;                                             \
         tutti_once_##tape = (tutti_tape_end(&(tape)), 0))

/* Variables are watched by themselves; a value from outside the tape must be watched for a gradient
 * to reach it. Once is enough, and again changes nothing. */
TUTTI_API void tutti_tape_watch(tutti_tape *tape, tutti_sym sym);
#define tutti_tape_watch(...) TUTTI_AT(tutti_tape_watch(__VA_ARGS__))

/* d sum(y) / d x for each x; y is made before the tape's block ends. An x that y does not depend
 * on, or that was neither a variable, watched nor made on the tape, has no gradient (see
 * tutti_grad_ok). */
TUTTI_API void tutti_tape_gradients(tutti_tape *tape, tutti_sym y, int count, const tutti_sym *xs,
                                    tutti_grad *ret_grads);
#define tutti_tape_gradients(...) TUTTI_AT(tutti_tape_gradients(__VA_ARGS__))

/* A variable's present value, and setting it. */
TUTTI_API tutti_status tutti_eager_get(tutti_eager *eager, tutti_sym variable,
                                       tutti_tensor **ret_value);
TUTTI_API tutti_status tutti_eager_set(tutti_eager *eager, tutti_sym variable, tutti_tensor *value);
TUTTI_API void tutti_eager_describe(tutti_eager *eager, tutti_session_info *ret_info);

#ifdef __cplusplus
}
#endif
#endif
