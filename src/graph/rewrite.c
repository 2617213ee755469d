/* rewrite.c: what passes do to graphs: replace, sort, copy. */
#include <stdlib.h>
#include <string.h>

#include "graph/attr.h"
#include "graph/graph.h"

void tutti__graph_replace(tutti_graph *graph, tutti_edge from, tutti_edge to)
{
    for (size_t n = 0; n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        if (node->dead)
            continue;
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i].node == from.node && node->inputs[i].index == from.index)
                node->inputs[i] = to;
    }
    for (size_t i = 0; i < graph->results.count; i++)
        if (graph->results.data[i].node == from.node && graph->results.data[i].index == from.index)
            graph->results.data[i] = to;
    graph->version++;
}

/* Depth-first in the order of the old ids, so that a graph in order stays as it is. */
typedef struct sorter {
    tutti_node **sorted, **stack;
    uint8_t *mark; /* by old id: 0 new, 1 open, 2 done */
    size_t count;
} sorter;

static tutti_node *next_open(const tutti_node *node, const uint8_t *mark, bool *ret_cycle)
{
    for (int i = 0; i < node->input_count + node->control_count; i++) {
        tutti_node *before =
            i < node->input_count ? node->inputs[i].node : node->controls[i - node->input_count];
        if (mark[before->id] == 1)
            *ret_cycle = true;
        if (mark[before->id] == 0 && !before->dead)
            return before;
    }
    return NULL;
}

static bool rewrite_visit(sorter *s, tutti_node *root)
{
    size_t depth = 0;
    s->stack[depth++] = root;
    s->mark[root->id] = 1;
    while (depth > 0) {
        tutti_node *node = s->stack[depth - 1];
        bool cycle = false;
        tutti_node *before = next_open(node, s->mark, &cycle);
        if (cycle)
            return false;
        if (before) {
            s->mark[before->id] = 1;
            s->stack[depth++] = before;
            continue;
        }
        s->mark[node->id] = 2;
        s->sorted[s->count++] = node;
        depth--;
    }
    return true;
}

/* A node that is gone needs no waiting for, and nothing can stand beside it. */
static void forget_dead(tutti_node *node)
{
    int kept = 0;
    for (int i = 0; i < node->control_count; i++)
        if (!node->controls[i]->dead)
            node->controls[kept++] = node->controls[i];
    if (kept < node->control_count)
        node->grown = NULL;
    node->control_count = kept;
    while (node->colocate && node->colocate->dead) {
        if (!node->device[0])
            node->device = node->colocate->device;
        node->colocate = node->colocate->colocate;
    }
}

tutti_status tutti__graph_sort(tutti_graph *graph)
{
    size_t count = graph->nodes.count;
    for (size_t i = 0; i < count; i++)
        if (!graph->nodes.data[i]->dead)
            forget_dead(graph->nodes.data[i]);
    sorter s = {.sorted = malloc((count + 1) * sizeof *s.sorted),
                .stack = malloc((count + 1) * sizeof *s.stack),
                .mark = calloc(count + 1, 1)};
    tutti_status status = TUTTI_OK;
    if (!s.sorted || !s.stack || !s.mark)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory to sort a graph of %zu nodes", count);
    for (size_t i = 0; status == TUTTI_OK && i < count; i++) {
        tutti_node *node = graph->nodes.data[i];
        if (!node->dead && s.mark[i] == 0 && !rewrite_visit(&s, node))
            status = tutti_fail(TUTTI_INTERNAL, "the graph has a cycle through '%s'", node->name);
    }
    if (status == TUTTI_OK) {
        graph->nodes.count = s.count;
        for (size_t i = 0; i < s.count; i++) {
            graph->nodes.data[i] = s.sorted[i];
            s.sorted[i]->id = (uint32_t)i;
        }
        graph->version++;
    }
    free(s.sorted);
    free(s.stack);
    free(s.mark);
    return status;
}

static const tutti_sharding *copy_sharding(tutti_graph *to, const tutti_sharding *from)
{
    if (!from)
        return NULL;
    tutti_sharding *sharding = tutti__arena_take(&to->arena, sizeof *sharding);
    if (!sharding)
        return NULL;
    sharding->count = from->count;
    tutti_axis_shard *shards =
        (void *)tutti__arena_bytes(&to->arena, from->shards, (size_t)from->count * sizeof *shards);
    for (int i = 0; shards && i < from->count; i++)
        shards[i].axis = tutti__arena_string(&to->arena, from->shards[i].axis);
    sharding->shards = shards;
    return sharding;
}

tutti_status tutti__node_copy_sharding(tutti_graph *to, tutti_edge from, tutti_node *node)
{
    if (!from.node->shardings || !from.node->shardings[from.index])
        return TUTTI_OK;
    node->shardings =
        tutti__arena_array(&to->arena, (size_t)node->output_count, sizeof *node->shardings);
    if (!node->shardings ||
        !(node->shardings[0] = copy_sharding(to, from.node->shardings[from.index])))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a copy of a graph");
    return TUTTI_OK;
}

