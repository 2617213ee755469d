/* segment.c: cuts a graph where shapes depend on data. See segment.h. */
#include "exec/plan/segment.h"

#include <stdlib.h>
#include <string.h>

#include "passes/meet.h"

static bool unknown_outputs(const tutti_node *node)
{
    for (int i = 0; i < node->output_count; i++)
        if (tutti__type_by_data(&node->types[i]))
            return true;
    return false;
}

/* Whether something new waits. partner: by node id, who meets whom. */
static bool spread_once(const tutti_graph *graph, const tutti_node *const *partner,
                        const bool *dynamic, bool *late)
{
    bool changed = false;
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        bool waits = late[n] || (partner[n] && late[partner[n]->id]);
        for (int i = 0; i < node->input_count && !waits; i++)
            waits = late[node->inputs[i].node->id] || dynamic[node->inputs[i].node->id];
        for (int i = 0; i < node->control_count && !waits; i++)
            waits = late[node->controls[i]->id];
        changed = changed || waits != late[n];
        late[n] = waits;
    }
    return changed;
}

static bool meets(const tutti_graph *graph)
{
    for (size_t n = 0; n < graph->nodes.count; n++)
        if ((graph->nodes.data[n]->op->flags & TUTTI_OP_COLLECTIVE) ||
            tutti__is(graph->nodes.data[n], "recv"))
            return true;
    return false;
}

/* dynamic, partner: scratch, zeroed. */
static tutti_status segment_find(tutti_graph *graph, const char *fallback, bool *dynamic,
                                 const tutti_node **partner, bool *ret_any, bool *late)
{
    for (size_t n = 0; n < graph->nodes.count; n++)
        dynamic[n] = unknown_outputs(graph->nodes.data[n]);
    *ret_any = spread_once(graph, partner, dynamic, late); /* ids ascend along edges */
    if (!*ret_any)
        return TUTTI_OK;
    if (meets(graph))
        TUTTI_TRY(tutti__meeting_partners(graph, fallback, partner));
    for (size_t n = 0; n < graph->nodes.count; n++)
        late[n] = late[n] || (graph->nodes.data[n]->op->flags & TUTTI_OP_UPDATES);
    while (spread_once(graph, partner, dynamic, late)) {
    }
    return TUTTI_OK;
}

tutti_status tutti__segment_find(tutti_graph *graph, const char *fallback, bool *ret_any,
                                 bool *ret_late)
{
    bool *dynamic = calloc(graph->nodes.count + 1, sizeof *dynamic);
    const tutti_node **partner = calloc(graph->nodes.count + 1, sizeof *partner);
    tutti_status status = dynamic && partner
                              ? segment_find(graph, fallback, dynamic, partner, ret_any, ret_late)
                              : tutti_fail(TUTTI_NO_MEMORY, "no memory to cut a graph");
    free(dynamic);
    free(partner);
    return status;
}

typedef TUTTI_VEC(tutti_edge) edges;

static int position(const edges *list, tutti_edge edge)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->data[i].node == edge.node && list->data[i].index == edge.index)
            return (int)i;
    return -1;
}

/* Early edges that the late part or the user wants: the results of the first segment. */
static bool want(edges *list, tutti_edge edge)
{
    return position(list, edge) >= 0 || TUTTI_VEC_PUSH(list, edge);
}

static bool boundary(const tutti_graph *graph, const bool *late, edges *list)
{
    bool ok = true;
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        for (int i = 0; ok && late[n] && i < node->input_count; i++) {
            tutti_edge edge = node->inputs[i];
            bool stays = tutti__edge_type(edge)->handle || tutti__is(edge.node, "constant");
            if (!late[edge.node->id] && !stays)
                ok = want(list, edge);
        }
    }
    return ok;
}

/* In the rest, nothing waits for early nodes any more: they have run. Constants, which stand there
 * too, may wait for some. */
static void cut_controls(tutti_graph *rest, tutti_node **map, const tutti_graph *graph,
                         const bool *late)
{
    TUTTI_UNUSED(rest);
    for (size_t n = 0; n < graph->nodes.count; n++) {
        tutti_node *node = map[n];
        const tutti_node *old = graph->nodes.data[n];
        node->control_count = 0;
        for (int i = 0; late[n] && i < old->control_count; i++)
            if (late[old->controls[i]->id])
                node->controls[node->control_count++] = map[old->controls[i]->id];
    }
}

