/* optimizer.h: what an optimizer's file gives, and what models need of optimizers. One file each in
 * optimizers/, ending in one descriptor.
 * tables: tutti_optimizer_def
 */
#ifndef TUTTI_NN_OPTIMIZERS_OPTIMIZER_H
#define TUTTI_NN_OPTIMIZERS_OPTIMIZER_H

#include "graph/graph.h"
#include "nn/optimizers/schedule.h"
#include "tutti/optimizer.h"

/* One number of an optimizer: tutti_optimizer.numbers has them in the table's order. Where the
 * update operator has an attribute of that name, it gets the number. */
typedef struct tutti_optimizer_field {
    const char *key;
    size_t offset; /* in the settings */
    bool flag;     /* a bool there; else a double */
    double fallback, torch_fallback;
} tutti_optimizer_field;
#define TUTTI_FIELD(settings, field, fallback_, torch_fallback_)                                   \
    {                                                                                              \
#field, offsetof(settings, field), false, fallback_, torch_fallback_                       \
    }
#define TUTTI_FIELD_FLAG(settings, field)                                                          \
    {                                                                                              \
#field, offsetof(settings, field), true, 0, 0                                              \
    }

typedef struct tutti_optimizer_slot {
    const char *name;
    double initial;
} tutti_optimizer_slot;

struct tutti_optimizer_def {
    const char *name;
    const char *doc; /* the rule */
    const char *op;  /* "adam_update"; "adam_update_rows" where that exists takes rows */
    bool counts_steps;
    double learning_rate;                    /* the default */
    double weight_decay, torch_weight_decay; /* the default */
    const tutti_optimizer_field *fields;     /* ends with a NULL key */
    /* (optional) Its slots, in the operator's order; returns how many. */
    int (*slots)(const tutti_optimizer *optimizer, tutti_optimizer_slot *ret);
};

/* The value that settings make; all settings begin with TUTTI_OPTIMIZER_SETTINGS. NULL: defaults.
 */
tutti_optimizer tutti__optimizer_make(const tutti_optimizer_def *def, const void *settings);
/* A number of the def's table by key; 0 when it has none of that name. */
double tutti__optimizer_number(const tutti_optimizer *optimizer, const char *key);

/* What one call moves. `apply`: a bool scalar; when it is false in a step, nothing changes, not
 * even the step count; TUTTI_NO_SYM: always. */
typedef struct tutti_updates {
    const tutti_optimizer *optimizer;
    int count;
    const tutti_sym *variables;
    const tutti_grad *grads;
    tutti_sym apply;
    bool checked; /* the optimizer's groups were, on this graph */
} tutti_updates;
/* The target of tutti_apply_gradients. */
tutti_sym tutti__optimizer_apply(const tutti_updates *updates);
/* Among those that users apply to a graph: TUTTI_INVALID when one of this name has other settings.
 * A model's own is no such one: compiling anew changes it. */
tutti_status tutti__optimizer_check_applied(const tutti_graph *graph,
                                            const tutti_optimizer *optimizer);
/* The one of that name that was applied, or NULL. */
const tutti_optimizer *tutti__optimizer_applied(const tutti_graph *graph, const char *name);
/* The one that was applied last, the one before, …; NULL behind the first. */
const tutti_optimizer *tutti__optimizer_applied_at(const tutti_graph *graph, int index);
/* It was applied. */
void tutti__optimizer_note_applied(tutti_graph *graph, const tutti_optimizer *optimizer);

/* One variable's update. */
typedef struct tutti_update {
    const tutti_optimizer *optimizer;
    tutti_sym variable;
    tutti_grad grad;
    double weight_decay;
    tutti_sym learning_rate; /* f32 scalar */
    tutti_sym step;          /* i64 scalar, 1 in the first step; TUTTI_NO_SYM unless counted */
    tutti_sym apply;
} tutti_update;

/* A slot of a variable, made on first use: "<variable>/<optimizer>/<name>", slot_of it. */
tutti_sym tutti__optimizer_slot(const tutti_update *update, const char *name, double initial);

