/* cost.c: see cost.h. */
#include "ops/cost.h"

tutti_cost tutti__node_cost(const tutti_node *node)
{
    tutti_type inputs[64];
    tutti_cost cost = {0};
    if (!node->op->cost || node->input_count > 64)
        return cost;
    for (int i = 0; i < node->input_count; i++) {
        inputs[i] = *tutti__edge_type(node->inputs[i]);
        inputs[i].handle = false;
        if (!tutti_type_is_static(&inputs[i]))
            return cost;
    }
    for (int i = 0; i < node->output_count; i++)
        if (!tutti_type_is_static(&node->types[i]))
            return cost;
    tutti_infer infer = {.op = node->op,
                         .name = node->name,
                         .input_count = node->input_count,
                         .output_count = node->output_count,
                         .inputs = inputs,
                         .attrs = node->attrs,
                         .attr_count = node->attr_count,
                         .outputs = node->types};
    node->op->cost(&infer, &cost);
    return cost;
}
