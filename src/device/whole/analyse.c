/* analyse.c: what a partition is made of, found once when it is compiled. */
#include <stdlib.h>

#include "device/whole/whole.h"
#include "program/trace.h"

static tutti_status no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory to compile a partition");
}

/* ---- what the target takes ---- */

static bool is_transfer(const tutti_node *node)
{
    return tutti__is(node, "send") || tutti__is(node, "recv") ||
           (node->op->flags & TUTTI_OP_COLLECTIVE);
}

static bool known_type(const tutti_type *type)
{
    return type->dtype != TUTTI_STRING && tutti_type_is_static(type);
}

/* Inside cond and while there is nothing to meet and nothing to wait for. */
static bool body_fits(const tutti_device *device, const tutti_graph *body)
{
    for (size_t n = 0; n < body->nodes.count; n++) {
        const tutti_node *node = body->nodes.data[n];
        if (node->dead || tutti__is(node, "parameter") || tutti__is(node, "constant"))
            continue;
        if (is_transfer(node) || (node->op->flags & TUTTI_OP_HANDLE) ||
            !tutti__whole_supports(device, node))
            return false;
    }
    return true;
}

bool tutti__whole_supports(const tutti_device *device, const tutti_node *node)
{
    uint32_t flags = node->op->flags;
    for (int i = 0; i < node->input_count; i++)
        if (!known_type(tutti__edge_type(node->inputs[i])))
            return false;
    for (int i = 0; i < node->output_count; i++)
        if (!known_type(&node->types[i]))
            return false;
    if (is_transfer(node) || tutti__is(node, "is_initialized"))
        return true;
    if ((flags & (TUTTI_OP_HOST | TUTTI_OP_BLOCKING)) ||
        ((flags & TUTTI_OP_HANDLE) && !tutti__is(node, "variable")))
        return false;
    if (!(flags & TUTTI_OP_CONTROL))
        return true;
    for (int i = 0; i < node->attr_count; i++)
        if (node->attrs[i].kind == TUTTI_ATTR_GRAPH &&
            !body_fits(device, node->attrs[i].value.graph))
            return false;
    return tutti__is(node, "cond") || tutti__is(node, "while");
}

/* ---- what a partition holds ---- */

static tutti_status make_arrays(tutti_whole_executable *e)
{
    size_t count = e->graph->nodes.count + 1;
    e->variables = tutti__arena_array(&e->arena, count, sizeof *e->variables);
    e->variable_of = tutti__arena_array(&e->arena, count, sizeof *e->variable_of);
    e->follows = tutti__arena_array(&e->arena, count, sizeof *e->follows);
    e->late = tutti__arena_array(&e->arena, count, sizeof *e->late);
    e->runner = tutti__arena_array(&e->arena, count, sizeof *e->runner);
    e->traced = tutti__arena_array(&e->arena, count, sizeof *e->traced);
    bool all = e->variables && e->variable_of && e->follows && e->late && e->runner && e->traced;
    return all ? TUTTI_OK : no_memory();
}

static tutti_status bind_variables(tutti_whole_executable *e, tutti_state *state)
{
    for (size_t n = 0; n < e->graph->nodes.count; n++) {
        const tutti_node *node = e->graph->nodes.data[n];
        tutti_piece *piece;
        int index = 0;
        e->variable_of[n] = -1;
        if (!tutti__is(node, "variable"))
            continue;
        TUTTI_TRY(tutti__bind_variable(state, e->device, node, &piece));
        while (index < e->variable_count && e->variables[index].piece != piece)
            index++;
        if (index == e->variable_count)
            e->variables[e->variable_count++].piece = piece;
        e->variable_of[n] = index;
    }
    return TUTTI_OK;
}

static const tutti_node *before(const tutti_node *node, int i)
{
    return i < node->input_count ? node->inputs[i].node : node->controls[i - node->input_count];
}