/* At most one of them is above 0. */
typedef struct tutti_clipping {
    double value, norm, global_norm;
} tutti_clipping;
/* Gradients clipped so, in place; a mistake is said of `name`. */
void tutti__optimizer_clip(const char *name, tutti_clipping clipping, tutti_graph *graph, int count,
                           tutti_grad *grads);

/* ---- param_groups.c ---- */
/* The first group that names the variable, or -1. */
int tutti__param_group_of(const tutti_optimizer *optimizer, const tutti_node *variable);
bool tutti__optimizer_freezes(const tutti_optimizer *optimizer, const tutti_node *variable);
/* Leaves out variables of frozen groups; how many are left. */
int tutti__optimizer_leave_frozen(const tutti_optimizer *optimizer, int count,
                                  tutti_sym *variables);
/* Whether the group is not clipped with the others; what holds for a group, or for none (-1). */
bool tutti__param_group_clips(const tutti_param_group *group);
tutti_clipping tutti__optimizer_clipping(const tutti_optimizer *optimizer, int group);
double tutti__param_group_factor(const tutti_param_group *group);
/* Rates of groups as factors of the optimizer's, while that is what it was made with. */
void tutti__param_groups_resolve(tutti_optimizer *optimizer);
/* By id, whether a node is a variable that rows are gathered from; to be freed. All false where the
 * policy of decay does not ask. NULL for lack of memory. */
bool *tutti__optimizer_tables(const tutti_optimizer *optimizer, const tutti_graph *graph);
double tutti__optimizer_decay(const tutti_optimizer *optimizer, int group,
                              const tutti_node *variable, const bool *tables);
/* What is wrong with groups and policy, also that a group names no weight of the graph. */
tutti_status tutti__param_groups_check(const tutti_optimizer *optimizer, const tutti_graph *graph);
bool tutti__param_groups_same(const tutti_optimizer *a, const tutti_optimizer *b);
/* Their texts into the arena. */
tutti_status tutti__param_groups_keep(tutti_optimizer *optimizer, tutti_arena *arena);

/* The running mean after an update, whose node's value is `moved`. */
tutti_sym tutti__optimizer_ema(const tutti_update *update, tutti_sym moved);
/* TUTTI_KEEP_GRADIENTS: what moves the variable (clipped, summed over replicas) is written into its
 * slot "gradient" as well. A setting that means nothing is a mistake of the graph. */
bool tutti__optimizer_keeps_gradients(tutti_graph *graph);
tutti_sym tutti__optimizer_keep(const tutti_update *update);
/* Makes the running means whose values wait in the state: a checkpoint's, where no step has made
 * them yet. */
struct tutti_state;
void tutti__optimizer_expect_ema(tutti_graph *graph, const tutti_optimizer *optimizer,
                                 struct tutti_state *state);
/* A target that swaps every trainable variable of the graph with its running mean, where it has one
 * under this optimizer: run it before evaluating and again after. TUTTI_NO_SYM when none has. */
tutti_sym tutti__optimizer_swap_ema(tutti_graph *graph, const tutti_optimizer *optimizer);

/* The rate at a step (0 the first): of the schedule, or the constant. */
double tutti__optimizer_rate(const tutti_optimizer *optimizer, int64_t step);

/* For files: every number by key, those all optimizers have ("learning_rate", "clip_norm", …) and
 * the def's own; the values point into *optimizer. The name and the schedule are kept beside.
 * Returns how many; TUTTI_OPTIMIZER_KEYS are enough. */
#define TUTTI_OPTIMIZER_KEYS (TUTTI_OPTIMIZER_NUMBERS + 6)
int tutti__optimizer_settings(const tutti_optimizer *optimizer, int capacity, tutti_setting *ret);
/* The optimizer of a kind ("adam") with numbers by key: those missing are defaults, one that the
 * kind has not is an error. Its name is the kind. */
tutti_status tutti__optimizer_from(const char *kind, int count, const tutti_setting *settings,
                                   tutti_optimizer *ret_optimizer);

#endif
