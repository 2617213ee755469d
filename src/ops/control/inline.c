/* inline.c: a sub-graph's nodes inside another graph. */
#include <stdlib.h>

#include "ops/control/control.h"

/* The new node for each old one: for parameters the argument's, whose output may be any. */
typedef struct inliner {
    tutti_graph *to;
    int count;
    const tutti_sym *args;
    tutti_edge *map; /* by old id: where its output 0 is */
} inliner;

static tutti_edge mapped(const inliner *in, tutti_edge edge)
{
    tutti_edge at = in->map[edge.node->id];
    at.index += edge.index;
    return at;
}

static tutti_status inline_copy(inliner *in, const tutti_node *node)
{
    tutti_node *made;
    tutti_edge *inputs =
        tutti__arena_array(&in->to->arena, (size_t)node->input_count + 1, sizeof *inputs);
    if (!inputs)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a node");
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = mapped(in, node->inputs[i]);
    TUTTI_TRY(tutti__node_add(in->to, node->op, node->name, node->input_count, inputs,
                              node->attr_count, node->attrs, &made));
    for (int i = 0; i < node->control_count; i++)
        TUTTI_TRY(tutti__node_after(made, in->map[node->controls[i]->id].node));
    made->origin = tutti__arena_string(&in->to->arena, node->origin);
    if (node->device[0])
        made->device = tutti__arena_string(&in->to->arena, node->device);
    if (node->colocate)
        made->colocate = in->map[node->colocate->id].node;
    made->file = node->file;
    made->line = node->line;
    in->map[node->id] = (tutti_edge){made, 0};
    return made->origin && made->device ? TUTTI_OK
                                        : tutti_fail(TUTTI_NO_MEMORY, "no memory for a node");
}

static tutti_status inline_bind(inliner *in, const tutti_node *parameter)
{
    int64_t index = tutti__int(parameter, "index");
    if (index >= in->count)
        return tutti_fail(TUTTI_INTERNAL, "a sub-graph has a parameter %lld, but %d arguments come",
                          (long long)index, in->count);
    in->map[parameter->id] = tutti__edge(in->args[index]);
    return TUTTI_OK;
}

tutti_status tutti__inline(tutti_graph *to, const tutti_graph *from, int count,
                           const tutti_sym *args, tutti_sym *ret_results)
{
    inliner in = {.to = to, .count = count, .args = args};
    in.map = calloc(from->nodes.count + 1, sizeof *in.map);
    if (!in.map)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a map");
    tutti_status status = TUTTI_OK;
    for (size_t n = 0; status == TUTTI_OK && n < from->nodes.count; n++) {
        const tutti_node *node = from->nodes.data[n];
        if (!node->dead)
            status = tutti__is(node, "parameter") ? inline_bind(&in, node) : inline_copy(&in, node);
    }
    for (size_t i = 0; status == TUTTI_OK && i < from->results.count; i++) {
        tutti_edge edge = mapped(&in, from->results.data[i]);
        if (!edge.node)
            status = tutti_fail(TUTTI_INTERNAL, "result %zu of a sub-graph is of a dead node", i);
        else
            ret_results[i] = tutti__sym(edge.node, edge.index);
    }
    free(in.map);
    return status;
}
