/* server_variables.h: a job whose variables lie on parameter servers: reads become `pull`, updates
 * `push`, and what the servers do with a gradient becomes a graph of its own, the update rule. */
#ifndef TUTTI_EXEC_PLAN_SERVER_VARIABLES_H
#define TUTTI_EXEC_PLAN_SERVER_VARIABLES_H

#include <stdatomic.h>

#include "graph/graph.h"
#include "state/state.h"

/* A variable of a plan, by the attribute "number" of its pull and push. */
typedef struct tutti_server_variable {
    char *name; /* in the state */
    tutti_type type;
    char *partition; /* as the variable's .partitioner said, or "" */
    char *rows;      /* of a table that nobody has as a whole: what a row begins with; or "" */
    bool pulled;     /* its value is asked for before a run */
    bool by_rows;    /* rows of it are, in the middle of one */
    void *rule;      /* serialised, where the plan pushes; or NULL */
    size_t rule_size;
} tutti_server_variable;

typedef struct tutti_server_plan {
    TUTTI_VEC(tutti_server_variable) variables;
    int pushes; /* how many of them are pushed */
} tutti_server_plan;

/* One run of such a plan. */
typedef struct tutti_server_gradient {
    tutti_tensor *gradient, *rows;
    double rate;
    _Atomic bool there; /* its push has run: of several devices, which have the same, the first */
} tutti_server_gradient;
typedef struct tutti_server_run {
    int count;
    struct tutti_strategy *strategy;
    int *numbers;                     /* by number: its number on the servers; -1: not there */
    tutti_tensor **values;            /* by number; NULL: not pulled */
    tutti_server_gradient *gradients; /* by number */
} tutti_server_run;

/* Whether something that is asked for updates a trainable variable. */
bool tutti__server_trains(const tutti_graph *graph, int target_count, tutti_node *const *targets,
                          int fetch_count, const tutti_edge *fetches);
/* `job`: extracted, its shapes not yet known. Slots begin with what `state` has for them. */
tutti_status tutti__server_rewrite(tutti_graph *job, tutti_state *state, tutti_server_plan *ret);
void tutti__server_plan_free(tutti_server_plan *plan); /* zeroed is fine */

/* What a variable has here: its value, or the one that waits for it; a new reference. NULL: none.
 */
tutti_tensor *tutti__server_local_value(tutti_state *state, const char *name);

#endif
