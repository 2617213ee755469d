/* while_gradient.c: the gradient of a loop is a loop backwards over its history.
 *
 * Forward round t: x_{t+1} = f(x_t, c). With gx the gradient of x_{t+1}, round t backwards gives
 *     gx = (df/dx)^T gx + history_grad[t]      gc = gc + (df/dc)^T gx
 * Its loop variables are the round t (counting down), gx for every floating loop variable, gc for
 * every wanted capture. Its captures are the history, the forward captures, the history's
 * gradients, and the shapes of loose variables: those whose type leaves open whether rounds differ.
 */
#include "graph/autodiff.h"
#include "ops/control/control.h"
#include "ops/control/history.h"

typedef struct backward {
    tutti_gradient_call *node;
    const tutti_loop_gradient *loop;
    int loops, captures;    /* of the forward loop */
    int *float_at, floats;  /* loop variables with a gradient */
    int *wanted_at, wanted; /* captures whose gradient is wanted, as inputs of the node */
    int *graded_at, graded; /* loop variables whose history has a gradient */
    int *shapes_at; /* per loop variable: the input with its shapes; 0 where none is needed */
    int variables, inputs; /* of the backward loop */
    tutti_sym *given;      /* its inputs */
    tutti_type *types;     /* of its inputs */
    tutti_arena arena;
} backward;

static tutti_status while_gradient_start(backward *b)
{
    const tutti_gradient_call *node = b->node;
    size_t inputs = (size_t)node->input_count;
    b->loops = (int)RULE_INT(node, "loop_count");
    b->captures = node->input_count - b->loops;
    b->float_at = tutti__arena_array(&b->arena, inputs + 1, sizeof *b->float_at);
    b->wanted_at = tutti__arena_array(&b->arena, inputs + 1, sizeof *b->wanted_at);
    b->graded_at = tutti__arena_array(&b->arena, inputs + 1, sizeof *b->graded_at);
    b->shapes_at = tutti__arena_array(&b->arena, inputs + 1, sizeof *b->shapes_at);
    b->given = tutti__arena_array(&b->arena, 5 * inputs + 1, sizeof *b->given);
    b->types = tutti__arena_array(&b->arena, 5 * inputs + 1, sizeof *b->types);
    if (!b->float_at || !b->wanted_at || !b->graded_at || !b->shapes_at || !b->given || !b->types)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the gradient of a loop");
    for (int i = 0; i < b->loops; i++) {
        if (tutti_dtype_is_float(tutti_sym_type(node->outputs[i]).dtype))
            b->float_at[b->floats++] = i;
        if (b->loop->history_grads && tutti_sym_ok(b->loop->history_grads[i]))
            b->graded_at[b->graded++] = i;
    }
    for (int i = b->loops; i < node->input_count; i++)
        if (node->wanted[i])
            b->wanted_at[b->wanted++] = i;
    return TUTTI_OK;
}

static tutti_type loop_type(const backward *b, int variable)
{
    return tutti_sym_type(b->node->outputs[variable]);
}

/* t, gx..., gc..., history..., captures..., history gradients..., shapes... */
static tutti_status take_inputs(backward *b)
{
    const tutti_gradient_call *node = b->node;
    int n = 0;
    b->given[n++] = b->loop->trips;
    for (int i = 0; i < b->floats; i++) {
        tutti_sym grad = node->output_grads[b->float_at[i]];
        b->given[n++] = tutti_sym_ok(grad) ? grad : tutti_zeros_like(node->outputs[b->float_at[i]]);
    }
    for (int i = 0; i < b->wanted; i++)
        b->given[n++] = tutti_zeros_like(node->inputs[b->wanted_at[i]]);
    b->variables = n;
    for (int i = 0; i < b->loops; i++)
        b->given[n++] = b->loop->history[i];
    for (int i = 0; i < b->captures; i++)
        b->given[n++] = node->inputs[b->loops + i];
    for (int i = 0; i < b->graded; i++)
        b->given[n++] = b->loop->history_grads[b->graded_at[i]];
    for (int i = 0; i < b->loops; i++) {
        tutti_type type = loop_type(b, i);
        b->shapes_at[i] = tutti__history_fixed(&type) ? 0 : n;
        if (b->shapes_at[i])
            b->given[n++] = b->loop->shapes[i];
    }
    b->inputs = n;
    for (int i = 0; i < n; i++)
        b->types[i] = tutti_sym_type(b->given[i]);
    /* A gradient has its variable's shape as far as that is known to be the same in every round. */
    for (int i = 0; i < b->floats; i++)
        b->types[1 + i] = loop_type(b, b->float_at[i]);
    return tutti_graph_check(node->graph);
}

static tutti_status make_condition(backward *b, tutti_graph **ret_graph)
{
    tutti_sym round;
    TUTTI_TRY(tutti__subgraph_create(1, b->types, ret_graph, &round));
    tutti_sym more = tutti_greater(round, tutti_scalar(*ret_graph, TUTTI_I64, 0));
    return tutti__subgraph_results(*ret_graph, 1, &more);
}