/* The last update of a variable among what a read waits for. */
static tutti_status find_followed(tutti_whole_executable *e, const tutti_node *read,
                                  int32_t variable)
{
    size_t count = e->graph->nodes.count, depth = 0;
    bool *seen = calloc(count + 1, sizeof *seen);
    const tutti_node **stack = calloc(count + 1, sizeof *stack);
    tutti_status status = seen && stack ? TUTTI_OK : no_memory();
    e->follows[read->id] = -1;
    if (status == TUTTI_OK)
        stack[depth++] = read;
    while (depth > 0) {
        const tutti_node *node = stack[--depth];
        for (int i = 0; (node->op->flags & TUTTI_OP_UPDATES) && i < node->input_count; i++)
            if (e->variable_of[node->inputs[i].node->id] == variable &&
                (int32_t)node->id > e->follows[read->id])
                e->follows[read->id] = (int32_t)node->id;
        for (int i = 0; i < node->input_count + node->control_count; i++) {
            const tutti_node *next = before(node, i);
            if (seen[next->id] || !e->late[next->id] ||
                (i >= node->input_count && tutti__keeps_order(node, next)))
                continue;
            seen[next->id] = true;
            stack[depth++] = next;
        }
    }
    free(seen);
    free(stack);
    return status;
}

static tutti_status note_variables(tutti_whole_executable *e, const tutti_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        int32_t index = e->variable_of[node->inputs[i].node->id];
        if (index < 0)
            continue;
        tutti_whole_variable *variable = &e->variables[index];
        if (tutti__is(node, "read")) {
            TUTTI_TRY(find_followed(e, node, index));
            variable->needed = variable->needed || e->follows[node->id] < 0;
        } else if (node->op->flags & TUTTI_OP_UPDATES) {
            variable->needed = variable->needed ||
                               (!variable->updated && !(node->op->flags & TUTTI_OP_OVERWRITES));
            variable->updated = true;
        } else if (!tutti__is(node, "is_initialized")) {
            return tutti_fail(TUTTI_UNSUPPORTED,
                              "%s: %s '%s' takes a variable as a handle and is no update",
                              e->device->name, node->op->name, node->name);
        }
    }
    return TUTTI_OK;
}

static tutti_status find_runner_kernel(tutti_whole_executable *e, const tutti_node *node)
{
    if (!is_transfer(node))
        return TUTTI_OK;
    tutti_type *inputs =
        tutti__arena_array(&node->graph->arena, (size_t)node->input_count + 1, sizeof *inputs);
    if (!inputs)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for %s '%s'", e->device->name,
                          node->op->name, node->name);
    tutti_kernel_query query = {.node = tutti__node_rule(node, inputs), .threads = 1};
    const tutti_kernel *kernel = tutti__kernel_pick("cpu", &query);
    if (!kernel || kernel->prepare)
        return tutti_fail(TUTTI_UNSUPPORTED, "%s: the runner has no kernel for %s '%s'",
                          e->device->name, node->op->name, node->name);
    e->runner[node->id] = kernel;
    return TUTTI_OK;
}

static void name_for_trace(tutti_whole_executable *e)
{
    e->lane = tutti__trace_name(e->device->name);
    for (size_t n = 0; n < e->graph->nodes.count; n++) {
        const tutti_node *node = e->graph->nodes.data[n];
        bool given = tutti__is(node, "parameter") || tutti__is(node, "constant") ||
                     (node->op->flags & TUTTI_OP_HANDLE);
        if (!given && !node->dead)
            e->traced[n] =
                tutti__trace_operator(node->name, node->op->name, tutti__node_flops(node));
    }
}

tutti_status tutti__whole_analyse(tutti_whole_executable *e, const tutti_partition *partition)
{
    e->graph = tutti__graph_retain(partition->graph);
    TUTTI_TRY(make_arrays(e));
    TUTTI_TRY(bind_variables(e, partition->state));
    tutti__find_after_update(e->graph, e->late);
    for (size_t n = 0; n < e->graph->nodes.count; n++) {
        const tutti_node *node = e->graph->nodes.data[n];
        bool floats = tutti__is(node, "parameter") || tutti__is(node, "constant");
        if (!floats && !tutti__whole_supports(e->device, node))
            return tutti_fail(TUTTI_UNSUPPORTED,
                              "%s cannot run %s '%s'; leave its device open or name a cpu",
                              e->device->name, node->op->name, node->name);
        e->meets_late = e->meets_late || (e->late[n] && is_transfer(node));
        TUTTI_TRY(note_variables(e, node));
        TUTTI_TRY(find_runner_kernel(e, node));
    }
    TUTTI_TRY(tutti__whole_lifetimes(e));
    name_for_trace(e);
    e->shadows = partition->shadows || tutti__fails_after_update(e->graph, e->late);
    return TUTTI_OK;
}