static tutti_status segment_fill(tutti_graph *graph, const bool *late, tutti_node **map,
                                 const edges *early, tutti_segment_cut *cut)
{
    size_t results = graph->results.count, targets = graph->targets.count;
    cut->feeds = calloc(early->count + 1, sizeof *cut->feeds);
    cut->fetches = calloc(results + 1, sizeof *cut->fetches);
    cut->fetch_map = calloc(results + 1, sizeof *cut->fetch_map);
    cut->targets = calloc(targets + 1, sizeof *cut->targets);
    if (!cut->feeds || !cut->fetches || !cut->fetch_map || !cut->targets)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to cut a graph");
    cut->feed_count = (int)early->count;
    for (size_t i = 0; i < early->count; i++)
        cut->feeds[i] = (tutti_edge){map[early->data[i].node->id], early->data[i].index};
    for (size_t i = 0; i < results; i++) {
        tutti_edge edge = graph->results.data[i];
        cut->fetch_map[i] = position(early, edge);
        if (cut->fetch_map[i] < 0) {
            cut->fetches[cut->fetch_count] = (tutti_edge){map[edge.node->id], edge.index};
            cut->fetch_map[i] = ~cut->fetch_count++;
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < targets; i++) {
        tutti_node *node = graph->targets.data[i];
        if (late[node->id])
            cut->targets[cut->target_count++] = map[node->id];
        else
            graph->targets.data[kept++] = node;
    }
    graph->targets.count = kept;
    return TUTTI_OK;
}

/* Updates wait for the last segment, so what follows one cannot say how the segments are cut. */
static tutti_status check_progress(const tutti_graph *graph, const bool *late)
{
    const tutti_node *first = NULL;
    char place[TUTTI_PLACE_TEXT];
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        if (unknown_outputs(node) && !late[n])
            return TUTTI_OK;
        if (unknown_outputs(node) && !first)
            first = node;
    }
    if (!first)
        return TUTTI_OK;
    return tutti_fail(TUTTI_UNSUPPORTED,
                      "%s '%s'%s: the shape of its result depends on data that follow an "
                      "update of the same run; update (or initialise) in a run or step before",
                      first->op->name, first->name, tutti__node_place(first, place));
}

tutti_status tutti__segment_cut(tutti_graph *graph, const bool *late, tutti_segment_cut *ret)
{
    tutti_segment_cut cut = {0};
    edges early = {0};
    tutti_node **map = NULL;
    bool ok = true;
    TUTTI_TRY(check_progress(graph, late));
    for (size_t i = 0; ok && i < graph->results.count; i++)
        if (!late[graph->results.data[i].node->id])
            ok = want(&early, graph->results.data[i]);
    ok = ok && boundary(graph, late, &early);
    tutti_status status =
        ok ? tutti__graph_copy(graph, &cut.rest, &map)
           : tutti_fail(TUTTI_NO_MEMORY, "no memory to cut a graph into segments");
    if (status == TUTTI_OK) {
        cut_controls(cut.rest, map, graph, late);
        status = segment_fill(graph, late, map, &early, &cut);
    }
    if (status == TUTTI_OK) {
        /* Early nodes with effects run in the first segment even when only late nodes waited for
         * them. */
        for (size_t n = 0; n < graph->nodes.count && status == TUTTI_OK; n++) {
            tutti_node *node = graph->nodes.data[n];
            for (int i = 0; late[n] && i < node->control_count; i++)
                if (!late[node->controls[i]->id] &&
                    !TUTTI_VEC_PUSH(&graph->targets, node->controls[i]))
                    status = tutti_fail(TUTTI_NO_MEMORY, "no memory to cut a graph into segments");
        }
        graph->results.count = 0;
        for (size_t i = 0; i < early.count && status == TUTTI_OK; i++)
            status = tutti__graph_result(graph, early.data[i]);
    }
    if (status == TUTTI_OK)
        status = tutti__graph_prune(graph);
    free(map);
    TUTTI_VEC_FREE(&early);
    if (status != TUTTI_OK)
        tutti__cut_free(&cut);
    else
        *ret = cut;
    return status;
}

void tutti__cut_free(tutti_segment_cut *cut)
{
    tutti_graph_destroy(cut->rest);
    free(cut->feeds);
    free(cut->fetches);
    free(cut->fetch_map);
    free(cut->targets);
    *cut = (tutti_segment_cut){0};
}