/* Row t of what is stacked as a loop variable's history is. */
static tutti_sym row_of(const backward *b, const tutti_sym *params, tutti_sym stacked, int variable,
                        tutti_sym round)
{
    tutti_type type = loop_type(b, variable);
    return b->shapes_at[variable]
               ? tutti__history_row(stacked, params[b->shapes_at[variable]], round, &type)
               : tutti_gather(stacked, round, 0);
}

/* The forward step again, on the history's row t; its results' gradients pulled back. `grads` gets
 * those of the floating loop variables, then of the wanted captures. */
static tutti_status pull_back(backward *b, tutti_graph *graph, const tutti_sym *params,
                              tutti_sym round, tutti_sym *grads)
{
    const tutti_graph *body = tutti__attr_graph(b->node->attrs, b->node->attr_count, "body_graph");
    const tutti_sym *history = params + b->variables;
    size_t count = (size_t)b->node->input_count;
    tutti_sym *args = tutti__arena_array(&b->arena, count, sizeof *args);
    tutti_sym *results = tutti__arena_array(&b->arena, count, sizeof *results);
    tutti_sym *ys = tutti__arena_array(&b->arena, count, sizeof *ys);
    tutti_sym *xs = tutti__arena_array(&b->arena, count, sizeof *xs);
    if (!args || !results || !ys || !xs)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the gradient of a loop");
    for (int i = 0; i < b->loops; i++)
        args[i] = row_of(b, params, history[i], i, round);
    for (int i = 0; i < b->captures; i++)
        args[b->loops + i] = history[b->loops + i];
    TUTTI_TRY(tutti_graph_check(graph));
    TUTTI_TRY(tutti__inline(graph, body, b->node->input_count, args, results));
    for (int i = 0; i < b->floats; i++) {
        ys[i] = results[b->float_at[i]];
        xs[i] = args[b->float_at[i]];
    }
    for (int i = 0; i < b->wanted; i++)
        xs[b->floats + i] = args[b->wanted_at[i]];
    TUTTI_TRY(
        tutti__gradients(graph, b->floats, ys, params + 1, b->floats + b->wanted, xs, grads, NULL));
    for (int i = 0; i < b->floats; i++)
        if (!tutti_sym_ok(grads[i]))
            grads[i] = tutti_zeros_like(xs[i]);
    return tutti_graph_check(graph);
}

static tutti_status make_step(backward *b, tutti_graph **ret_graph)
{
    tutti_sym *params = tutti__arena_array(&b->arena, (size_t)b->inputs, sizeof *params);
    tutti_sym *results = tutti__arena_array(&b->arena, (size_t)b->variables, sizeof *results);
    if (!params || !results)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the gradient of a loop");
    TUTTI_TRY(tutti__subgraph_create(b->inputs, b->types, ret_graph, params));
    tutti_sym round = tutti_sub(params[0], tutti_scalar(*ret_graph, TUTTI_I64, 1));
    results[0] = round;
    TUTTI_TRY(pull_back(b, *ret_graph, params, round, results + 1));
    const tutti_sym *graded = params + b->variables + b->node->input_count;
    for (int i = 0; i < b->floats; i++)
        for (int j = 0; j < b->graded; j++)
            if (b->graded_at[j] == b->float_at[i])
                results[1 + i] =
                    tutti_add(results[1 + i], row_of(b, params, graded[j], b->graded_at[j], round));
    for (int i = 1 + b->floats; i < b->variables; i++)
        results[i] = tutti_sym_ok(results[i]) ? tutti_add(params[i], results[i]) : params[i];
    return tutti__subgraph_results(*ret_graph, b->variables, results);
}

static tutti_status while_gradient_build(backward *b, tutti_graph *condition, tutti_graph *step)
{
    tutti_gradient_call *node = b->node;
    tutti_attr attrs[] = {TUTTI_GRAPH_ATTR("cond_graph", condition),
                          TUTTI_GRAPH_ATTR("body_graph", step),
                          TUTTI_INT("loop_count", b->variables)};
    tutti_sym made = tutti_apply_op(node->graph, "while", b->inputs, b->given, 3, attrs);
    TUTTI_TRY(tutti_graph_check(node->graph));
    for (int i = 0; i < b->floats; i++)
        if (node->wanted[b->float_at[i]])
            node->input_grads[b->float_at[i]] = tutti_sym_output(made, 1 + i);
    for (int i = 0; i < b->wanted; i++)
        node->input_grads[b->wanted_at[i]] = tutti_sym_output(made, 1 + b->floats + i);
    return TUTTI_OK;
}

tutti_status tutti__gradient_loop(tutti_gradient_call *node, const tutti_loop_gradient *loop)
{
    backward b = {.node = node, .loop = loop};
    tutti_graph *condition = NULL, *step = NULL;
    tutti_status status = while_gradient_start(&b);
    if (status == TUTTI_OK && b.floats > 0) {
        status = take_inputs(&b);
        if (status == TUTTI_OK)
            status = make_condition(&b, &condition);
        if (status == TUTTI_OK)
            status = make_step(&b, &step);
        if (status == TUTTI_OK)
            status = while_gradient_build(&b, condition, step);
    }
    tutti_graph_destroy(condition);
    tutti_graph_destroy(step);
    tutti__arena_free(&b.arena);
    return status;
}
