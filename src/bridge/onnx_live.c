/* onnx_live.c: which nodes of a file its outputs need. Exporters leave others behind, which are
 * not built and so need not be supported. */
#include "bridge/onnx.h"

/* Names that a node takes, and those that its sub-graphs take from around them. */
static tutti_status add_names(tutti_map *needed, const tutti_onnx_node *node, int depth)
{
    for (size_t i = 0; i < node->inputs.count; i++)
        if (node->inputs.items[i][0])
            TUTTI_TRY(tutti__map_set(needed, node->inputs.items[i], (void *)node));
    for (size_t i = 0; depth < ONNX_DEPTH && i < node->attrs.count; i++) {
        const tutti_onnx_graph *graph = node->attrs.items[i].graph;
        for (size_t k = 0; graph && k < graph->nodes.count; k++)
            TUTTI_TRY(add_names(needed, &graph->nodes.items[k], depth + 1));
        for (size_t k = 0; graph && k < graph->outputs.count; k++)
            TUTTI_TRY(tutti__map_set(needed, graph->outputs.items[k].name, (void *)node));
    }
    return TUTTI_OK;
}

static bool is_needed(const tutti_map *needed, const tutti_onnx_node *node)
{
    for (size_t i = 0; i < node->outputs.count; i++)
        if (tutti__map_get(needed, node->outputs.items[i]))
            return true;
    return false;
}

/* Nodes stand behind what they use. */
static tutti_status walk(const tutti_onnx_graph *graph, tutti_map *needed, tutti_onnx_node *live,
                         size_t *first)
{
    for (size_t i = 0; i < graph->outputs.count; i++)
        TUTTI_TRY(tutti__map_set(needed, graph->outputs.items[i].name, (void *)graph));
    for (size_t i = graph->nodes.count; i-- > 0;) {
        if (!is_needed(needed, &graph->nodes.items[i]))
            continue;
        live[--*first] = graph->nodes.items[i];
        TUTTI_TRY(add_names(needed, &graph->nodes.items[i], 0));
    }
    return TUTTI_OK;
}

tutti_status tutti__onnx_live(const tutti_onnx_graph *graph, tutti_arena *arena, size_t *ret_count,
                              const tutti_onnx_node **ret_nodes)
{
    tutti_map needed = {0};
    size_t first = graph->nodes.count;
    tutti_onnx_node *live = tutti__arena_array(arena, first + 1, sizeof *live);
    tutti_status status =
        live ? walk(graph, &needed, live, &first) : tutti_fail(TUTTI_NO_MEMORY, "no memory");
    tutti__map_free(&needed);
    TUTTI_TRY(status);
    *ret_nodes = live + first;
    *ret_count = graph->nodes.count - first;
    return TUTTI_OK;
}
