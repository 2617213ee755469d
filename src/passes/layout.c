/* layout.c: the order of axes is chosen over the whole graph, by the bytes that transposes move.
 *
 * Operators like convolution take [batch, height, width, channels] and nothing else. Element-wise
 * work, joins and softmax do not care, and take the order that costs least. For every transpose the
 * nodes of that kind that hang together with it, above or below, are a region, which may be turned:
 * computed in the other order. Along its rim
 *     a transpose into the region by the inverse    goes, if nobody else needs it
 *     a transpose out of the region by the order    goes
 *     a reduction over axes of the region           names other axes
 *     a constant, or a value whose axes of more than 1 keep their order, costs nothing
 *     any other value from outside                  is transposed, once
 *     any other use of a value of the region        is given the value transposed back
 * From the whole region nodes are taken out one by one as long as that makes the rest cheaper; what
 * is left is turned if fewer bytes move than before. So transposes end up at the edges of what
 * needs them. */
#include "passes/layout.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 512 }; /* nodes of one region */

static void layout_take(tutti_region *r, tutti_node *node, int *depth, tutti_node **stack)
{
    if (r->member[node->id] || r->turned[node->id].node != NULL || r->count == MOST ||
        !tutti__layout_is_free(r, node))
        return;
    r->member[node->id] = true;
    r->nodes[r->count++] = node;
    stack[(*depth)++] = node;
}

/* The nodes that hang together with `first` over values of the region's rank. */
static void grow(tutti_region *r, tutti_node *first, tutti_node **stack)
{
    int depth = 0;
    layout_take(r, first, &depth, stack);
    while (depth > 0) {
        const tutti_node *node = stack[--depth];
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i].node->scratch != NULL)
                layout_take(r, node->inputs[i].node, &depth, stack);
        for (uint32_t u = r->uses->first[node->id]; u < r->uses->first[node->id + 1]; u++)
            layout_take(r, r->uses->users[u], &depth, stack);
    }
}

static int by_id(const void *a, const void *b)
{
    uint32_t x = (*(tutti_node *const *)a)->id, y = (*(tutti_node *const *)b)->id;
    return (x > y) - (x < y);
}

/* Takes out nodes that cost more inside than outside, until there is none. */
static int64_t shrink(tutti_region *r)
{
    int64_t best = tutti__layout_gain(r);
    bool better = true;
    while (better) {
        better = false;
        for (int i = 0; i < r->count; i++) {
            uint32_t id = r->nodes[i]->id;
            if (!r->member[id])
                continue;
            r->member[id] = false;
            int64_t gain = tutti__layout_gain(r);
            better = better || gain > best;
            r->member[id] = gain <= best;
            best = gain > best ? gain : best;
        }
    }
    int kept = 0;
    for (int i = 0; i < r->count; i++)
        if (r->member[r->nodes[i]->id])
            r->nodes[kept++] = r->nodes[i];
    r->count = kept;
    return best;
}

/* One region from a node beside a transpose: what turning it gains, and if so said it is turned. */
static tutti_status try_region(tutti_region *r, tutti_node *first, tutti_node **stack, bool turn,
                               int64_t *ret_gain)
{
    tutti_status status = TUTTI_OK;
    r->count = 0;
    *ret_gain = 0;
    grow(r, first, stack);
    if (r->count == 0)
        return TUTTI_OK;
    qsort(r->nodes, (size_t)r->count, sizeof(tutti_node *), by_id);
    int all = r->count;
    memcpy(stack, r->nodes, (size_t)all * sizeof(tutti_node *));
    *ret_gain = shrink(r);
    if (turn && *ret_gain > 0 && r->count > 0)
        status = tutti__layout_turn(r);
    for (int i = 0; i < all; i++)
        r->member[stack[i]->id] = false;
    return status;
}

