/* parts_cut.c: attributes of updates and of the sums that they take; see parts.h. */
#include <string.h>

#include "exec/plan/parts.h"
#include "ops/update/rule.h"

tutti_attr *tutti__parts_attr(tutti_graph *graph, tutti_node *node, const char *name)
{
    tutti_attr *attrs = (void *)tutti__arena_bytes(&graph->arena, node->attrs,
                                                   (size_t)node->attr_count * sizeof *node->attrs);
    for (int i = 0; attrs && i < node->attr_count; i++)
        if (strcmp(attrs[i].name, name) == 0) {
            node->attrs = attrs;
            return &attrs[i];
        }
    return NULL;
}

tutti_status tutti__parts_set(tutti_graph *graph, tutti_node *node, const char *name, int64_t value)
{
    tutti_attr *attr = tutti__parts_attr(graph, node, name);
    if (!attr)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    attr->value.i = value;
    return TUTTI_OK;
}

static tutti_edge gradient_of(const tutti_node *update)
{
    tutti_update_layout at =
        tutti__update_layout(update->op, update->attrs, update->attr_count, update->input_count);
    return update->inputs[at.gradient];
}

static bool is_view(tutti_edge edge)
{
    return (edge.node->op->flags & TUTTI_OP_VIEW) && edge.node->input_count > 0;
}

tutti_edge tutti__parts_root(tutti_edge edge)
{
    while (is_view(edge))
        edge = edge.node->inputs[0];
    return edge;
}

tutti_edge tutti__parts_gradient(const tutti_node *update)
{
    return tutti__parts_root(gradient_of(update));
}

static int uses_of(const tutti_graph *graph, tutti_edge edge, bool norms)
{
    int uses = 0;
    for (size_t n = 0; n < graph->nodes.count; n++)
        for (int i = 0; i < graph->nodes.data[n]->input_count; i++)
            uses += graph->nodes.data[n]->inputs[i].node == edge.node &&
                    graph->nodes.data[n]->inputs[i].index == edge.index &&
                    (norms || !tutti__parts_is_norm(graph, graph->nodes.data[n]));
    for (size_t i = 0; i < graph->results.count; i++)
        uses += graph->results.data[i].node == edge.node;
    return uses;
}

bool tutti__parts_may_add(const tutti_graph *graph, const tutti_node *update)
{
    tutti_update_layout at =
        tutti__update_layout(update->op, update->attrs, update->attr_count, update->input_count);
    for (int i = 0; i <= at.slots; i++)
        if (tutti__edge_type(update->inputs[i])->dtype != TUTTI_F32)
            return false;
    tutti_edge edge = gradient_of(update);
    while (uses_of(graph, edge, true) == 1 && is_view(edge))
        edge = edge.node->inputs[0];
    return !is_view(edge) && uses_of(graph, edge, true) == 1;
}

tutti_edge tutti__parts_sum_of(const tutti_graph *graph, const tutti_node *update)
{
    tutti_edge edge = gradient_of(update), none = {0};
    for (;;) {
        if (uses_of(graph, edge, false) != 1)
            return none;
        if (!is_view(edge))
            break;
        edge = edge.node->inputs[0];
    }
    const tutti_node *sum = edge.node;
    bool plain = tutti__is(sum, "all_reduce_many") && strcmp(tutti__str(sum, "op"), "sum") == 0 &&
                 tutti__str(sum, "wire")[0] == 0 && tutti__int(sum, "starts") == 0 &&
                 tutti__edge_type(edge)->dtype == TUTTI_F32;
    return plain ? edge : none;
}

tutti_status tutti__parts_cut_output(tutti_graph *graph, tutti_node *sum, const char *list_name,
                                     int64_t index)
{
    tutti_attr *cut = tutti__parts_attr(graph, sum, list_name);
    int64_t *list =
        cut ? tutti__arena_array(&graph->arena, (size_t)cut->count + 1, sizeof *list) : NULL;
    if (!list)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    int at = cut->count;
    for (; at > 0 && cut->value.ints[at - 1] > index; at--)
        list[at] = cut->value.ints[at - 1];
    list[at] = index;
    for (int k = 0; k < at; k++)
        list[k] = cut->value.ints[k];
    cut->value.ints = list;
    cut->count++;
    return TUTTI_OK;
}
