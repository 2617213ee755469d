/* overlap.c: the order of a step whose sums run beside it.
 *
 * Buckets are started one after the other, as their gradients are born. What a bucket needs is
 * computed before what only later ones need, or none: the gradient of a layer's weights before that
 * of its input, so that the wire has work sooner.
 *
 * It is a stable sort by the first bucket that a node is computed for. That number never falls
 * along an edge, so the order stays topological. Nodes with effects of their own (prints, queues)
 * stay in their order. Waits and updates come last: no variable changes before all sums are there.
 */
#include <limits.h>
#include <stdlib.h>

#include "parallel/spmd/rewrite.h"

typedef struct place {
    tutti_node *node;
    int need; /* a bucket; INT_MAX: none needs it */
} place;

static bool is_start(const tutti_node *node)
{
    return tutti__is(node, "all_reduce_many") && tutti__int(node, "starts");
}

static bool keeps_order(const tutti_node *node)
{
    return (node->op->flags & (TUTTI_OP_STATEFUL | TUTTI_OP_BLOCKING | TUTTI_OP_CONTROL)) != 0 &&
           (node->op->flags & (TUTTI_OP_UPDATES | TUTTI_OP_COLLECTIVE | TUTTI_OP_HANDLE)) == 0;
}

static uint32_t born(const tutti_node *start)
{
    uint32_t latest = 0;
    for (int i = 0; i < start->input_count; i++)
        latest = start->inputs[i].node->id > latest ? start->inputs[i].node->id : latest;
    return latest;
}

static int by_birth(const void *left, const void *right)
{
    const tutti_node *a = *(tutti_node *const *)left, *b = *(tutti_node *const *)right;
    if (born(a) != born(b))
        return born(a) < born(b) ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* By node id; -1: not the start of a bucket. */
static void number_starts(const tutti_graph *graph, tutti_node **starts, int *number)
{
    size_t count = 0;
    for (size_t n = 0; n < graph->nodes.count; n++) {
        number[n] = -1;
        if (is_start(graph->nodes.data[n]))
            starts[count++] = graph->nodes.data[n];
    }
    qsort(starts, count, sizeof *starts, by_birth);
    for (size_t i = 0; i < count; i++)
        number[starts[i]->id] = (int)i;
}

static void lower(int *value, int to)
{
    *value = to < *value ? to : *value;
}

static void find_needs(const tutti_graph *graph, const int *number, place *places)
{
    int following = INT_MAX;
    for (size_t n = graph->nodes.count; n-- > 0;) {
        const tutti_node *node = graph->nodes.data[n];
        if (number[n] >= 0)
            lower(&places[n].need, number[n]);
        if (keeps_order(node)) {
            lower(&places[n].need, following);
            following = places[n].need;
        }
        for (int i = 0; i < node->input_count; i++)
            lower(&places[node->inputs[i].node->id].need, places[n].need);
        for (int i = 0; i < node->control_count; i++)
            lower(&places[node->controls[i]->id].need, places[n].need);
    }
}

static int by_place(const void *left, const void *right)
{
    const place *a = left, *b = right;
    if (a->need != b->need)
        return a->need < b->need ? -1 : 1;
    return a->node->id < b->node->id ? -1 : a->node->id > b->node->id;
}

tutti_status tutti__spmd_overlap(tutti_graph *graph)
{
    size_t count = graph->nodes.count;
    place *places = calloc(count + 1, sizeof *places);
    tutti_node **starts = calloc(count + 1, sizeof *starts);
    int *number = calloc(count + 1, sizeof *number);
    bool ok = places && starts && number;
    if (ok) {
        for (size_t n = 0; n < count; n++)
            places[n] = (place){graph->nodes.data[n], INT_MAX};
        number_starts(graph, starts, number);
        find_needs(graph, number, places);
        qsort(places, count, sizeof *places, by_place);
        for (size_t n = 0; n < count; n++) {
            graph->nodes.data[n] = places[n].node;
            places[n].node->id = (uint32_t)n;
        }
        graph->version++;
    }
    free(places);
    free(starts);
    free(number);
    return ok ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory to order a step");
}
