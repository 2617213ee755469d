/* cost.c: what a node's work is, by its operator's rule. */
#include "graph/graph.h"

enum { MOST_INPUTS = 64 };

tutti_cost tutti__node_cost(const tutti_node *node)
{
    tutti_type inputs[MOST_INPUTS];
    tutti_cost cost = {0};
    if (!node->op->cost || node->input_count > MOST_INPUTS)
        return cost;
    tutti_infer infer = tutti__node_rule(node, inputs);
    for (int i = 0; i < node->input_count; i++) {
        inputs[i].handle = false;
        if (!tutti_type_is_static(&inputs[i]))
            return cost;
    }
    for (int i = 0; i < node->output_count; i++)
        if (!tutti_type_is_static(&node->types[i]))
            return cost;
    node->op->cost(&infer, &cost);
    return cost;
}

double tutti__node_flops(const tutti_node *node)
{
    return tutti__node_cost(node).flops;
}

double tutti__graph_flops(const tutti_graph *graph, double *ret_recomputed)
{
    double all = 0, again = 0;
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        double flops = node->dead ? 0 : tutti__node_flops(node);
        all += flops;
        again += node->recomputed ? flops : 0;
    }
    *ret_recomputed = again;
    return all;
}
