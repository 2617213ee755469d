/* bodies.h: plans of the sub-graphs that a plan runs (branches, steps and conditions of loops).
 * They belong to it and go with it: so a program keeps all of its bodies, however many there are,
 * and of each as many shapes as the engine keeps programs. The engine's lock guards them. */
#ifndef TUTTI_EXEC_BODIES_H
#define TUTTI_EXEC_BODIES_H

#include "exec/cache.h"

/* Where the plans of this sub-graph are kept; NULL: no memory. Valid until the next call. */
tutti_plan_cache *tutti__bodies_cache(tutti_plan *plan, const tutti_graph *body);
void tutti__bodies_free(tutti_bodies *bodies); /* NULL is fine */

#endif
