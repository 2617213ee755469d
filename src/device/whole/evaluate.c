/* evaluate.c: evaluates a graph node by node with reference kernels. */
#include <stdlib.h>

#include "base/memory.h"
#include "device/whole/whole.h"
#include "ops/reference.h"
#include "program/trace.h"

static tutti_status no_memory(const tutti_node *node)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory for the values of '%s'", node->name);
}

/* ---- single nodes ---- */

/* What a kernel of the runner works in, which makes no plan; NULL: nothing. */
static tutti_status runner_workspace(const tutti_kernel *kernel, const tutti_node *node, void **ret)
{
    tutti_type *inputs = calloc((size_t)node->input_count + 1, sizeof *inputs);
    if (!inputs)
        return no_memory(node);
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = *tutti__edge_type(node->inputs[i]);
    tutti_kernel_query query = {.node = {.op = node->op,
                                         .name = node->name,
                                         .input_count = node->input_count,
                                         .output_count = node->output_count,
                                         .inputs = inputs,
                                         .attrs = node->attrs,
                                         .attr_count = node->attr_count,
                                         .outputs = node->types},
                                .threads = 1};
    size_t bytes = tutti__kernel_workspace(kernel, &query, NULL);
    free(inputs);
    *ret = bytes > 0 ? tutti__aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
    return bytes > 0 && !*ret ? no_memory(node) : TUTTI_OK;
}

/* A kernel of the runner: it meets other devices through the run's rendezvous. `views`: of inputs,
 * then of outputs. */
static tutti_status call_runner_with(tutti_whole_run *r, const tutti_kernel *kernel,
                                     const tutti_node *node, tutti_tensor *const *inputs,
                                     tutti_view *views, tutti_tensor **outputs)
{
    tutti_context context = {
        .host.cancelled = r->run->watched, .run = r->run, .device = r->executable->device};
    for (int i = 0; i < node->input_count; i++)
        views[i] = tutti__tensor_view_of(inputs[i]);
    for (int i = 0; i < node->output_count; i++) {
        TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), &node->types[i], &outputs[i]));
        views[node->input_count + i] = tutti__tensor_view_of(outputs[i]);
    }
    tutti_kernel_call call = {.op = node->op,
                              .name = node->name,
                              .attrs = node->attrs,
                              .attr_count = node->attr_count,
                              .input_count = node->input_count,
                              .output_count = node->output_count,
                              .inputs = views,
                              .outputs = views + node->input_count,
                              .context = &context,
                              .deadline = r->run->deadline};
    TUTTI_TRY(runner_workspace(kernel, node, &call.workspace));
    tutti_status status = kernel->run(&call);
    free(call.workspace);
    return status == TUTTI_OK ? TUTTI_OK : tutti__node_failed(node, status);
}

static tutti_status call_runner(tutti_whole_run *r, const tutti_kernel *kernel,
                                const tutti_node *node, tutti_tensor *const *inputs,
                                tutti_tensor **ret_outputs)
{
    size_t count = (size_t)node->output_count;
    tutti_view *views = calloc((size_t)node->input_count + count + 1, sizeof *views);
    tutti_tensor **outputs = calloc(count + 1, sizeof *outputs);
    tutti_status status = views && outputs
                              ? call_runner_with(r, kernel, node, inputs, views, outputs)
                              : tutti_fail(TUTTI_NO_MEMORY, "no memory for %s", node->op->name);
    for (size_t i = 0; outputs && i < count; i++) {
        if (status == TUTTI_OK)
            ret_outputs[i] = outputs[i];
        else
            tutti_tensor_release(outputs[i]);
    }
    free(views);
    free(outputs);
    return status;
}

