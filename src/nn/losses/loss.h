/* loss.h: what a loss's file gives. One file each, ending in one descriptor.
 * tables: tutti_loss_def */
#ifndef TUTTI_NN_LOSSES_LOSS_H
#define TUTTI_NN_LOSSES_LOSS_H

#include "graph/graph.h"
#include "ops/build.h"
#include "tutti/loss.h"

struct tutti_loss_def {
    const char *name;
    const char *doc; /* the formula */
    /* Targets are class numbers: they have the outputs' shape without its last axis. Otherwise they
     * come in the outputs' shape and element type. */
    bool classes;
    tutti_loss_fn *each; /* one loss an example, [batch, …] */
};

/* A loss in the three parts that exact means need: sum of weight * loss, what it is divided by (a
 * scalar f32), and their quotient. */
typedef struct tutti_loss_parts {
    tutti_sym sum, count, value;
} tutti_loss_parts;
/* `weights` [batch] or of the losses' shape, or TUTTI_NO_SYM. */
tutti_loss_parts tutti__loss_parts(const tutti_loss *loss, tutti_sym truth, tutti_sym guess,
                                   tutti_sym weights);
/* Targets as losses and metrics take them: class numbers [batch, …] from [batch, …, 1]; [batch]
 * brought to [batch, 1]; cast to the outputs' element type where they are not classes. */
tutti_sym tutti__targets_for(tutti_sym truth, tutti_sym guess, bool classes);
/* Targets of another shape would broadcast to something that nobody meant: a mistake that names
 * `what`, a loss or a metric. */
bool tutti__targets_agree(const char *what, const char *name, tutti_sym truth, tutti_sym guess,
                          bool classes);
/* `weights` brought to the rank of x by axes of size 1 at the end. */
tutti_sym tutti__weights_like(tutti_sym weights, tutti_sym x);

#endif
