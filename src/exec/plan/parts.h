/* parts.h: devices that reach one memory keep a variable once between them and each update a part
 * of it. Chosen when a plan is compiled. */
#ifndef TUTTI_EXEC_PLAN_PARTS_H
#define TUTTI_EXEC_PLAN_PARTS_H

#include "exec/plan/plan.h"

/* A variable's name in the state. */
static inline const char *tutti__parts_name(const tutti_node *variable)
{
    const char *name = tutti__str(variable, "shared_name");
    return name[0] ? name : variable->name;
}

/* Looks at one device's piece of a job, after all passes. An update can be done in parts when it
 * computes each element by itself, is the only one of its variables, and nobody reads them, or what
 * it gives, during the commit: there the other devices' parts are old or new, who knows. But the
 * running mean of a variable may: it takes the elements of its own part. */
typedef struct tutti_parts_look {
    const tutti_graph *graph;
    bool *late; /* by node: it runs in the commit */
    bool *bad;  /* by node: a variable that cannot be shared, an update that cannot be cut */
    tutti_node **update; /* by variable: the update that writes it */
} tutti_parts_look;
tutti_status tutti__parts_look(const tutti_graph *graph, int64_t least, tutti_parts_look *ret);
void tutti__parts_look_free(tutti_parts_look *look); /* zeroed is fine */

/* ---- parts_cut.c ---- */
/* An attribute of a node, to be changed: the graph's own, not another copy's. NULL: no memory. */
tutti_attr *tutti__parts_attr(tutti_graph *graph, tutti_node *node, const char *name);
/* The same of one that is a number. */
tutti_status tutti__parts_set(tutti_graph *graph, tutti_node *node, const char *name,
                              int64_t value);
/* The value in whose memory an edge's lies; and that of an update's gradient. */
tutti_edge tutti__parts_root(tutti_edge edge);
tutti_edge tutti__parts_gradient(const tutti_node *update);
/* Where an update's gradient comes from, if nobody else takes it but a norm: an output of a
 * bucket's sum; else its node is NULL. */
tutti_edge tutti__parts_sum_of(const tutti_graph *graph, const tutti_node *update);
/* Whether nobody else takes it, not even a norm, and the update has a kernel that adds. */
bool tutti__parts_may_add(const tutti_graph *graph, const tutti_node *update);
/* Output `index` of a sum is wanted in parts (attribute "cut"), or is added up late ("late"). */
tutti_status tutti__parts_cut_output(tutti_graph *graph, tutti_node *sum, const char *list_name,
                                     int64_t index);

/* ---- parts_norm.c ---- */
/* Whether a node is the one that adds up squares of gradients, for their norm. */
bool tutti__parts_is_norm(const tutti_graph *graph, const tutti_node *node);
/* Where the norm takes gradients that were cut: part `part` adds up the squares of the elements
 * that it has, and all parts add up their sums. Nodes get other ids. */
tutti_status tutti__parts_norm(tutti_graph *graph, int part, int parts);

/* Cuts the updates that can be cut on all devices of the strategy, and notes in the plan whose
 * memory they share. */
tutti_status tutti__parts_choose(tutti_state *state, const tutti_strategy *strategy, int count,
                                 tutti_piece_graph *pieces, tutti_plan *plan);

/* ---- owned.c ---- */
/* Processes share the updates as devices do: the sum of a bucket goes to each in part, each updates
 * the elements that it has, and then all get the new values of all. An optimizer's slots stay with
 * whoever updates them (tutti__variable_owned). */
tutti_status tutti__owned_choose(tutti_state *state, const tutti_strategy *strategy, int count,
                                 tutti_piece_graph *pieces, tutti_plan *plan);

#endif