/* Values must come out as the shape rules said: the partition was compiled for that. */
static tutti_status check_types(const tutti_node *node, tutti_tensor **outputs)
{
    for (int i = 0; i < node->output_count; i++) {
        char have[TUTTI_TYPE_TEXT], want[TUTTI_TYPE_TEXT];
        if (tutti_type_equal(tutti_tensor_type(outputs[i]), &node->types[i]))
            continue;
        tutti_status status = tutti_fail(
            TUTTI_INTERNAL, "%s '%s': output %d came out as %s, the shape rule said %s",
            node->op->name, node->name, i, tutti_type_text(tutti_tensor_type(outputs[i]), have),
            tutti_type_text(&node->types[i], want));
        tutti__tensors_drop(node->output_count, outputs);
        return status;
    }
    return TUTTI_OK;
}

tutti_status tutti__whole_node(tutti_whole_run *r, const tutti_node *node,
                               tutti_tensor *const *inputs, tutti_tensor **ret_outputs)
{
    if (!(node->op->flags & (TUTTI_OP_CONTROL | TUTTI_OP_VIEW)) && !node->op->reference)
        return TUTTI_OK; /* only a place in the order */
    tutti_status status = node->op->flags & TUTTI_OP_CONTROL
                              ? tutti__whole_control(r, node, inputs, ret_outputs)
                              : tutti__reference_node(node, inputs, ret_outputs);
    if (status != TUTTI_OK)
        return tutti__node_failed(node, status);
    return check_types(node, ret_outputs);
}

/* ---- variables ---- */

static tutti_status no_value(const tutti_whole_run *r, int32_t variable)
{
    const tutti_whole_executable *e = r->executable;
    return tutti__variable_missing(e->graph, e->variables[variable].piece->variable->name);
}

static tutti_status copy_of(tutti_tensor *from, tutti_tensor **ret)
{
    tutti_view view = tutti__tensor_view_of(from);
    return tutti__tensor_from_view(&view, ret);
}

/* A tensor of its own with the value that an update starts from. */
static tutti_status take_value(tutti_whole_run *r, int32_t variable, bool overwrites,
                               tutti_tensor **ret)
{
    const tutti_piece *piece = r->executable->variables[variable].piece;
    if (r->newest[variable])
        return copy_of(r->newest[variable], ret);
    if (r->committing && piece->value)
        return tutti__tensor_to_host(piece->value, ret); /* device memory: always a copy */
    if (!r->committing && r->before[variable])
        return copy_of(r->before[variable], ret);
    if (!overwrites)
        return no_value(r, variable);
    return tutti_tensor_create(piece->type.dtype, piece->type.rank, piece->type.dims, ret);
}

/* Puts new tensors where the update's variables stand among its inputs; they are kept as its
 * versions. */
static tutti_status open_update(tutti_whole_run *r, const tutti_node *node, tutti_tensor **inputs)
{
    bool overwrites = (node->op->flags & TUTTI_OP_OVERWRITES) != 0;
    tutti_tensor **versions = calloc((size_t)node->input_count + 1, sizeof *versions);
    if (!versions)
        return no_memory(node);
    r->updated[node->id] = versions;
    for (int i = 0; i < node->input_count; i++) {
        int32_t variable = r->executable->variable_of[node->inputs[i].node->id];
        if (variable < 0)
            continue;
        TUTTI_TRY(take_value(r, variable, overwrites, &versions[i]));
        inputs[i] = versions[i];
    }
    return TUTTI_OK;
}

static void close_update(tutti_whole_run *r, const tutti_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        int32_t variable = r->executable->variable_of[node->inputs[i].node->id];
        if (variable < 0)
            continue;
        tutti_tensor_release(r->newest[variable]);
        r->newest[variable] = tutti_tensor_retain(r->updated[node->id][i]);
    }
}

static tutti_status read_variable(const tutti_whole_run *r, const tutti_node *node,
                                  tutti_tensor **ret)
{
    const tutti_whole_executable *e = r->executable;
    int32_t variable = e->variable_of[node->inputs[0].node->id], update = e->follows[node->id];
    tutti_tensor *value = r->before[variable];
    if (update >= 0) {
        const tutti_node *writer = e->graph->nodes.data[update];
        for (int i = 0; i < writer->input_count; i++)
            if (e->variable_of[writer->inputs[i].node->id] == variable)
                value = r->updated[update][i];
    }
    if (!value)
        return no_value(r, variable);
    *ret = tutti_tensor_retain(value);
    return TUTTI_OK;
}

