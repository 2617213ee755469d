/* initial_order.c: initial values that are computed from other variables. What the user made reads
 * them whenever it runs; the initial value is a copy of it that reads each after its initialiser.
 */
#include <stdlib.h>
#include <string.h>

#include "ops/state/initial.h"

/* The assignment of the initial value, or NULL. */
static tutti_node *initializer_of(const tutti_graph *graph, const tutti_node *variable)
{
    for (size_t i = 0; i < graph->nodes.count; i++) {
        tutti_node *node = graph->nodes.data[i];
        if (!node->dead && tutti__is(node, "assign") && tutti__int(node, "initializer") &&
            strcmp(tutti__state_name(node->inputs[0].node), tutti__state_name(variable)) == 0)
            return node;
    }
    return NULL;
}

/* What acts on the outside happens once, as the user said it; what only orders or prints may happen
 * again. */
static bool may_copy(const tutti_node *node)
{
    uint32_t acts = TUTTI_OP_UPDATES | TUTTI_OP_STATEFUL | TUTTI_OP_HANDLE | TUTTI_OP_COLLECTIVE;
    return !(node->op->flags & acts) || tutti__is(node, "group") || tutti__is(node, "no_op") ||
           tutti__is(node, "print");
}

/* Of the nodes up to `last`: which of them `last` is computed from. */
static void find_sources(const tutti_graph *graph, uint32_t last, bool *ret_source)
{
    ret_source[last] = true;
    for (uint32_t n = last + 1; n-- > 0;) {
        const tutti_node *node = graph->nodes.data[n];
        for (int i = 0; ret_source[n] && i < node->input_count; i++)
            ret_source[node->inputs[i].node->id] = true;
        for (int i = 0; ret_source[n] && i < node->control_count; i++)
            ret_source[node->controls[i]->id] = true;
    }
}

/* A copy whose inputs are copies, where there are such; `after` may be NULL. */
static tutti_status copy_node(tutti_graph *graph, const tutti_node *node, tutti_node *const *copies,
                              tutti_node *after, tutti_node **ret)
{
    tutti_edge *inputs = calloc((size_t)node->input_count + 1, sizeof *inputs);
    tutti_node *copy;
    if (!inputs)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for an initial value");
    for (int i = 0; i < node->input_count; i++) {
        tutti_node *other = copies[node->inputs[i].node->id];
        inputs[i] = node->inputs[i];
        if (other)
            inputs[i].node = other;
    }
    tutti_status status = tutti__node_add(graph, node->op, "initial_value", node->input_count,
                                          inputs, node->attr_count, node->attrs, &copy);
    free(inputs);
    TUTTI_TRY(status);
    copy->origin = node->origin; /* random numbers are the same */
    copy->device = node->device;
    copy->colocate = node->colocate;
    for (int i = 0; i < node->control_count; i++) {
        tutti_node *other = copies[node->controls[i]->id];
        TUTTI_TRY(tutti__node_after(copy, other ? other : node->controls[i]));
    }
    if (after)
        TUTTI_TRY(tutti__node_after(copy, after));
    *ret = copy;
    return TUTTI_OK;
}

static bool has_copy(const tutti_node *node, tutti_node *const *copies)
{
    for (int i = 0; i < node->input_count; i++)
        if (copies[node->inputs[i].node->id])
            return true;
    for (int i = 0; i < node->control_count; i++)
        if (copies[node->controls[i]->id])
            return true;
    return false;
}

tutti_status tutti__after_initializers(tutti_graph *graph, tutti_edge *value)
{
    uint32_t last = value->node->id;
    bool *source = calloc((size_t)last + 1, sizeof *source);
    tutti_node **copies = calloc((size_t)last + 1, sizeof *copies);
    tutti_status status =
        source && copies ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for an initial value");
    if (status == TUTTI_OK)
        find_sources(graph, last, source);
    for (uint32_t n = 0; status == TUTTI_OK && n <= last; n++) {
        const tutti_node *node = graph->nodes.data[n];
        tutti_node *after = NULL;
        if (!source[n] || !may_copy(node))
            continue;
        if (tutti__is(node, "read"))
            after = initializer_of(graph, node->inputs[0].node);
        if (after || has_copy(node, copies))
            status = copy_node(graph, node, copies, after, &copies[n]);
    }
    if (status == TUTTI_OK && copies[last])
        value->node = copies[last];
    free(source);
    free(copies);
    return status;
}
