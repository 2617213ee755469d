/* loss_scale.h: dynamic scaling of the loss, so that small gradients survive in 16 bits.
 *
 *     tutti_loss_scale scale = tutti__loss_scale_open(graph);
 *     differentiate(tutti__loss_scale_up(&scale, loss)) -> grads
 *     tutti_sym rescale = tutti__loss_scale_build(&scale, count, grads, grads);
 *     tutti__optimizer_apply(..., .grads = grads, .apply = scale.finite), and run `rescale` too
 *
 * Where batches are gathered (accumulate.h), take their sum first and build on that: the slots hold
 * scaled gradients, and the scale moves only in the step that is applied.
 *
 * The scale starts at 2^15, doubles after 2000 finite steps in a row, halves in a step that is not
 * finite, which is then not applied, and never falls below 1. It is a power of two, so that scaling
 * changes exponents only. */
#ifndef TUTTI_NN_TRAINING_LOSS_SCALE_H
#define TUTTI_NN_TRAINING_LOSS_SCALE_H

#include "graph/graph.h"
#include "tutti/gradients.h"

#define TUTTI_LOSS_SCALE_START 32768.0
#define TUTTI_LOSS_SCALE_STEPS 2000

typedef struct tutti_loss_scale {
    tutti_sym scale;      /* f32 [], the variable "loss_scale/scale" */
    tutti_sym good_steps; /* i64 [], the variable "loss_scale/good_steps" */
    tutti_sym finite;     /* bool []: whether all gradients of the step are; from _build on */
} tutti_loss_scale;

/* The variables, made on first use. */
tutti_loss_scale tutti__loss_scale_open(tutti_graph *graph);
/* loss * scale, in the loss's type. */
tutti_sym tutti__loss_scale_up(const tutti_loss_scale *scale, tutti_sym loss);
/* Looks whether the gradients are finite, divides them by the scale (ret_grads may be grads), and
 * gives the target that moves the scale. Entries without a gradient stay so. */
tutti_sym tutti__loss_scale_build(tutti_loss_scale *scale, int count, const tutti_grad *grads,
                                  tutti_grad *ret_grads);

#endif