static tutti_status is_initialized(const tutti_whole_run *r, const tutti_node *node,
                                   tutti_tensor **ret)
{
    int32_t variable = r->executable->variable_of[node->inputs[0].node->id];
    bool there = r->before[variable] || r->newest[variable];
    return tutti_tensor_from(TUTTI_BOOL, 0, NULL, &(uint8_t){there}, ret);
}

/* ---- the partition ---- */

/* Inputs borrowed from the values of other nodes; NULL where a variable's handle stands. */
static void evaluate_gather(const tutti_node *node, tutti_tensor ***values,
                            tutti_tensor **ret_inputs)
{
    for (int i = 0; i < node->input_count; i++) {
        tutti_tensor **from = values[node->inputs[i].node->id];
        ret_inputs[i] = from ? from[node->inputs[i].index] : NULL;
    }
}

static tutti_status evaluate_with(tutti_whole_run *r, const tutti_node *node, tutti_tensor **inputs,
                                  tutti_tensor **outputs)
{
    const tutti_kernel *kernel = r->executable->runner[node->id];
    if (tutti__is(node, "read"))
        return read_variable(r, node, &outputs[0]);
    if (tutti__is(node, "is_initialized"))
        return is_initialized(r, node, &outputs[0]);
    if (kernel)
        return call_runner(r, kernel, node, inputs, outputs);
    if (node->op->flags & TUTTI_OP_UPDATES)
        TUTTI_TRY(open_update(r, node, inputs));
    TUTTI_TRY(tutti__whole_node(r, node, inputs, outputs));
    if (node->op->flags & TUTTI_OP_UPDATES)
        close_update(r, node);
    return TUTTI_OK;
}

static tutti_status evaluate_node(tutti_whole_run *r, const tutti_node *node)
{
    tutti_tensor **outputs = calloc((size_t)node->output_count + 1, sizeof *outputs);
    tutti_tensor **inputs = calloc((size_t)node->input_count + 1, sizeof *inputs);
    r->values[node->id] = outputs;
    tutti_status status = outputs && inputs ? TUTTI_OK : no_memory(node);
    if (status == TUTTI_OK && tutti__is(node, "parameter")) {
        outputs[0] = tutti_tensor_retain(r->inputs[tutti__int(node, "index")]);
    } else if (status == TUTTI_OK && tutti__is(node, "constant")) {
        outputs[0] = tutti_tensor_retain(
            tutti_attr_find(node->attrs, node->attr_count, "value")->value.tensor);
    } else if (status == TUTTI_OK && !(node->op->flags & TUTTI_OP_HANDLE)) {
        evaluate_gather(node, r->values, inputs);
        status = evaluate_with(r, node, inputs, outputs);
    }
    free(inputs);
    return status;
}

tutti_status tutti__whole_evaluate(tutti_whole_run *r, bool late)
{
    const tutti_whole_executable *e = r->executable;
    tutti_trace *trace = tutti__trace_mine();
    for (size_t n = 0; n < e->graph->nodes.count; n++) {
        const tutti_node *node = e->graph->nodes.data[n];
        uint64_t start = trace ? tutti__ticks() : 0;
        if (e->late[n] != late || node->dead)
            continue;
        if (!r->committing && r->run->cancelled)
            return tutti_fail(TUTTI_CANCELLED, "%s: the run was cancelled before '%s'",
                              e->device->name, node->name);
        TUTTI_TRY(evaluate_node(r, node));
        tutti__whole_let_go(r, node);
        if (trace && e->traced[n])
            tutti__trace_add(trace, e->traced[n], e->lane, start, tutti__ticks());
    }
    return TUTTI_OK;
}
