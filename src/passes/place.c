/* place.c: every node gets its device.
 *
 * In this order: for operators that take a handle, the handle's device; the device of the node it
 * is colocated with; the user's wish; the device of the first input that has one, for groups and
 * constants of the first node that they wait for; the fallback. Constants that wait for nothing and
 * parameters have no place of their own: each piece that uses them gets a copy. */
#include <stdio.h>
#include <string.h>

#include "passes/pass.h"

static bool floats(const tutti_node *node)
{
    return (tutti__is(node, "constant") && node->control_count == 0) ||
           tutti__is(node, "parameter");
}

static tutti_status wish(const tutti_node *node, const char *text, const char *fallback,
                         tutti_device **ret)
{
    tutti_device_name name, other;
    TUTTI_TRY(tutti_device_parse(text, &name));
    if (!name.kind[0]) { /* only a job or task was named: this process stands for it */
        TUTTI_TRY(tutti_device_parse(fallback, &other));
        memcpy(name.kind, other.kind, sizeof name.kind);
        name.index = other.index;
        name.part = other.part;
    }
    char local[TUTTI_DEVICE_TEXT], place[TUTTI_PLACE_TEXT];
    tutti_status status = tutti__device_open(tutti_device_local(&name, local), ret);
    if (status != TUTTI_OK)
        return tutti__error_prefix(status, "%s '%s'%s", node->op->name, node->name,
                                   tutti__node_place(node, place));
    return TUTTI_OK;
}

tutti_status tutti__place_variable(const tutti_node *variable, const char *fallback,
                                   tutti_device **ret)
{
    return wish(variable, variable->device[0] ? variable->device : fallback, fallback, ret);
}

/* Names that still have a job or task are of other processes, by which they are opened. */
static bool is_elsewhere(const char *text)
{
    tutti_device_name name;
    return tutti_device_parse(text, &name) == TUTTI_OK && (name.job[0] || name.task >= 0);
}

static const char *inherited(const tutti_node *node)
{
    if (node->op->flags & TUTTI_OP_TAKES_HANDLE)
        for (int i = 0; i < node->input_count; i++)
            if (tutti__edge_type(node->inputs[i])->handle)
                return node->inputs[i].node->device;
    if (node->colocate && !node->colocate->dead)
        return node->colocate->device;
    return NULL;
}

static const char *of_those_before(const tutti_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        const char *device = node->inputs[i].node->device;
        if (!floats(node->inputs[i].node) && device && device[0])
            return device;
    }
    bool waits = tutti__is(node, "group") || tutti__is(node, "constant");
    for (int i = 0; waits && i < node->control_count; i++)
        if (!floats(node->controls[i]) && node->controls[i]->device[0])
            return node->controls[i]->device;
    return NULL;
}

/* `ask`: what devices support; `between`: other processes' devices keep their names. */
static tutti_status place_node(tutti_graph *graph, tutti_node *node, const char *fallback, bool ask,
                               bool between)
{
    const char *text = inherited(node);
    bool own = !text && node->device[0];
    bool wished = own && !node->backward; /* gradients may go elsewhere */
    if (own)
        text = node->device;
    if (!text || !text[0])
        text = of_those_before(node);
    if (!text || !text[0])
        text = fallback;
    if (between && is_elsewhere(text)) {
        node->device = tutti__arena_string(&graph->arena, text);
        return node->device ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a device name");
    }
    tutti_device *device;
    char place[TUTTI_PLACE_TEXT];
    TUTTI_TRY(wish(node, text, fallback, &device));
    bool supported = !ask || !device->target->supports || device->target->supports(device, node);
    if (!supported && wished)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "%s '%s'%s: device %s cannot run it; leave the device open or name a cpu",
                          node->op->name, node->name, tutti__node_place(node, place), device->name);
    if (!supported)
        TUTTI_TRY(tutti__device_open("cpu:0", &device));
    node->device = tutti__arena_string(&graph->arena, device->name);
    return node->device ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a device name");
}

static tutti_status place_all(tutti_graph *graph, const char *fallback, bool ask, bool between)
{
    for (size_t i = 0; i < graph->nodes.count; i++) {
        tutti_node *node = graph->nodes.data[i];
        if (floats(node))
            node->device = "";
        else
            TUTTI_TRY(place_node(graph, node, fallback, ask, between));
    }
    return TUTTI_OK;
}

tutti_status tutti__place(tutti_graph *graph, const char *fallback)
{
    return place_all(graph, fallback, true, false);
}

tutti_status tutti__place_between(tutti_graph *graph, const char *fallback)
{
    return place_all(graph, fallback, true, true);
}

tutti_status tutti__place_unasked(tutti_graph *graph, const char *fallback)
{
    return place_all(graph, fallback, false, false);
}
