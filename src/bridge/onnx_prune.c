/* onnx_prune.c: drops what no output needs. */
#include "bridge/onnx.h"

/* Whether one of the names is wanted. */
static bool any_wanted(const tutti_map *wanted, const tutti_onnx_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        if (tutti__map_get(wanted, names->items[i]))
            return true;
    return false;
}

static tutti_status want(tutti_map *wanted, const char *name)
{
    return name[0] ? tutti__map_set(wanted, name, wanted) : TUTTI_OK;
}

/* Nodes stand after what they use, so one walk from the last to the first is enough. */
static tutti_status mark(const tutti_onnx_graph *graph, tutti_map *wanted)
{
    for (size_t i = 0; i < graph->outputs.count; i++)
        TUTTI_TRY(want(wanted, graph->outputs.items[i].name));
    for (size_t n = graph->nodes.count; n-- > 0;) {
        const tutti_onnx_node *node = &graph->nodes.items[n];
        for (size_t i = 0; any_wanted(wanted, &node->outputs) && i < node->inputs.count; i++)
            TUTTI_TRY(want(wanted, node->inputs.items[i]));
    }
    return TUTTI_OK;
}

tutti_status tutti__onnx_prune(tutti_onnx *onnx)
{
    tutti_onnx_graph *graph = &onnx->graph;
    tutti_map wanted = {0};
    tutti_status status = mark(graph, &wanted);
    size_t nodes = 0, tensors = 0;
    for (size_t i = 0; status == TUTTI_OK && i < graph->nodes.count; i++)
        if (any_wanted(&wanted, &graph->nodes.items[i].outputs))
            graph->nodes.items[nodes++] = graph->nodes.items[i];
    for (size_t i = 0; status == TUTTI_OK && i < graph->initializers.count; i++)
        if (tutti__map_get(&wanted, graph->initializers.items[i].name))
            graph->initializers.items[tensors++] = graph->initializers.items[i];
    if (status == TUTTI_OK) {
        graph->nodes.count = nodes;
        graph->initializers.count = tensors;
    }
    tutti__map_free(&wanted);
    return status;
}
