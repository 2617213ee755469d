/* bodies.c: see bodies.h. */
#include "exec/bodies.h"

#include <stdlib.h>

typedef struct body {
    const tutti_graph *graph;
    tutti_plan_cache cache;
} body;

/* Each time one is found it comes half the way to the front: a loop calls the same two again and
 * again. */
struct tutti_bodies {
    TUTTI_VEC(body) list;
};

tutti_plan_cache *tutti__bodies_cache(tutti_plan *plan, const tutti_graph *graph)
{
    if (!plan->bodies && !(plan->bodies = calloc(1, sizeof *plan->bodies)))
        return NULL;
    tutti_bodies *bodies = plan->bodies;
    size_t at = 0;
    while (at < bodies->list.count && bodies->list.data[at].graph != graph)
        at++;
    if (at == bodies->list.count && !TUTTI_VEC_PUSH(&bodies->list, (body){.graph = graph}))
        return NULL;
    size_t front = at < 2 ? at : at / 2;
    body found = bodies->list.data[at];
    bodies->list.data[at] = bodies->list.data[front];
    bodies->list.data[front] = found;
    return &bodies->list.data[front].cache;
}

void tutti__bodies_free(tutti_bodies *bodies)
{
    for (size_t i = 0; bodies && i < bodies->list.count; i++)
        tutti__cache_free(&bodies->list.data[i].cache);
    if (bodies)
        TUTTI_VEC_FREE(&bodies->list);
    free(bodies);
}
