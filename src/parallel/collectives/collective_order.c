/* collective_order.c: one order of collectives for all processes.
 *
 * What a replica does not need is not there: one adds a penalty, and the others only wait for what
 * that has met for. A bucket that stood before whoever uses it first would stand in another place
 * there. So it stands where its last sum is born, as early as it can: what is born stands in one
 * order on all replicas, and of what could come next the first born one does. A wait comes before
 * the first that needs it. */
#include <stdlib.h>

#include "parallel/spmd/rewrite.h"

typedef struct line {
    const tutti_graph *graph;
    uint32_t *birth, *lacks; /* by node id; lacks: nodes that have to stand before it */
    uint32_t *first, *users; /* users[first[id]..first[id + 1]): who lacks this one */
    uint32_t *heap;          /* ids that lack nothing, the first born on top */
    size_t heap_count;
} line;

static bool before(const line *l, uint32_t a, uint32_t b)
{
    return l->birth[a] != l->birth[b] ? l->birth[a] < l->birth[b] : a < b;
}

static void collective_order_push(line *l, uint32_t id)
{
    size_t at = l->heap_count++;
    for (; at > 0 && before(l, id, l->heap[(at - 1) / 2]); at = (at - 1) / 2)
        l->heap[at] = l->heap[(at - 1) / 2];
    l->heap[at] = id;
}

static uint32_t pop(line *l)
{
    uint32_t top = l->heap[0], last = l->heap[--l->heap_count];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < l->heap_count) {
        child += child + 1 < l->heap_count && before(l, l->heap[child + 1], l->heap[child]);
        if (!before(l, l->heap[child], last))
            break;
        l->heap[at] = l->heap[child];
        at = child;
    }
    l->heap[at] = last;
    return top;
}

static size_t needs(const tutti_node *node)
{
    return (size_t)node->input_count + (size_t)node->control_count;
}

static const tutti_node *need(const tutti_node *node, size_t i)
{
    return i < (size_t)node->input_count ? node->inputs[i].node
                                         : node->controls[i - (size_t)node->input_count];
}

/* Nodes from `known` on are new: buckets, and waits for them. */
static void find_births(line *l, size_t known)
{
    for (size_t n = 0; n < l->graph->nodes.count; n++) {
        const tutti_node *node = l->graph->nodes.data[n];
        bool waits = n >= known && tutti__is(node, "all_reduce_wait");
        l->birth[n] = n < known ? (uint32_t)n : waits ? UINT32_MAX : 0;
        for (size_t i = 0; n >= known && !waits && i < needs(node); i++)
            if (l->birth[need(node, i)->id] > l->birth[n])
                l->birth[n] = l->birth[need(node, i)->id];
    }
    for (size_t n = 0; n < known; n++) {
        const tutti_node *node = l->graph->nodes.data[n];
        for (size_t i = 0; !node->dead && i < needs(node); i++) {
            uint32_t id = need(node, i)->id;
            if (id >= known && tutti__is(need(node, i), "all_reduce_wait") && l->birth[id] > n)
                l->birth[id] = (uint32_t)n;
        }
    }
}

static void find_users(line *l)
{
    size_t count = l->graph->nodes.count;
    for (size_t n = 0; n < count; n++) {
        const tutti_node *node = l->graph->nodes.data[n];
        l->lacks[n] = node->dead ? 0 : (uint32_t)needs(node);
        for (size_t i = 0; !node->dead && i < needs(node); i++)
            l->first[need(node, i)->id + 1]++;
    }
    for (size_t n = 0; n < count; n++)
        l->first[n + 1] += l->first[n];
    for (size_t n = count; n-- > 0;) { /* filled from behind: first[] is where it begins again */
        const tutti_node *node = l->graph->nodes.data[n];
        for (size_t i = 0; !node->dead && i < needs(node); i++)
            l->users[--l->first[need(node, i)->id + 1]] = (uint32_t)n;
    }
    for (size_t n = 0; n < count; n++)
        l->first[n] = l->first[n + 1];
}

/* The order; dead nodes behind the others. How many have a place: all, where nothing waits for
 * itself. */
static size_t arrange(line *l, tutti_node **order, size_t users)
{
    size_t count = l->graph->nodes.count, placed = 0;
    for (uint32_t n = 0; n < count; n++)
        if (!l->graph->nodes.data[n]->dead && l->lacks[n] == 0)
            collective_order_push(l, n);
    while (l->heap_count > 0) {
        uint32_t id = pop(l);
        size_t end = id + 1 < count ? l->first[id + 1] : users;
        order[placed++] = l->graph->nodes.data[id];
        for (size_t u = l->first[id]; u < end; u++)
            if (--l->lacks[l->users[u]] == 0)
                collective_order_push(l, l->users[u]);
    }
    for (size_t n = 0; n < count; n++)
        if (l->graph->nodes.data[n]->dead)
            order[placed++] = l->graph->nodes.data[n];
    return placed;
}

tutti_status tutti__spmd_collective_order(tutti_graph *graph, size_t known)
{
    size_t count = graph->nodes.count, edges = 0;
    for (size_t n = 0; n < count; n++)
        edges += graph->nodes.data[n]->dead ? 0 : needs(graph->nodes.data[n]);
    line l = {.graph = graph,
              .birth = calloc(count + 1, sizeof *l.birth),
              .lacks = calloc(count + 1, sizeof *l.lacks),
              .first = calloc(count + 2, sizeof *l.first),
              .users = calloc(edges + 1, sizeof *l.users),
              .heap = calloc(count + 1, sizeof *l.heap)};
    tutti_node **order = calloc(count + 1, sizeof *order);
    bool ok = l.birth && l.lacks && l.first && l.users && l.heap && order;
    if (ok) {
        find_births(&l, known);
        find_users(&l);
        size_t placed = arrange(&l, order, edges);
        for (size_t n = 0; n < placed; n++) {
            graph->nodes.data[n] = order[n];
            order[n]->id = (uint32_t)n;
        }
        graph->version++;
    }
    free(l.birth);
    free(l.lacks);
    free(l.first);
    free(l.users);
    free(l.heap);
    free(order);
    return ok ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory to order a step");
}
