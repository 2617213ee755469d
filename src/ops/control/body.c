/* body.c: sub-graphs made from C functions; see control.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/scope.h"
#include "ops/control/control.h"
#include "ops/random/random.h"

extern const tutti_op tutti_op_parameter;

/* Names in a trace depend on what was made before; how many of its kind there are does not. */
static bool name_in_trace(tutti_graph *outer, const char *op, char *text, size_t size)
{
    int count = 0;
    for (size_t n = 0; n < outer->nodes.count; n++)
        count += tutti__is(outer->nodes.data[n], op);
    int used = snprintf(text, size, "%s%s_%d%s", tutti__scope_prefix(outer), op, count,
                        tutti__random_begins(outer) ? ".first" : "");
    return used >= 0 && (size_t)used < size;
}

tutti_status tutti__body_label(tutti_graph *outer, const char *op, const char *part, char *text,
                               size_t size)
{
    bool fits = outer->trace ? name_in_trace(outer, op, text, size)
                             : tutti__scope_next_name(outer, op, text, size);
    size_t used = fits ? strlen(text) : size;
    if (used + strlen(part) + 2 > size || used + strlen(part) > 499)
        return tutti_fail(TUTTI_INVALID, "%s: the names of its scopes are too long", op);
    snprintf(text + used, size - used, "/%s", part);
    return TUTTI_OK;
}

tutti_status tutti__subgraph_create(int count, const tutti_type *types, tutti_graph **ret_graph,
                                    tutti_sym *ret_args)
{
    tutti_graph *graph;
    TUTTI_TRY(tutti_graph_create(&graph));
    for (int i = 0; i < count; i++)
        ret_args[i] = tutti_parameter(graph, i, types[i]);
    tutti_status status = tutti_graph_check(graph);
    if (status != TUTTI_OK)
        tutti_graph_destroy(graph);
    else
        *ret_graph = graph;
    return status;
}

tutti_status tutti__subgraph_results(tutti_graph *graph, int count, const tutti_sym *results)
{
    TUTTI_TRY(tutti_graph_check(graph));
    for (int i = 0; i < count; i++) {
        if (!tutti_sym_ok(results[i]))
            return tutti_fail(TUTTI_INVALID, "result %d was not set", i);
        if (results[i].node->graph != graph)
            return tutti_fail(
                TUTTI_INVALID,
                "result %d ('%s') belongs to another graph; give the body what it needs as "
                "arguments",
                i, results[i].node->name);
        if ((int)results[i].index >= results[i].node->output_count)
            return tutti_fail(TUTTI_INVALID, "result %d ('%s') has no value", i,
                              results[i].node->name);
        TUTTI_TRY(tutti__graph_result(graph, tutti__edge(tutti__value_of(results[i]))));
    }
    return tutti_graph_check(graph);
}

static bool is_used(const tutti_graph *graph, const tutti_node *wanted)
{
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i].node == wanted)
                return true;
    }
    return false;
}

/* Variables and placeholders are the outer graph's: one made here nobody initialises, finds, trains
 * or feeds. */
static tutti_status refuse_outer(const tutti_graph *graph)
{
    char place[TUTTI_PLACE_TEXT];
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        if (tutti__is(node, "variable") || tutti__is(node, "placeholder"))
            return tutti_fail(TUTTI_INVALID,
                              "%s '%s'%s is made in the body; make it outside, and "
                              "give it as an argument",
                              node->op->name, node->name, tutti__node_place(node, place));
    }
    return TUTTI_OK;
}

/* A body runs by itself, on one device: nobody it could meet there comes to the same run. */
static tutti_status refuse_meetings(const tutti_graph *graph)
{
    char place[TUTTI_PLACE_TEXT];
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        if ((node->op->flags & TUTTI_OP_COLLECTIVE) || tutti__is(node, "send") ||
            tutti__is(node, "recv"))
            return tutti_fail(TUTTI_INVALID,
                              "%s '%s'%s meets other devices, which a body cannot: it runs "
                              "by itself, if at all; put it outside of cond and while",
                              node->op->name, node->name, tutti__node_place(node, place));
    }
    return TUTTI_OK;
}

/* Gradients of cond and while differentiate copies of a body, of which a hook knows nothing. */
static tutti_status refuse_hooks(const tutti_graph *graph)
{
    char place[TUTTI_PLACE_TEXT];
    if (graph->hooks.count == 0)
        return TUTTI_OK;
    const tutti_node *node = graph->hooks.data[0].edge.node;
    return tutti_fail(TUTTI_INVALID,
                      "a gradient hook is set on %s '%s'%s in the body, whose gradients do not "
                      "call it; set it outside, on an argument or a result",
                      node->op->name, node->name, tutti__node_place(node, place));
}

