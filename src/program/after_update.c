/* after_update.c: what follows an update, and whether something of it can still fail: then updates
 * go to shadows (order.c), so that a failed run changes nothing. */
#include <stdlib.h>
#include <string.h>

#include "ops/control/control.h"
#include "program/program.h"

static tutti_edge behind_views(tutti_edge edge)
{
    while (edge.node->op->flags & TUTTI_OP_VIEW)
        edge = edge.node->inputs[0];
    return edge;
}

/* Whether everybody gives something to this operator and gets something from everybody. */
static bool meets_all(const tutti_node *node, const char *axis)
{
    return (node->op->flags & TUTTI_OP_COLLECTIVE) && strncmp(node->op->name, "all_", 4) == 0 &&
           strcmp(tutti__str(node, "axis"), axis) == 0;
}

/* Whether `update` follows a meeting of all replicas that follows `look_up`: then all of them have
 * looked up theirs. */
static bool all_looked_up(const tutti_graph *graph, const tutti_node *update,
                          const tutti_node *look_up, const char *axis)
{
    enum { LOOKED_UP = 1, MET = 2 };
    char *after = calloc(graph->nodes.count, 1);
    for (size_t n = look_up->id; after && n <= update->id; n++) {
        const tutti_node *node = graph->nodes.data[n];
        char follows = node == look_up ? LOOKED_UP : 0;
        for (int i = 0; i < node->input_count; i++)
            follows |= after[node->inputs[i].node->id];
        if ((follows & LOOKED_UP) && meets_all(node, axis))
            follows |= MET;
        after[n] = follows;
    }
    bool met = after && (after[update->id] & MET);
    free(after); /* without memory nothing is known */
    return met;
}

static bool looks_up(const tutti_node *node, const bool *late, const tutti_node *variable)
{
    return !late[node->id] && (node->op->flags & TUTTI_OP_FALLIBLE) && node->input_count >= 2 &&
           tutti__is(node->inputs[0].node, "read") &&
           node->inputs[0].node->inputs[0].node == variable;
}

/* Whether an index that `update` takes was looked up in the same variable before, which failed if
 * it was out of range: so do the forward and the backward half of an embedding. */
static bool was_checked(const tutti_graph *graph, const bool *late, const tutti_node *update)
{
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        if (!looks_up(node, late, update->inputs[0].node))
            continue;
        tutti_edge looked_up = behind_views(node->inputs[1]);
        for (int i = 1; i < update->input_count; i++) {
            tutti_edge index = behind_views(update->inputs[i]);
            if (tutti__is(index.node, "all_gather") &&
                all_looked_up(graph, update, node, tutti__str(index.node, "axis")))
                index = behind_views(index.node->inputs[0]);
            if (!tutti_dtype_is_float(tutti__edge_type(index)->dtype) &&
                index.node == looked_up.node && index.index == looked_up.index)
                return true;
        }
    }
    return false;
}

bool tutti__makes_after_update(const tutti_node *node)
{
    return (node->op->flags & TUTTI_OP_UPDATES) ||
           (tutti__is(node, "recv") && tutti__int(node, "late"));
}

void tutti__find_after_update(const tutti_graph *graph, bool *ret_late)
{
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        bool late = tutti__makes_after_update(node);
        for (int i = 0; i < node->input_count; i++)
            late = late || ret_late[node->inputs[i].node->id];
        for (int i = 0; i < node->control_count; i++)
            late = late || ret_late[node->controls[i]->id];
        ret_late[n] = late;
    }
}

static bool meets(const tutti_node *node)
{
    return tutti__is(node, "send") || tutti__is(node, "recv") ||
           (node->op->flags & TUTTI_OP_COLLECTIVE);
}

bool tutti__keeps_order(const tutti_node *node, const tutti_node *before)
{
    return tutti__is(before, "send") || (meets(node) && meets(before));
}

/* Operators of users are trusted not to fail only where they update: there it costs a copy of the
 * variable, and they say TUTTI_OP_FALLIBLE. */
static bool op_may_fail(const tutti_op *op)
{
    uint32_t risky = TUTTI_OP_FALLIBLE | TUTTI_OP_BLOCKING | TUTTI_OP_CONTROL |
                     TUTTI_OP_COLLECTIVE | TUTTI_OP_DYNAMIC;
    return (op->flags & risky) || (!(op->flags & TUTTI_OP_UPDATES) && !tutti__op_is_built_in(op));
}

bool tutti__node_may_fail(const tutti_node *node)
{
    const tutti_graph *body =
        tutti__is(node, "fused") ? tutti__attr_graph(node->attrs, node->attr_count, "body") : NULL;
    if (!body)
        return op_may_fail(node->op);
    for (size_t n = 0; n < body->nodes.count; n++)
        if (!body->nodes.data[n]->dead && tutti__node_may_fail(body->nodes.data[n]))
            return true;
    return false;
}

bool tutti__fails_after_update(const tutti_graph *graph, const bool *late)
{
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        if (!late[n] || !tutti__node_may_fail(node) || tutti__is(node, "send") ||
            tutti__is(node, "recv"))
            continue;
        if (!(node->op->flags & TUTTI_OP_UPDATES) || !was_checked(graph, late, node))
            return true;
    }
    return false;
}
