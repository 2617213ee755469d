/* verify.c: everything that a graph promises (graph.h), checked node by node. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/attr.h"
#include "graph/serialize.h"
#include "tensor/type.h"

/* "matmul 'm1' (train.c:31): …" */
TUTTI_PRINTF(2, 3)
static tutti_status verify_refuse(const tutti_node *node, const char *format, ...)
{
    char message[800];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    char head[320];
    const char *text = message;
    int size = snprintf(head, sizeof head, "%s '%s'", node->op ? node->op->name : "node",
                        node->name ? node->name : "");
    if (strncmp(message, head, (size_t)size) ==
        0) /* a shape rule's message names the node already */
        text += size + (int)strspn(message + size, ": ");
    if (node->file)
        return tutti_fail(TUTTI_INVALID, "%s (%s:%d): %s", head, node->file, node->line, text);
    return tutti_fail(TUTTI_INVALID, "%s: %s", head, text);
}

/* Whether the node lives in this graph. Only then may anything but its address be used. */
static bool holds(const tutti_graph *graph, const tutti_node *node)
{
    return node && node->graph == graph && !node->dead && node->id < graph->nodes.count &&
           graph->nodes.data[node->id] == node;
}

static tutti_status check_self(const tutti_graph *graph, const tutti_node *node, size_t position)
{
    tutti_device_name parsed;
    if (!node->op || !node->op->infer)
        return verify_refuse(node, "has no operator with a shape rule");
    if (!node->name || !node->name[0] || !node->origin || !node->device)
        return verify_refuse(node, "has no name, origin or device string");
    if (node->graph != graph)
        return verify_refuse(node, "stands in a graph that it does not belong to");
    if (node->id != position)
        return verify_refuse(
            node, "has id %" PRIu32 " at position %zu; a pass that moves nodes must sort the graph",
            node->id, position);
    if (node->device[0] && tutti_device_parse(node->device, &parsed) != TUTTI_OK)
        return verify_refuse(node, "%s", tutti_error_message());
    if (node->colocate && !holds(graph, node->colocate))
        return verify_refuse(node, "stands beside a node that is not in the graph");
    return TUTTI_OK;
}

static tutti_status check_edges(const tutti_graph *graph, const tutti_node *node)
{
    const tutti_op *op = node->op;
    if (node->input_count < op->min_inputs ||
        (op->max_inputs >= 0 && node->input_count > op->max_inputs))
        return verify_refuse(node, "has %d inputs, needs %d to %d", node->input_count,
                             op->min_inputs, op->max_inputs);
    for (int i = 0; i < node->input_count; i++) {
        tutti_edge edge = node->inputs[i];
        if (!holds(graph, edge.node))
            return verify_refuse(node, "input %d is not a node of the graph", i);
        if (edge.node->id >= node->id)
            return verify_refuse(
                node,
                "input %d ('%s') does not come before it; the graph needs sorting, or has a cycle",
                i, edge.node->name);
        if (edge.index >= (uint32_t)edge.node->output_count)
            return verify_refuse(node, "input %d is output %" PRIu32 " of '%s', which has %d", i,
                                 edge.index, edge.node->name, edge.node->output_count);
        if (tutti__edge_type(edge)->handle && !(op->flags & TUTTI_OP_TAKES_HANDLE))
            return verify_refuse(
                node, "input %d ('%s') is a handle, needs a value; read it with tutti_read", i,
                edge.node->name);
    }
    for (int i = 0; i < node->control_count; i++) {
        if (!holds(graph, node->controls[i]))
            return verify_refuse(node, "control edge %d does not come from a node of the graph", i);
        if (node->controls[i]->id >= node->id)
            return verify_refuse(
                node,
                "waits for '%s', which does not come before it; the graph needs sorting, or has a cycle",
                node->controls[i]->name);
    }
    return TUTTI_OK;
}

static bool has_value(const tutti_attr *attr)
{
    bool list = attr->kind == TUTTI_ATTR_INTS || attr->kind == TUTTI_ATTR_FLOATS ||
                attr->kind == TUTTI_ATTR_TYPES;
    if (list)
        return attr->count >= 0 && (attr->count == 0 || attr->value.ints);
    return attr->kind < TUTTI_ATTR_STRING || attr->value.s;
}

