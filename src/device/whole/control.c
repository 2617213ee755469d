/* control.c: sub-graphs: cond and while. */
#include <stdlib.h>

#include "base/world.h"
#include "device/whole/whole.h"

static tutti_graph *body_of(const tutti_node *node, const char *name)
{
    return tutti_attr_find(node->attrs, node->attr_count, name)->value.graph;
}

static void free_values(const tutti_graph *graph, tutti_tensor ***values)
{
    for (size_t n = 0; values && n < graph->nodes.count; n++) {
        if (values[n])
            tutti__tensors_drop(graph->nodes.data[n]->output_count, values[n]);
        free(values[n]);
    }
    free(values);
}

static tutti_status body_node(tutti_whole_run *r, const tutti_node *node, int count,
                              tutti_tensor *const *arguments, tutti_tensor ***values)
{
    tutti_tensor **outputs = calloc((size_t)node->output_count + 1, sizeof *outputs);
    tutti_tensor **inputs = calloc((size_t)node->input_count + 1, sizeof *inputs);
    tutti_status status = outputs && inputs
                              ? TUTTI_OK
                              : tutti_fail(TUTTI_NO_MEMORY, "no memory for '%s'", node->name);
    values[node->id] = outputs;
    if (status == TUTTI_OK && tutti__is(node, "parameter")) {
        int64_t index = tutti__int(node, "index");
        if (index < count)
            outputs[0] = tutti_tensor_retain(arguments[index]);
        else
            status =
                tutti_fail(TUTTI_INTERNAL, "a sub-graph has no argument %lld", (long long)index);
    } else if (status == TUTTI_OK && tutti__is(node, "constant")) {
        outputs[0] = tutti_tensor_retain(
            tutti_attr_find(node->attrs, node->attr_count, "value")->value.tensor);
    } else if (status == TUTTI_OK) {
        for (int i = 0; i < node->input_count; i++)
            inputs[i] = values[node->inputs[i].node->id][node->inputs[i].index];
        status = tutti__whole_node(r, node, inputs, outputs);
    }
    free(inputs);
    return status;
}

tutti_status tutti__whole_body(tutti_whole_run *r, const tutti_graph *body, int count,
                               tutti_tensor *const *arguments, tutti_tensor **ret_results)
{
    tutti_tensor ***values = calloc(body->nodes.count + 1, sizeof *values);
    tutti_status status =
        values ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a sub-graph");
    for (size_t n = 0; status == TUTTI_OK && n < body->nodes.count; n++)
        if (!body->nodes.data[n]->dead)
            status = body_node(r, body->nodes.data[n], count, arguments, values);
    for (size_t i = 0; status == TUTTI_OK && i < body->results.count; i++) {
        tutti_edge result = body->results.data[i];
        ret_results[i] = tutti_tensor_retain(values[result.node->id][result.index]);
    }
    free_values(body, values);
    return status;
}

/* A sub-graph of a node; its errors name the node too. */
static tutti_status call_body(tutti_whole_run *r, const tutti_node *node, const char *name,
                              int count, tutti_tensor *const *arguments, tutti_tensor **ret_results)
{
    tutti_status status = tutti__whole_body(r, body_of(node, name), count, arguments, ret_results);
    return status == TUTTI_OK ? TUTTI_OK
                              : tutti__error_prefix(status, "%s '%s'", node->op->name, node->name);
}

static tutti_status holds(tutti_whole_run *r, const tutti_node *node, tutti_tensor *const *state,
                          bool *ret)
{
    tutti_tensor *answer = NULL;
    TUTTI_TRY(call_body(r, node, "cond_graph", node->input_count, state, &answer));
    *ret = tutti_tensor_get_int(answer, 0) != 0;
    tutti_tensor_release(answer);
    return TUTTI_OK;
}

/* One round: the loop variables, the first of the state, take the body's results; captures stay. */
static tutti_status control_advance(tutti_whole_run *r, const tutti_node *node,
                                    tutti_tensor **state, tutti_tensor **next)
{
    if (tutti__now_ns() > r->run->deadline)
        return tutti_fail(TUTTI_DEADLINE, "%s '%s': it was still looping at the run's deadline",
                          node->op->name, node->name);
    if (!r->committing && r->run->cancelled)
        return tutti_fail(TUTTI_CANCELLED, "%s '%s': the run was cancelled", node->op->name,
                          node->name);
    TUTTI_TRY(call_body(r, node, "body_graph", node->input_count, state, next));
    for (int i = 0; i < node->output_count; i++) {
        tutti_tensor_release(state[i]);
        state[i] = next[i];
    }
    return TUTTI_OK;
}

static tutti_status run_while(tutti_whole_run *r, const tutti_node *node,
                              tutti_tensor *const *inputs, tutti_tensor **ret_outputs)
{
    size_t count = (size_t)node->input_count;
    tutti_tensor **state =
        calloc(2 * count + 1, sizeof *state); /* and room for the body's results */
    tutti_status status = state ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a loop");
    for (size_t i = 0; state && i < count; i++)
        state[i] = tutti_tensor_retain(inputs[i]);
    for (bool more = true; status == TUTTI_OK;) {
        status = holds(r, node, state, &more);
        if (status != TUTTI_OK || !more)
            break;
        status = control_advance(r, node, state, state + count);
    }
    for (int i = 0; status == TUTTI_OK && i < node->output_count; i++)
        ret_outputs[i] = tutti_tensor_retain(state[i]);
    if (state)
        tutti__tensors_drop((int)count, state);
    free(state);
    return status;
}

tutti_status tutti__whole_control(tutti_whole_run *r, const tutti_node *node,
                                  tutti_tensor *const *inputs, tutti_tensor **ret_outputs)
{
    if (tutti__is(node, "while"))
        return run_while(r, node, inputs, ret_outputs);
    bool yes = tutti_tensor_get_int(inputs[0], 0) != 0;
    return call_body(r, node, yes ? "then_graph" : "else_graph", node->input_count - 1, inputs + 1,
                     ret_outputs);
}