tutti_status tutti__node_copy(tutti_graph *to, const tutti_node *from, tutti_node **ret)
{
    tutti_node *node = tutti__arena_take(&to->arena, sizeof *node);
    if (!node)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a copy of a graph");
    *node = *from;
    node->graph = to;
    node->generation = to->generation;
    node->scratch = NULL;
    node->colocate = NULL;
    node->current.node = NULL;
    node->updated = NULL;
    node->grown = NULL;
    node->name = tutti__arena_string(&to->arena, from->name);
    node->origin =
        from->origin == from->name ? node->name : tutti__arena_string(&to->arena, from->origin);
    node->device = tutti__arena_string(&to->arena, from->device);
    node->attrs = tutti__arena_array(&to->arena, (size_t)from->attr_count + 1, sizeof *node->attrs);
    node->types = (void *)tutti__arena_bytes(&to->arena, from->types,
                                             (size_t)from->output_count * sizeof *node->types);
    if (!node->name || !node->origin || !node->device || !node->attrs || !node->types)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a copy of a graph");
    for (int i = 0; i < from->attr_count; i++)
        TUTTI_TRY(tutti__attr_copy(to, &from->attrs[i], from->attrs[i].name, &node->attrs[i]));
    if (from->shardings) {
        node->shardings =
            tutti__arena_array(&to->arena, (size_t)from->output_count, sizeof *node->shardings);
        for (int i = 0; node->shardings && i < from->output_count; i++)
            node->shardings[i] = copy_sharding(to, from->shardings[i]);
    }
    *ret = node;
    return TUTTI_OK;
}

tutti_status tutti__node_copy_edges(tutti_graph *to, const tutti_node *from, tutti_node **map,
                                    tutti_node *node)
{
    node->inputs =
        tutti__arena_array(&to->arena, (size_t)from->input_count + 1, sizeof *node->inputs);
    node->controls =
        tutti__arena_array(&to->arena, (size_t)from->control_count + 1, sizeof *node->controls);
    if (!node->inputs || !node->controls)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a copy of a graph");
    for (int i = 0; i < from->input_count; i++)
        node->inputs[i] = (tutti_edge){map[from->inputs[i].node->id], from->inputs[i].index};
    node->control_count = 0;
    for (int i = 0; i < from->control_count; i++)
        if (map[from->controls[i]->id])
            node->controls[node->control_count++] = map[from->controls[i]->id];
    return TUTTI_OK;
}

tutti_status tutti__node_copy_colocation(tutti_graph *to, const tutti_node *from, tutti_node **map,
                                         tutti_node *node)
{
    const tutti_node *beside = from->colocate;
    while (beside && (beside->dead || !map[beside->id])) {
        if (!node->device[0])
            node->device = tutti__arena_string(&to->arena, beside->device);
        if (!node->device)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a copy of a graph");
        beside = beside->colocate;
    }
    node->colocate = beside ? map[beside->id] : NULL;
    return TUTTI_OK;
}

static tutti_status copy_into(tutti_graph *to, const tutti_graph *from, tutti_node **map)
{
    for (size_t i = 0; i < from->nodes.count; i++) {
        const tutti_node *node = from->nodes.data[i];
        if (node->dead)
            continue;
        TUTTI_TRY(tutti__node_copy(to, node, &map[i]));
        TUTTI_TRY(tutti__node_copy_edges(to, node, map, map[i]));
        map[i]->id = (uint32_t)to->nodes.count;
        if (!TUTTI_VEC_PUSH(&to->nodes, map[i]))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a copy of a graph");
        if (!to->trace || (map[i]->op->flags & TUTTI_OP_HANDLE))
            TUTTI_TRY(tutti__map_set(&to->by_name, map[i]->name, map[i]));
    }
    for (size_t i = 0; i < from->nodes.count; i++)
        if (map[i])
            TUTTI_TRY(tutti__node_copy_colocation(to, from->nodes.data[i], map, map[i]));
    for (size_t i = 0; i < from->results.count; i++)
        TUTTI_TRY(tutti__graph_result(
            to, (tutti_edge){map[from->results.data[i].node->id], from->results.data[i].index}));
    for (size_t i = 0; i < from->targets.count; i++)
        if (!TUTTI_VEC_PUSH(&to->targets, map[from->targets.data[i]->id]))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a copy of a graph");
    return TUTTI_OK;
}

tutti_status tutti__graph_copy(const tutti_graph *graph, tutti_graph **ret_graph,
                               tutti_node ***ret_map)
{
    tutti_graph *copy;
    TUTTI_TRY(tutti_graph_create(&copy));
    copy->trace = graph->trace;
    tutti_node **map = calloc(graph->nodes.count + 1, sizeof *map);
    tutti_status status = map ? copy_into(copy, graph, map)
                              : tutti_fail(TUTTI_NO_MEMORY, "no memory for a copy of a graph");
    if (status != TUTTI_OK) {
        free(map);
        tutti_graph_destroy(copy);
        return status;
    }
    if (ret_map)
        *ret_map = map;
    else
        free(map);
    *ret_graph = copy;
    return TUTTI_OK;
}