/* The attributes are those of the operator's table, in its order. */
static tutti_status check_attrs(const tutti_node *node)
{
    int count = 0;
    for (const tutti_attr_spec *spec = node->op->attrs; spec && spec->name; spec++, count++) {
        if (count >= node->attr_count || !node->attrs[count].name ||
            strcmp(node->attrs[count].name, spec->name) != 0)
            return verify_refuse(node, "attribute %d is not '%s', as the operator's table asks",
                                 count, spec->name);
        if (node->attrs[count].kind != spec->kind || !has_value(&node->attrs[count]))
            return verify_refuse(node, "attribute '%s' is not of kind %s, or has no value",
                                 spec->name, tutti__attr_kind_name(spec->kind));
    }
    if (count != node->attr_count)
        return verify_refuse(node, "has %d attributes, its operator %d", node->attr_count, count);
    return TUTTI_OK;
}

static tutti_status compare_types(const tutti_node *node, const tutti_type *inferred)
{
    char own[TUTTI_TYPE_TEXT], rule[TUTTI_TYPE_TEXT];
    for (int i = 0; i < node->output_count; i++)
        if (!tutti__type_fits(&node->types[i], &inferred[i]))
            return verify_refuse(node, "output %d is %s, but the shape rule says %s", i,
                                 tutti_type_text(&node->types[i], own),
                                 tutti_type_text(&inferred[i], rule));
    return TUTTI_OK;
}

/* A type may know more than the shape rule (values that were known once), but never otherwise. */
static tutti_status check_types(tutti_node *node)
{
    char text[TUTTI_TYPE_TEXT];
    for (int i = 0; i < node->output_count; i++)
        if (tutti_dtype_size(node->types[i].dtype) == 0 || node->types[i].rank < 0 ||
            node->types[i].rank > TUTTI_MAX_RANK || tutti_type_count(&node->types[i]) == -2)
            return verify_refuse(node, "output %d has no type that can be: %s", i,
                                 tutti_type_text(&node->types[i], text));
    tutti_type *inferred = calloc((size_t)node->output_count + 1, sizeof *inferred);
    if (!inferred)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to verify '%s'", node->name);
    tutti_status status = tutti__node_infer(node, NULL, inferred);
    if (status == TUTTI_OK)
        status = compare_types(node, inferred);
    else if (status != TUTTI_NO_MEMORY)
        status = verify_refuse(node, "%s", tutti_error_message());
    free(inferred);
    return status;
}

static tutti_status check_sharding(const tutti_node *node, int output)
{
    const tutti_sharding *sharding = node->shardings[output];
    for (int i = 0; sharding && i < sharding->count; i++) {
        const tutti_axis_shard *shard = &sharding->shards[i];
        if (!shard->axis || !shard->axis[0] || (unsigned)shard->kind > TUTTI_VARYING ||
            (unsigned)shard->reduction > TUTTI_PROD)
            return verify_refuse(
                node, "the sharding of output %d has no mesh axis, kind or reduction", output);
        if (shard->kind == TUTTI_SPLIT &&
            (shard->dimension < 0 || shard->dimension >= node->types[output].rank))
            return verify_refuse(node, "output %d is split along dimension %d, but has %d", output,
                                 shard->dimension, node->types[output].rank);
        for (int k = 0; k < i; k++)
            if (strcmp(sharding->shards[k].axis, shard->axis) == 0)
                return verify_refuse(node, "the sharding of output %d names mesh axis '%s' twice",
                                     output, shard->axis);
    }
    return TUTTI_OK;
}

static tutti_status check_graph(const tutti_graph *graph, int depth);

static tutti_status check_subgraphs(const tutti_node *node, int depth)
{
    for (int i = 0; i < node->attr_count; i++) {
        if (node->attrs[i].kind != TUTTI_ATTR_GRAPH)
            continue;
        tutti_status status = check_graph(node->attrs[i].value.graph, depth + 1);
        if (status != TUTTI_OK) /* the reason first: what lies deep has a long way behind it */
            return tutti_fail(status, "%s, in '%s' of %s '%s'", tutti_error_message(),
                              node->attrs[i].name, node->op->name, node->name);
    }
    return TUTTI_OK;
}

/* Sub-graphs come before types, because the shape rule looks into them. */
static tutti_status check_node(const tutti_graph *graph, tutti_node *node, size_t position,
                               int depth)
{
    TUTTI_TRY(check_self(graph, node, position));
    TUTTI_TRY(check_edges(graph, node));
    TUTTI_TRY(check_attrs(node));
    TUTTI_TRY(check_subgraphs(node, depth));
    TUTTI_TRY(check_types(node));
    for (int i = 0; node->shardings && i < node->output_count; i++)
        TUTTI_TRY(check_sharding(node, i));
    return TUTTI_OK;
}

