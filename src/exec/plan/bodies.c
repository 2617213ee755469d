/* bodies.c: see bodies.h. */
#include "exec/plan/bodies.h"

#include <stdlib.h>

#include "passes/rewrite.h"

typedef struct body {
    const tutti_graph *graph;
    tutti_plan_cache cache;
    tutti_body_feed *feeds; /* NULL: not looked at yet */
    int feed_count;
} body;

/* Each time one is found it comes half the way to the front: a loop calls the same two again and
 * again. */
struct tutti_bodies {
    TUTTI_VEC(body) list;
};

static body *bodies_find(tutti_plan *plan, const tutti_graph *graph)
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
    return &bodies->list.data[front];
}

tutti_plan_cache *tutti__bodies_cache(tutti_plan *plan, const tutti_graph *graph)
{
    body *found = bodies_find(plan, graph);
    return found ? &found->cache : NULL;
}

static tutti_status check_node(const tutti_node *node)
{
    if (node->op->flags & TUTTI_OP_UPDATES)
        return tutti_fail(
            TUTTI_UNSUPPORTED,
            "%s '%s' writes a variable inside cond or while; return the value and assign it outside",
            node->op->name, node->name);
    if (node->op->flags & TUTTI_OP_COLLECTIVE)
        return tutti_fail(
            TUTTI_UNSUPPORTED,
            "%s '%s' meets other devices inside cond or while, where they cannot; put it outside",
            node->op->name, node->name);
    return TUTTI_OK;
}

static tutti_status look(body *b, const bool *needed)
{
    int count = 0;
    for (size_t i = 0; i < b->graph->nodes.count; i++) {
        tutti_node *node = b->graph->nodes.data[i];
        TUTTI_TRY(check_node(node));
        if (needed[i] && tutti__is(node, "parameter"))
            b->feeds[count++] = (tutti_body_feed){{node, 0}, tutti__int(node, "index")};
    }
    b->feed_count = count;
    return TUTTI_OK;
}

tutti_status tutti__bodies_feeds(tutti_plan *plan, const tutti_graph *graph, int *ret_count,
                                 const tutti_body_feed **ret_feeds)
{
    body *b = bodies_find(plan, graph);
    if (b && !b->feeds) {
        bool *needed = calloc(graph->nodes.count + 1, sizeof *needed);
        b->feeds = calloc(graph->nodes.count + 1, sizeof *b->feeds);
        tutti_status status = TUTTI_OK;
        if (needed && b->feeds) {
            tutti__mark_needed(graph, needed);
            status = look(b, needed);
        }
        if (!needed || status != TUTTI_OK) {
            free(b->feeds);
            b->feeds = NULL;
        }
        free(needed);
        TUTTI_TRY(status);
    }
    if (!b || !b->feeds)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to call a sub-graph");
    *ret_count = b->feed_count;
    *ret_feeds = b->feeds;
    return TUTTI_OK;
}

void tutti__bodies_free(tutti_bodies *bodies)
{
    for (size_t i = 0; bodies && i < bodies->list.count; i++) {
        tutti__cache_free(&bodies->list.data[i].cache);
        free(bodies->list.data[i].feeds);
    }
    if (bodies)
        TUTTI_VEC_FREE(&bodies->list);
    free(bodies);
}
