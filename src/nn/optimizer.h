/* optimizer.h: what an optimizer's file gives. One file each, ending in one descriptor.
 * tables: tutti_optimizer_def */
#ifndef TUTTI_NN_OPTIMIZER_H
#define TUTTI_NN_OPTIMIZER_H

#include "graph/graph.h"
#include "tutti/optimizer.h"

/* What an update is built from. */
typedef struct tutti_update {
    const tutti_optimizer *optimizer;
    tutti_sym variable;
    tutti_grad grad;
    tutti_sym learning_rate; /* f32 scalar */
    tutti_sym step;          /* i64 scalar, 1 in the first step; TUTTI_NO_SYM unless counts_steps */
} tutti_update;

struct tutti_optimizer_def {
    const char *name;
    const char *doc; /* the rule */
    bool counts_steps;
    tutti_sym (*build)(const tutti_update *update); /* the update node */
};

/* A slot of a variable, made of zeros on first use: "<variable>/<optimizer>/<name>", slot_of it. */
tutti_sym tutti__optimizer_slot(const tutti_update *update, const char *name);

#endif