tutti_status tutti__body_takes(const tutti_graph *graph, const char *op, int count,
                               const tutti_sym *args)
{
    if (count < 0)
        return tutti_fail(TUTTI_INVALID, "%s: %d arguments are announced, needs 0 or more", op,
                          count);
    if (count > 0 && !args)
        return tutti_fail(TUTTI_INVALID, "%s: %d arguments are announced, and the array is NULL",
                          op, count);
    for (int i = 0; i < count; i++) {
        char what[40];
        snprintf(what, sizeof what, "%s: argument", op);
        TUTTI_TRY(tutti__sym_usable(graph, args[i], what, i));
        tutti_type type = tutti_sym_type(args[i]);
        if (tutti__is_queue_type(&type))
            return tutti_fail(TUTTI_INVALID,
                              "%s: '%s' among its arguments is a queue, and bodies take values "
                              "only; dequeue outside, and give what came",
                              op, args[i].node->name);
    }
    return TUTTI_OK;
}

/* Lets `fn` build and takes its results. */
static tutti_status body_fill(tutti_control_body *body, const char *label, tutti_body_fn *fn,
                              void *context, int arg_count, const tutti_sym *args, int result_count,
                              tutti_sym *results)
{
    tutti_type i64 = tutti_type_make(TUTTI_I64, 0, NULL);
    tutti_attr attrs[] = {TUTTI_INT("index", arg_count), TUTTI_INT("dtype", i64.dtype)};
    tutti_sym counter =
        tutti__build(body->graph, &tutti_op_parameter, TUTTI_RANDOM_COUNTER, 0, NULL, 2, attrs);
    TUTTI_TRY(tutti_graph_check(body->graph));
    body->counter = counter.node;
    tutti_name_push(body->graph, label);
    fn(body->graph, arg_count, args, results, context);
    TUTTI_TRY(tutti_graph_check(body->graph));
    TUTTI_TRY(refuse_outer(body->graph));
    TUTTI_TRY(refuse_meetings(body->graph));
    TUTTI_TRY(refuse_hooks(body->graph));
    TUTTI_TRY(tutti__graph_check_parameters(body->graph));
    TUTTI_TRY(tutti__subgraph_results(body->graph, result_count, results));
    if (body->graph->scopes.count != 1)
        return tutti_fail(TUTTI_INVALID, "a scope was left open");
    tutti_name_pop(body->graph);
    body->draws = is_used(body->graph, body->counter);
    return TUTTI_OK;
}

tutti_status tutti__body_build(const char *label, tutti_body_fn *fn, void *context, int arg_count,
                               const tutti_type *arg_types, int result_count,
                               tutti_control_body *ret_body)
{
    tutti_control_body body = {0};
    const char *file; /* of the call that the body is for */
    int line;
    tutti__here_get(&file, &line);
    if (!fn)
        return tutti_fail(TUTTI_INVALID, "no function is given that builds the body");
    if (result_count < 0)
        return tutti_fail(TUTTI_INVALID, "%d results are asked for, needs 0 or more", result_count);
    tutti_sym *syms = calloc((size_t)(arg_count + result_count) + 1, sizeof *syms);
    if (!syms)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a body");
    tutti_status status = tutti__subgraph_create(arg_count, arg_types, &body.graph, syms);
    if (status == TUTTI_OK) {
        status =
            body_fill(&body, label, fn, context, arg_count, syms, result_count, syms + arg_count);
        if (status != TUTTI_OK)
            tutti_graph_destroy(body.graph);
    }
    free(syms);
    tutti_here(file, line);
    if (status == TUTTI_OK)
        *ret_body = body;
    return status;
}

tutti_status tutti__body_drop_counter(tutti_control_body *body)
{
    body->counter->dead = true;
    return tutti__graph_sort(body->graph);
}

void tutti__body_move_counter(tutti_control_body *body, int position)
{
    for (size_t n = 0; n < body->graph->nodes.count; n++) {
        tutti_node *node = body->graph->nodes.data[n];
        if (!tutti__is(node, "parameter"))
            continue;
        int64_t index = tutti__int(node, "index");
        if (node == body->counter)
            tutti__attr_set_int(node, "index", position);
        else if (index >= position)
            tutti__attr_set_int(node, "index", index + 1);
    }
}
