/* parts_look.c: which updates of a piece can be done in parts; see parts.h. */
#include <stdlib.h>

#include "exec/plan/parts.h"
#include "ops/update/rule.h"
#include "program/program.h"

/* The node in whose memory an edge's value lies: a variable, where the edge is read from one. */
static tutti_node *root_of(tutti_edge edge)
{
    while ((edge.node->op->flags & TUTTI_OP_VIEW) && edge.node->input_count > 0 && edge.index == 0)
        edge = edge.node->inputs[0];
    return edge.node;
}

/* An update of every element by itself, with attributes for parts. */
static bool is_update(const tutti_node *node)
{
    if (!(node->op->flags & TUTTI_OP_UPDATES) || node->op->infer != tutti__update_infer ||
        !tutti_attr_find(node->attrs, node->attr_count, "parts"))
        return false;
    tutti_update_layout at =
        tutti__update_layout(node->op, node->attrs, node->attr_count, node->input_count);
    return !at.rule->measure && at.indices < 0;
}

/* Whether input i of a node is the value whose running mean it keeps. */
static bool is_mean_of(const tutti_node *node, int i)
{
    if (!is_update(node) || !tutti__is(node, "ema_update"))
        return false;
    return tutti__update_layout(node->op, node->attrs, node->attr_count, node->input_count)
               .gradient == i;
}

/* A node takes a variable itself. */
static void take_variable(tutti_parts_look *look, tutti_node *node, const tutti_node *variable)
{
    if (node->op->flags & TUTTI_OP_UPDATES) {
        tutti_node **update = &look->update[variable->id];
        look->bad[variable->id] = look->bad[variable->id] || (*update && *update != node);
        *update = node;
    } else if (!tutti__is(node, "is_initialized") && !(node->op->flags & TUTTI_OP_VIEW)) {
        look->bad[variable->id] = true;
    }
}

static void parts_look_take(tutti_parts_look *look, tutti_node *node, int i)
{
    tutti_edge edge = node->inputs[i];
    tutti_node *root = root_of(edge);
    if (tutti__is(edge.node, "variable"))
        take_variable(look, node, edge.node);
    if (!look->late[node->id] || tutti__edge_type(edge)->handle)
        return;
    bool updated = root->op->flags & TUTTI_OP_UPDATES;
    if (tutti__is(root, "variable") || (updated && !is_mean_of(node, i)))
        look->bad[root->id] = true;
}

/* Reads of a variable are views of it: one that runs in the commit gives what nobody knows. */
static void look_at(tutti_parts_look *look, tutti_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        parts_look_take(look, node, i);
    if (look->late[node->id] && (node->op->flags & TUTTI_OP_VIEW) && node->input_count > 0 &&
        tutti__is(root_of((tutti_edge){node, 0}), "variable"))
        look->bad[root_of((tutti_edge){node, 0})->id] = true;
    if (tutti__is(node, "variable") &&
        (tutti__int(node, "on_read") != 0 || tutti__int(node, "partial") != 0))
        look->bad[node->id] = true;
}

/* Its variables are its own, and large enough to be worth it. */
static bool parts_look_fits(const tutti_parts_look *look, const tutti_node *node, int64_t least)
{
    if (!is_update(node) || tutti_type_count(tutti__edge_type(node->inputs[0])) < least)
        return false;
    tutti_update_layout at =
        tutti__update_layout(node->op, node->attrs, node->attr_count, node->input_count);
    for (int i = 0; i <= at.slots; i++) {
        const tutti_node *variable = node->inputs[i].node;
        if (!tutti__is(variable, "variable") || look->bad[variable->id] ||
            look->update[variable->id] != node)
            return false;
    }
    return true;
}

/* Means of what cannot be cut are not cut, and what has a mean that cannot be cut is not either. */
static void agree_with_means(tutti_parts_look *look)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t n = 0; n < look->graph->nodes.count; n++) {
            const tutti_node *node = look->graph->nodes.data[n];
            for (int i = 0; i < node->input_count; i++) {
                const tutti_node *root = root_of(node->inputs[i]);
                if (!is_mean_of(node, i) || !(root->op->flags & TUTTI_OP_UPDATES) ||
                    look->bad[root->id] == look->bad[n])
                    continue;
                look->bad[root->id] = look->bad[n] = changed = true;
            }
        }
    }
}

/* Two nodes of one variable hide from each other what is done to it. */
static tutti_status find_doubles(tutti_parts_look *look)
{
    tutti_map known = {0};
    tutti_status status = TUTTI_OK;
    for (size_t n = 0; status == TUTTI_OK && n < look->graph->nodes.count; n++) {
        tutti_node *node = look->graph->nodes.data[n];
        if (!tutti__is(node, "variable"))
            continue;
        const tutti_node *other = tutti__map_get(&known, tutti__parts_name(node));
        if (other)
            look->bad[n] = look->bad[other->id] = true;
        else
            status = tutti__map_set(&known, tutti__parts_name(node), node);
    }
    tutti__map_free(&known);
    return status;
}

static void parts_look_judge(tutti_parts_look *look, int64_t least)
{
    const tutti_graph *graph = look->graph;
    tutti__find_after_update(graph, look->late);
    for (size_t n = 0; n < graph->nodes.count; n++)
        look_at(look, graph->nodes.data[n]);
    for (size_t i = 0; i < graph->results.count; i++) {
        const tutti_node *root = root_of(graph->results.data[i]);
        if (root->op->flags & TUTTI_OP_UPDATES)
            look->bad[root->id] = true;
    }
    for (size_t n = 0; n < graph->nodes.count; n++)
        if (graph->nodes.data[n]->op->flags & TUTTI_OP_UPDATES)
            look->bad[n] = look->bad[n] || !parts_look_fits(look, graph->nodes.data[n], least);
    agree_with_means(look);
}

tutti_status tutti__parts_look(const tutti_graph *graph, int64_t least, tutti_parts_look *ret)
{
    size_t count = graph->nodes.count;
    tutti_parts_look look = {.graph = graph,
                             .late = calloc(count + 1, sizeof *look.late),
                             .bad = calloc(count + 1, sizeof *look.bad),
                             .update = calloc(count + 1, sizeof *look.update)};
    if (!look.late || !look.bad || !look.update) {
        tutti__parts_look_free(&look);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    }
    tutti_status status = find_doubles(&look);
    if (status != TUTTI_OK) {
        tutti__parts_look_free(&look);
        return status;
    }
    parts_look_judge(&look, least);
    *ret = look;
    return TUTTI_OK;
}

void tutti__parts_look_free(tutti_parts_look *look)
{
    free(look->late);
    free(look->bad);
    free(look->update);
    *look = (tutti_parts_look){0};
}