/* The region before a transpose, or those behind it; the largest gain of one of them. */
static tutti_status try_side(tutti_region *r, tutti_node *transpose, bool behind,
                             tutti_node **stack, bool turn, int64_t *ret_gain)
{
    int order[TUTTI_MAX_RANK];
    int64_t gain;
    *ret_gain = 0;
    tutti__transpose_order(transpose, order);
    r->rank = transpose->types[0].rank;
    for (int i = 0; i < r->rank; i++)
        r->order[behind ? order[i] : i] = behind ? i : order[i];
    if (!behind)
        return transpose->inputs[0].node->scratch == NULL
                   ? TUTTI_OK
                   : try_region(r, transpose->inputs[0].node, stack, turn, ret_gain);
    for (uint32_t u = r->uses->first[transpose->id]; u < r->uses->first[transpose->id + 1]; u++) {
        TUTTI_TRY(try_region(r, r->uses->users[u], stack, turn, &gain));
        *ret_gain = gain > *ret_gain ? gain : *ret_gain;
    }
    return TUTTI_OK;
}

/* A transpose may end a region, which its order turns, or begin one, which the inverse turns. The
 * side that gains more goes first: a cast that is smaller before it than behind it would else draw
 * the transpose to the far side of it, away from the one that it cancels with. */
static tutti_status look_at(tutti_region *r, tutti_node *node, tutti_node **stack)
{
    int64_t before = 0, behind = 0, gain;
    if (!tutti__is(node, "transpose") || tutti__rewrite_pinned(node) ||
        !tutti_type_is_static(&node->types[0]) || tutti_type_count(&node->types[0]) < 2)
        return TUTTI_OK;
    TUTTI_TRY(try_side(r, node, false, stack, false, &before));
    if (before > 0)
        TUTTI_TRY(try_side(r, node, true, stack, false, &behind));
    bool behind_first = behind > before;
    TUTTI_TRY(try_side(r, node, behind_first, stack, true, &gain));
    return try_side(r, node, !behind_first, stack, true, &gain);
}

static bool has_transposes(const tutti_graph *graph)
{
    for (size_t n = 0; n < graph->nodes.count; n++)
        if (tutti__is(graph->nodes.data[n], "transpose"))
            return true;
    return false;
}

static tutti_status walk(tutti_rewrite *rewrite, tutti_region *r, tutti_node **stack)
{
    tutti_graph *graph = rewrite->graph;
    for (size_t n = 0; n < rewrite->node_count; n++)
        TUTTI_TRY(look_at(r, graph->nodes.data[n], stack));
    for (size_t n = 0; n < graph->nodes.count; n++)
        tutti__rewrite_visit(graph->nodes.data[n]);
    return TUTTI_OK;
}

static tutti_status layout_run(tutti_graph *graph, const tutti_pass_context *context,
                               int *ret_changes)
{
    tutti_rewrite rewrite;
    tutti_uses uses = {0};
    *ret_changes = 0;
    if (!has_transposes(graph))
        return TUTTI_OK;
    size_t count = graph->nodes.count + 1;
    tutti_node **stack = calloc(count, sizeof(tutti_node *));
    tutti_region r = {.rewrite = &rewrite,
                      .uses = &uses,
                      .member = calloc(count, sizeof(bool)),
                      .turned = calloc(count, sizeof(tutti_edge)),
                      .nodes = calloc(count, sizeof(tutti_node *))};
    tutti_status status = tutti__rewrite_begin(&rewrite, graph, context);
    if (status == TUTTI_OK && !(stack && r.member && r.turned && r.nodes))
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory to lay out %zu nodes", count);
    if (status == TUTTI_OK)
        status = tutti__uses_create(graph, &uses);
    if (status == TUTTI_OK)
        status = walk(&rewrite, &r, stack);
    tutti__uses_free(&uses);
    free(stack);
    free(r.member);
    free(r.turned);
    free(r.nodes);
    return tutti__rewrite_end(&rewrite, status, ret_changes);
}

const tutti_pass tutti_pass_layout = {
    .name = "layout",
    .doc = "the order of axes is chosen so that transposes move the fewest bytes",
    .stage = TUTTI_PASS_PARTITION,
    .order = 45,
    .run = layout_run,
};
