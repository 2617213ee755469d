/* extract.c: the part of a graph that a run needs. */
#include <stdlib.h>

#include "graph/attr.h"
#include "graph/graph.h"

typedef struct extraction {
    const tutti_graph *from;
    const tutti_extract *wanted;
    tutti_graph *to;
    bool *needed;     /* by old id */
    tutti_node **map; /* by old id */
    tutti_node **fed; /* parameter nodes */
} extraction;

static int feed_of(const tutti_extract *wanted, tutti_edge edge)
{
    for (int i = 0; i < wanted->feed_count; i++)
        if (wanted->feeds[i].node == edge.node && wanted->feeds[i].index == edge.index)
            return i;
    return -1;
}

/* A placeholder that is fed has nothing left to do: who waits for it need not. */
static bool is_given(const extraction *x, tutti_node *node)
{
    return tutti__is(node, "placeholder") && feed_of(x->wanted, (tutti_edge){node, 0}) >= 0;
}

static void need_done(const extraction *x, tutti_node *node)
{
    if (!is_given(x, node))
        x->needed[node->id] = true;
}

static void mark(extraction *x)
{
    for (int i = 0; i < x->wanted->fetch_count; i++)
        if (feed_of(x->wanted, x->wanted->fetches[i]) < 0)
            x->needed[x->wanted->fetches[i].node->id] = true;
    for (int i = 0; i < x->wanted->target_count; i++)
        need_done(x, x->wanted->targets[i]);
    for (size_t n = x->from->nodes.count; n-- > 0;) {
        const tutti_node *node = x->from->nodes.data[n];
        if (!x->needed[n])
            continue;
        for (int i = 0; i < node->input_count; i++)
            if (feed_of(x->wanted, node->inputs[i]) < 0)
                x->needed[node->inputs[i].node->id] = true;
        for (int i = 0; i < node->control_count; i++)
            need_done(x, node->controls[i]);
    }
}

static tutti_status add_parameters(extraction *x)
{
    const tutti_op *op = tutti_op_find("parameter");
    if (!op)
        return tutti_fail(TUTTI_INTERNAL, "operator 'parameter' is missing");
    for (int i = 0; i < x->wanted->feed_count; i++) {
        const tutti_type *type = &x->wanted->feed_types[i];
        tutti_attr attrs[] = {TUTTI_INT("index", i), TUTTI_INT("dtype", type->dtype),
                              TUTTI_INTS("dims", type->rank, type->dims)};
        TUTTI_TRY(tutti__node_add(x->to, op, x->wanted->feeds[i].node->name, 0, NULL, 3, attrs,
                                  &x->fed[i]));
        x->fed[i]->device = tutti__arena_string(&x->to->arena, x->wanted->feeds[i].node->device);
        x->fed[i]->origin = tutti__arena_string(&x->to->arena, x->wanted->feeds[i].node->origin);
        if (!x->fed[i]->device || !x->fed[i]->origin)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a run's graph");
        TUTTI_TRY(tutti__node_copy_sharding(x->to, x->wanted->feeds[i], x->fed[i]));
    }
    return TUTTI_OK;
}

static tutti_edge mapped(const extraction *x, tutti_edge edge)
{
    int feed = feed_of(x->wanted, edge);
    return feed >= 0 ? (tutti_edge){x->fed[feed], 0}
                     : (tutti_edge){x->map[edge.node->id], edge.index};
}

static tutti_status copy_nodes(extraction *x)
{
    for (size_t n = 0; n < x->from->nodes.count; n++) {
        const tutti_node *node = x->from->nodes.data[n];
        if (!x->needed[n])
            continue;
        if (tutti__is(node, "parameter"))
            return tutti_fail(
                TUTTI_INVALID,
                "'%s' is an argument of a sub-graph and has no value outside it; in a "
                "graph that is run use tutti_placeholder, and feed it",
                node->name);
        TUTTI_TRY(tutti__node_copy(x->to, node, &x->map[n]));
        TUTTI_TRY(tutti__node_copy_edges(x->to, node, x->map, x->map[n]));
        for (int i = 0; i < node->input_count; i++)
            x->map[n]->inputs[i] = mapped(x, node->inputs[i]);
        x->map[n]->id = (uint32_t)x->to->nodes.count;
        if (!TUTTI_VEC_PUSH(&x->to->nodes, x->map[n]))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a run's graph");
    }
    for (size_t n = 0; n < x->from->nodes.count; n++)
        if (x->map[n])
            TUTTI_TRY(
                tutti__node_copy_colocation(x->to, x->from->nodes.data[n], x->map, x->map[n]));
    for (int i = 0; i < x->wanted->fetch_count; i++)
        TUTTI_TRY(tutti__graph_result(x->to, mapped(x, x->wanted->fetches[i])));
    for (int i = 0; i < x->wanted->target_count; i++)
        if (!is_given(x, x->wanted->targets[i]) &&
            !TUTTI_VEC_PUSH(&x->to->targets, x->map[x->wanted->targets[i]->id]))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a run's graph");
    return TUTTI_OK;
}

tutti_status tutti__graph_extract(const tutti_graph *graph, const tutti_extract *wanted,
                                  tutti_graph **ret_graph)
{
    extraction x = {.from = graph, .wanted = wanted};
    TUTTI_TRY(tutti_graph_create(&x.to));
    x.to->trace = true; /* names are copies: no look-ups in this graph */
    x.needed = calloc(graph->nodes.count + 1, sizeof *x.needed);
    x.map = calloc(graph->nodes.count + 1, sizeof *x.map);
    x.fed = calloc((size_t)wanted->feed_count + 1, sizeof *x.fed);
    tutti_status status = TUTTI_OK;
    if (!x.needed || !x.map || !x.fed)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for a run's graph");
    if (status == TUTTI_OK) {
        mark(&x);
        status = add_parameters(&x);
    }
    if (status == TUTTI_OK)
        status = copy_nodes(&x);
    free(x.needed);
    free(x.map);
    free(x.fed);
    if (status != TUTTI_OK)
        tutti_graph_destroy(x.to);
    else
        *ret_graph = x.to;
    return status;
}

tutti_status tutti__graph_prune(tutti_graph *graph)
{
    bool *needed = calloc(graph->nodes.count + 1, sizeof *needed);
    if (!needed)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to prune a graph");
    tutti_status status = tutti__graph_sort(graph);
    for (size_t i = 0; i < graph->results.count; i++)
        needed[graph->results.data[i].node->id] = true;
    for (size_t i = 0; i < graph->targets.count; i++)
        needed[graph->targets.data[i]->id] = true;
    for (size_t n = graph->nodes.count; status == TUTTI_OK && n-- > 0;) {
        tutti_node *node = graph->nodes.data[n];
        if (!needed[n] && !tutti__is(node, "parameter")) {
            node->dead = true;
            continue;
        }
        for (int i = 0; i < node->input_count; i++)
            needed[node->inputs[i].node->id] = true;
        for (int i = 0; i < node->control_count; i++)
            needed[node->controls[i]->id] = true;
    }
    free(needed);
    return status == TUTTI_OK ? tutti__graph_sort(graph) : status;
}
