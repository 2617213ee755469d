/* sub_graph.c: see sub_graph.h. */
#include "exec/kernels/sub_graph.h"

#include <stdlib.h>

#include "base/world.h"

void tutti__values_free(tutti_values *values)
{
    for (int i = 0; i < values->count; i++)
        tutti_tensor_release(values->list[i]);
    free(values->list);
    *values = (tutti_values){0};
}

tutti_status tutti__values_borrow(const tutti_kernel_call *call, int first, int count,
                                  tutti_values *ret)
{
    tutti_values values = {.list = calloc((size_t)count + 1, sizeof *values.list)};
    tutti_status status =
        values.list ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory to call a sub-graph");
    for (int i = 0; status == TUTTI_OK && i < count; i++) {
        status = tutti__borrow_input(call, first + i, &values.list[i]);
        values.count += status == TUTTI_OK;
    }
    if (status != TUTTI_OK)
        tutti__values_free(&values);
    else
        *ret = values;
    return status;
}

tutti_status tutti__values_call(const tutti_kernel_call *call, tutti_graph *body,
                                const tutti_values *inputs, tutti_values *ret)
{
    tutti_context *context = tutti__context(call);
    tutti_values values = {.list = calloc(body->results.count + 1, sizeof *values.list)};
    if (!values.list)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to call a sub-graph");
    tutti_status status = context->run->call_graph(context->run, context->device, body,
                                                   inputs->count, inputs->list, values.list);
    if (status == TUTTI_OK) {
        values.count = (int)body->results.count;
        *ret = values;
        return TUTTI_OK;
    }
    free(values.list);
    return tutti__error_prefix(status, "%s '%s'", call->op->name, call->name);
}

/* The loop variables take the body's results; the captures stay. */
static void sub_graph_advance(tutti_values *state, tutti_values *results)
{
    for (int i = 0; i < results->count; i++) {
        tutti_tensor_release(state->list[i]);
        state->list[i] = results->list[i];
    }
    free(results->list);
    *results = (tutti_values){0};
}

static tutti_status holds(const tutti_kernel_call *call, tutti_graph *condition,
                          const tutti_values *state, bool *ret)
{
    tutti_values answer = {0};
    TUTTI_TRY(tutti__values_call(call, condition, state, &answer));
    if (answer.count == 0 || !answer.list)
        return tutti_fail(TUTTI_INTERNAL, "%s '%s': its condition gives nothing", call->op->name,
                          call->name);
    *ret = tutti_tensor_get_int(answer.list[0], 0) != 0;
    tutti__values_free(&answer);
    return TUTTI_OK;
}

tutti_status tutti__loop_run(const tutti_kernel_call *call,
                             tutti_status (*each)(void *, const tutti_values *), void *context,
                             tutti_values *ret)
{
    tutti_graph *condition =
        tutti_attr_find(call->attrs, call->attr_count, "cond_graph")->value.graph;
    tutti_graph *body = tutti_attr_find(call->attrs, call->attr_count, "body_graph")->value.graph;
    tutti_values state = {0}, next = {0};
    bool more = false;
    tutti_status status = tutti__values_borrow(call, 0, call->input_count, &state);
    while (status == TUTTI_OK) {
        status = holds(call, condition, &state, &more);
        if (status != TUTTI_OK || !more)
            break;
        if (tutti__now_ns() > call->deadline)
            status =
                tutti_fail(TUTTI_DEADLINE, "%s '%s': it was still looping at the run's deadline",
                           call->op->name, call->name);
        const tutti_run *run = tutti__context(call)->run;
        if (status == TUTTI_OK && run->watched && *run->watched)
            status = tutti_fail(TUTTI_CANCELLED, "%s '%s': the run was cancelled while it looped",
                                call->op->name, call->name);
        if (status == TUTTI_OK && each)
            status = each(context, &state);
        if (status == TUTTI_OK)
            status = tutti__values_call(call, body, &state, &next);
        if (status == TUTTI_OK)
            sub_graph_advance(&state, &next);
    }
    if (status != TUTTI_OK)
        tutti__values_free(&state);
    else
        *ret = state;
    return status;
}
