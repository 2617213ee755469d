/* bodies.h: plans of the sub-graphs that a plan runs (branches, steps and conditions of loops).
 * They belong to it and go with it: so a program keeps all of its bodies, however many there are,
 * and of each TUTTI_BODY_SHAPES times as many shapes as the engine keeps programs of its own: a
 * loop whose values grow has one in each round. The engine's lock guards them. */
#ifndef TUTTI_EXEC_PLAN_BODIES_H
#define TUTTI_EXEC_PLAN_BODIES_H

#include "exec/plan/cache.h"

#define TUTTI_BODY_SHAPES 4

/* A parameter that its results need, and which of the call's inputs it is. Shapes of the others
 * make no new plan. */
typedef struct tutti_body_feed {
    tutti_edge edge;
    int64_t input;
} tutti_body_feed;

/* Where the plans of this sub-graph are kept; NULL: no memory. Valid until the next call. */
tutti_plan_cache *tutti__bodies_cache(tutti_plan *plan, const tutti_graph *body);
/* What a call of this sub-graph feeds; valid as long as the plan. */
tutti_status tutti__bodies_feeds(tutti_plan *plan, const tutti_graph *body, int *ret_count,
                                 const tutti_body_feed **ret_feeds);
void tutti__bodies_free(tutti_bodies *bodies); /* NULL is fine */

#endif