static tutti_status check_name(tutti_map *names, tutti_node *node, const char *name,
                               const char *what)
{
    const tutti_node *other = tutti__map_get(names, name);
    if (other && other->file)
        return verify_refuse(node, "has the %s of '%s' (%s:%d)", what, other->name, other->file,
                             other->line);
    if (other)
        return verify_refuse(node, "has the %s of '%s'", what, other->name);
    return tutti__map_set(names, name, node);
}

/* Names are unique unless the graph is a trace. */
static tutti_status check_names(const tutti_graph *graph)
{
    tutti_map names = {0};
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; !graph->trace && status == TUTTI_OK && i < graph->nodes.count; i++) {
        tutti_node *node = graph->nodes.data[i];
        if (!node->dead)
            status = check_name(&names, node, node->name, "name");
    }
    tutti__map_free(&names);
    return status;
}

tutti_status tutti__graph_check_parameters(const tutti_graph *graph)
{
    char index[32];
    tutti_map indices = {0};
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; status == TUTTI_OK && i < graph->nodes.count; i++) {
        tutti_node *node = graph->nodes.data[i];
        if (node->dead || !tutti__is(node, "parameter"))
            continue;
        snprintf(index, sizeof index, "%" PRId64, tutti__int(node, "index"));
        status = tutti__int(node, "index") < 0
                     ? verify_refuse(node, "is parameter %s; indices begin at 0", index)
                     : check_name(&indices, node, index, "index");
    }
    tutti__map_free(&indices);
    return status;
}

static tutti_status check_ends(const tutti_graph *graph)
{
    for (size_t i = 0; i < graph->results.count; i++) {
        tutti_edge edge = graph->results.data[i];
        if (!holds(graph, edge.node))
            return tutti_fail(TUTTI_INVALID, "result %zu of the graph is not one of its nodes", i);
        if (edge.index >= (uint32_t)edge.node->output_count)
            return verify_refuse(edge.node, "has %d outputs, but output %" PRIu32 " is a result",
                                 edge.node->output_count, edge.index);
    }
    for (size_t i = 0; i < graph->targets.count; i++)
        if (!holds(graph, graph->targets.data[i]))
            return tutti_fail(TUTTI_INVALID, "target %zu of the graph is not one of its nodes", i);
    return TUTTI_OK;
}

/* Walks from every node as far as no walk has been; a walk that meets itself found a cycle. */
tutti_status tutti__graph_check_colocation(const tutti_graph *graph)
{
    size_t *walk = calloc(graph->nodes.count + 1, sizeof *walk);
    const tutti_node *cycle = NULL;
    if (!walk)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to verify a graph of %zu nodes",
                          graph->nodes.count);
    for (size_t i = 0; !cycle && i < graph->nodes.count; i++) {
        const tutti_node *node = graph->nodes.data[i];
        for (; node && !node->dead && walk[node->id] == 0; node = node->colocate)
            walk[node->id] = i + 1;
        if (node && !node->dead && walk[node->id] == i + 1 && node->colocate)
            cycle = node;
    }
    free(walk);
    return cycle ? verify_refuse(cycle, "stands beside itself, through other nodes") : TUTTI_OK;
}

static tutti_status check_graph(const tutti_graph *graph, int depth)
{
    TUTTI_TRY(tutti_graph_check(graph));
    if (depth > TUTTI_GRAPH_MAX_DEPTH)
        return tutti_fail(TUTTI_TOO_LARGE,
                          "sub-graphs are nested more than %d deep, which is the most that can be "
                          "written and read",
                          TUTTI_GRAPH_MAX_DEPTH);
    for (size_t i = 0; i < graph->nodes.count; i++) {
        tutti_node *node = graph->nodes.data[i];
        if (!node)
            return tutti_fail(TUTTI_INVALID, "node %zu of the graph is NULL", i);
        if (node->dead)
            continue;
        TUTTI_TRY(check_node(graph, node, i, depth));
    }
    TUTTI_TRY(tutti__graph_check_colocation(graph));
    TUTTI_TRY(check_names(graph));
    TUTTI_TRY(tutti__graph_check_parameters(graph));
    return check_ends(graph);
}

tutti_status tutti_graph_verify(const tutti_graph *graph)
{
    return check_graph(graph, 1);
}
