/* same.c: whether two graphs compute the same in the same way. Operators, attributes, types, edges,
 * devices, results and targets count, and the order of nodes; names do not. */
#include <string.h>

#include "graph/graph.h"

uint64_t tutti__graph_hash(const tutti_graph *graph)
{
    uint64_t h = tutti__hash_mix(0x7475747469ULL, graph->nodes.count);
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        h = tutti__hash_string(h, node->op->name);
        h = tutti__hash_mix(h, (uint64_t)node->op->version);
        h = tutti__hash_string(h, node->device);
        for (int i = 0; i < node->input_count; i++)
            h = tutti__hash_mix(h,
                                (uint64_t)node->inputs[i].node->id << 32 | node->inputs[i].index);
        for (int i = 0; i < node->control_count; i++)
            h = tutti__hash_mix(h, ~(uint64_t)node->controls[i]->id);
        for (int i = 0; i < node->attr_count; i++)
            h = tutti__attr_hash(h, &node->attrs[i]);
        for (int i = 0; i < node->output_count; i++)
            h = tutti__hash_type(h, &node->types[i]);
    }
    for (size_t i = 0; i < graph->results.count; i++)
        h = tutti__hash_mix(h, (uint64_t)graph->results.data[i].node->id << 32 |
                                   graph->results.data[i].index);
    for (size_t i = 0; i < graph->targets.count; i++)
        h = tutti__hash_mix(h, ~(uint64_t)graph->targets.data[i]->id);
    return h;
}

static bool same_edges(int count, const tutti_edge *a, const tutti_edge *b)
{
    for (int i = 0; i < count; i++)
        if (a[i].node->id != b[i].node->id || a[i].index != b[i].index)
            return false;
    return true;
}

static bool same_controls(const tutti_node *a, const tutti_node *b)
{
    for (int i = 0; i < a->control_count; i++)
        if (a->controls[i]->id != b->controls[i]->id)
            return false;
    return true;
}

static bool same_types(const tutti_node *a, const tutti_node *b)
{
    for (int i = 0; i < a->output_count; i++)
        if (!tutti_type_equal(&a->types[i], &b->types[i]))
            return false;
    return true;
}

static bool same_attrs(const tutti_node *a, const tutti_node *b)
{
    for (int i = 0; i < a->attr_count; i++)
        if (!tutti__attr_equal(&a->attrs[i], &b->attrs[i]))
            return false;
    return true;
}

static bool same_nodes(const tutti_node *a, const tutti_node *b)
{
    return a->op == b->op && a->input_count == b->input_count &&
           a->control_count == b->control_count && a->attr_count == b->attr_count &&
           a->output_count == b->output_count && a->dead == b->dead &&
           strcmp(a->device, b->device) == 0 && same_edges(a->input_count, a->inputs, b->inputs) &&
           same_controls(a, b) && same_types(a, b) && same_attrs(a, b);
}

bool tutti__graph_same(const tutti_graph *a, const tutti_graph *b)
{
    if (a == b)
        return true;
    if (a->nodes.count != b->nodes.count || a->results.count != b->results.count ||
        a->targets.count != b->targets.count)
        return false;
    for (size_t n = 0; n < a->nodes.count; n++)
        if (!same_nodes(a->nodes.data[n], b->nodes.data[n]))
            return false;
    for (size_t i = 0; i < a->targets.count; i++)
        if (a->targets.data[i]->id != b->targets.data[i]->id)
            return false;
    return same_edges((int)a->results.count, a->results.data, b->results.data);
}
