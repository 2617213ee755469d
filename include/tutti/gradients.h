/* gradients.h: differentiation as a rewrite of the graph. Gradients are nodes like any other, so
 * they can be differentiated again. */
#ifndef TUTTI_GRADIENTS_H
#define TUTTI_GRADIENTS_H

#include "tutti/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A gradient: dense (rows.node NULL), or rows of the value's axis 0 with their indices (what
 * gathers give; indices may repeat, repeated rows add). value.node NULL: y does not depend on this
 * x. */
typedef struct tutti_grad {
    tutti_sym value;
    tutti_sym rows;
} tutti_grad;

/* Does y depend on this x at all? */
static inline bool tutti_grad_ok(tutti_grad grad)
{
    return grad.value.node != NULL;
}

/* d sum(y) / d x for each x: tensors or variables. A mistake (an operator on the way that cannot be
 * differentiated) is recorded in the graph like any builder's. */
TUTTI_API void tutti_gradients(tutti_sym y, int count, const tutti_sym *xs, tutti_grad *ret_grads);
#define tutti_gradients(...) TUTTI_AT(tutti_gradients(__VA_ARGS__))

/* The same for one x, always dense; zeros where y does not depend on x. */
TUTTI_API tutti_sym tutti_gradient(tutti_sym y, tutti_sym x);
#define tutti_gradient(...) TUTTI_AT(tutti_gradient(__VA_ARGS__))

/* The dense form of a gradient with respect to `like`. */
TUTTI_API tutti_sym tutti_grad_dense(tutti_grad grad, tutti_sym like);
#define tutti_grad_dense(...) TUTTI_AT(tutti_grad_dense(__VA_ARGS__))

/* Intercepts: `fn` sees the complete gradient of `sym` in every later differentiation and returns
 * what takes its place (clipping, scaling, logging). Not inside a body of tutti_cond or
 * tutti_while, which is refused: set it outside, on an argument or a result. */
TUTTI_API void tutti_on_gradient(tutti_sym sym,
                                 tutti_grad (*fn)(tutti_sym forward, tutti_grad grad,
                                                  void *context),
                                 void *context);
#define tutti_on_gradient(...) TUTTI_AT(tutti_on_gradient(__VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
