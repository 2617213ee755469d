/* sequence.c: the order of a program's nodes: that of the graph, what does not follow an update
 * first.
 *
 * In it, a node that makes little out of much, such as the sum that is the gradient of a bias, runs
 * as soon as only nodes of its kind are left to read the much. Rewrites leave such
 * nodes where their own reader is, at the end, and all that they read would have to be kept until
 * then. What is sent goes as soon as it is made. */
#include <stdlib.h>

#include "program/order.h"

enum { LITTLE = 2 }; /* what is read has at least so many times the bytes of what is made */

/* A node's place: behind which node of the graph it runs. */
typedef struct place {
    tutti_node *node;
    int32_t after;
} place;

static size_t bytes_of(const tutti_type *type)
{
    int64_t count = tutti_type_count(type);
    return count > 0 ? (size_t)count * tutti_dtype_size(type->dtype) : 0;
}

static bool is_view(const tutti_node *node)
{
    return (node->op->flags & TUTTI_OP_VIEW) && node->input_count > 0;
}

/* The value in whose memory an edge's lies. */
static tutti_edge root_of(tutti_edge edge)
{
    while (edge.index == 0 && is_view(edge.node))
        edge = edge.node->inputs[0];
    return edge;
}

/* Whether a node may run before others that stand before it. */
static bool may_move(const tutti_order *o, const tutti_node *node)
{
    const uint32_t never = TUTTI_OP_STATEFUL | TUTTI_OP_UPDATES | TUTTI_OP_BLOCKING |
                           TUTTI_OP_COLLECTIVE | TUTTI_OP_CONTROL | TUTTI_OP_HANDLE |
                           TUTTI_OP_TAKES_HANDLE;
    return o->runs[node->id] && !(node->op->flags & never) && node->control_count == 0;
}

/* Whether a node that reads an input makes little out of it. */
static bool makes_little(const tutti_order *o, const tutti_node *node, int input)
{
    size_t made = 0;
    for (int i = 0; i < node->output_count; i++)
        made += bytes_of(&node->types[i]);
    return may_move(o, node) && bytes_of(tutti__edge_type(node->inputs[input])) >= LITTLE * made;
}

/* Notes for every value the last node that reads its memory and makes more than a little of it. */
static void find_readers(const tutti_order *o, const size_t *first, int32_t *last)
{
    for (size_t n = 0; n < o->node_count; n++) {
        const tutti_node *node = o->graph->nodes.data[n];
        for (int i = 0; o->runs[n] && i < node->input_count; i++)
            if (!makes_little(o, node, i)) {
                tutti_edge root = root_of(node->inputs[i]);
                last[first[root.node->id] + root.index] = (int32_t)n;
            }
    }
}

/* The node behind which it may run and free what it reads; its own place when it frees nothing. */
static int32_t frees_after(const tutti_order *o, const tutti_node *node, const size_t *first,
                           const int32_t *last)
{
    int32_t best = (int32_t)node->id;
    for (int i = 0; i < node->input_count; i++) {
        tutti_edge root = root_of(node->inputs[i]);
        int32_t made = (int32_t)root.node->id, read = last[first[made] + root.index];
        if (!o->runs[made] || read > (int32_t)node->id || !makes_little(o, node, i))
            continue;
        int32_t after = read > made ? read : made;
        best = after < best ? after : best;
    }
    return best;
}

static int by_place(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->after != y->after)
        return x->after < y->after ? -1 : 1;
    return (x->node->id > y->node->id) - (x->node->id < y->node->id);
}

/* Where the last of what it waits for by control edges stands, but not before `ready`. */
static int32_t after_controls(const tutti_node *node, const int32_t *after, int32_t ready)
{
    for (int i = 0; i < node->control_count; i++) {
        int32_t before = after[node->controls[i]->id];
        ready = before > ready ? before : ready;
    }
    return ready;
}

/* Nodes stay behind what they read: `after` never falls along an edge, and of equal ones the first
 * in the graph comes first. */
static void find_places(const tutti_order *o, const size_t *first, const int32_t *last,
                        int32_t *after)
{
    for (size_t n = 0; n < o->node_count; n++) {
        const tutti_node *node = o->graph->nodes.data[n];
        int32_t ready = 0, wish = (int32_t)n;
        for (int i = 0; i < node->input_count; i++) {
            int32_t before = after[node->inputs[i].node->id];
            ready = before > ready ? before : ready;
        }
        if (is_view(node) && !o->runs[n] && node->control_count == 0)
            wish = ready;
        else if (may_move(o, node))
            wish = frees_after(o, node, first, last);
        else if (tutti__is(node, "send")) /* somebody waits for it */
            wish = after_controls(node, after, ready);
        after[n] = wish > ready ? wish : ready;
    }
}

tutti_status tutti__order_sequence(tutti_order *o)
{
    size_t *first = calloc(o->node_count + 1, sizeof *first), outputs = 0; /* by id: its values */
    for (size_t n = 0; first && n < o->node_count; n++) {
        first[n] = outputs;
        outputs += (size_t)o->graph->nodes.data[n]->output_count;
    }
    int32_t *last = calloc(outputs + 1, sizeof *last);
    int32_t *after = calloc(o->node_count + 1, sizeof *after);
    place *places = calloc(o->node_count + 1, sizeof *places);
    bool ok = first && last && after && places;
    if (ok) {
        find_readers(o, first, last);
        find_places(o, first, last, after);
    }
    for (int commits = 0; ok && commits < 2; commits++) {
        size_t count = 0;
        for (size_t n = 0; n < o->node_count; n++)
            if (o->commits[n] == (commits == 1))
                places[count++] = (place){o->graph->nodes.data[n], commits ? (int32_t)n : after[n]};
        qsort(places, count, sizeof *places, by_place);
        for (size_t i = 0; i < count; i++) {
            o->position[places[i].node->id] = (int32_t)o->sequence_count;
            o->sequence[o->sequence_count++] = places[i].node;
        }
    }
    free(first);
    free(last);
    free(after);
    free(places);
    return ok ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory to lower a graph");
}
