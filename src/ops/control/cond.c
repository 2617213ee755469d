/* cond.c: one of two sub-graphs. */
#include <stdlib.h>

#include "graph/autodiff.h"
#include "ops/control/control.h"
#include "ops/random/random.h"

static tutti_graph *branch_of(const tutti_attr *attrs, int count, bool yes)
{
    return tutti__attr_graph(attrs, count, yes ? "then_graph" : "else_graph");
}

/* Result i of both branches: one type; dimensions that differ become unknown. */
static tutti_status cond_join(const tutti_infer *node, int i, const tutti_type *yes,
                              const tutti_type *no, tutti_type *ret)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    if (yes->handle || no->handle || yes->dtype != no->dtype || yes->rank != no->rank)
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "result %d is %s in the then branch, %s in the else branch; element types and "
            "ranks must agree",
            i, tutti_type_text(yes, a), tutti_type_text(no, b));
    *ret = *yes;
    for (int axis = 0; axis < yes->rank; axis++)
        if (no->dims[axis] != yes->dims[axis])
            ret->dims[axis] = TUTTI_ANY;
    return TUTTI_OK;
}

static tutti_status cond_infer(tutti_infer *node)
{
    const tutti_graph *yes = branch_of(node->attrs, node->attr_count, true);
    const tutti_graph *no = branch_of(node->attrs, node->attr_count, false);
    int args = node->input_count - 1;
    TUTTI_TRY(tutti__need_scalar(node, 0, TUTTI_BOOL, "the condition"));
    TUTTI_TRY(tutti__need_parameters(node, yes, "then branch", args, node->inputs + 1));
    TUTTI_TRY(tutti__need_parameters(node, no, "else branch", args, node->inputs + 1));
    if (yes->results.count != no->results.count || (int)yes->results.count != node->output_count)
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "the then branch has %zu results, the else branch %zu, the node %d outputs",
            yes->results.count, no->results.count, node->output_count);
    for (int i = 0; i < node->output_count; i++)
        TUTTI_TRY(cond_join(node, i, tutti__edge_type(yes->results.data[i]),
                            tutti__edge_type(no->results.data[i]), &node->outputs[i]));
    return TUTTI_OK;
}

extern const tutti_op tutti_op_cond;

/* ---- gradient: a cond over the branches' gradients, which compute the branch again ---- */

/* Arguments of a gradient branch: the cond's own, then the gradients of the results that have one.
 */
typedef struct branch_gradient {
    const tutti_gradient_call *node;
    int args, given, wanted;
    int *given_at; /* result of each gradient that comes */
    tutti_type *types;
    tutti_sym *syms; /* scratch: params, results, ys, xs, grads */
} branch_gradient;

static tutti_status differentiate(const branch_gradient *b, tutti_graph *graph,
                                  const tutti_graph *branch, const tutti_sym *params)
{
    int outputs = b->node->output_count;
    tutti_sym *results = b->syms + b->args + b->given, *ys = results + outputs, *xs = ys + b->given,
              *grads = xs + b->args;
    TUTTI_TRY(tutti__inline(graph, branch, b->args, params, results));
    for (int i = 0; i < b->given; i++)
        ys[i] = results[b->given_at[i]];
    int count = 0;
    for (int i = 0; i < b->args; i++)
        if (b->node->wanted[1 + i])
            xs[count++] = params[i];
    TUTTI_TRY(tutti__gradients(graph, b->given, ys, params + b->args, count, xs, grads, NULL));
    for (int i = 0; i < count; i++)
        if (!tutti_sym_ok(grads[i]))
            grads[i] = tutti_zeros_like(xs[i]);
    return tutti__subgraph_results(graph, count, grads);
}

static tutti_status gradient_branch(const branch_gradient *b, bool yes, tutti_graph **ret_graph)
{
    tutti_graph *graph;
    TUTTI_TRY(tutti__subgraph_create(b->args + b->given, b->types, &graph, b->syms));
    tutti_status status =
        differentiate(b, graph, branch_of(b->node->attrs, b->node->attr_count, yes), b->syms);
    if (status != TUTTI_OK)
        tutti_graph_destroy(graph);
    else
        *ret_graph = graph;
    return status;
}

/* Builds the gradient's cond and hands its outputs out. */
static tutti_status give(tutti_gradient_call *node, const branch_gradient *b, tutti_graph *yes,
                         tutti_graph *no)
{
    tutti_sym *inputs = b->syms; /* its former contents are of no more use */
    for (int i = 0; i <= b->args; i++)
        inputs[i] = node->inputs[i];
    for (int i = 0; i < b->given; i++)
        inputs[1 + b->args + i] = node->output_grads[b->given_at[i]];
    tutti_attr attrs[] = {TUTTI_GRAPH_ATTR("then_graph", yes), TUTTI_GRAPH_ATTR("else_graph", no)};
    tutti_sym made =
        tutti__build(node->graph, &tutti_op_cond, NULL, 1 + b->args + b->given, inputs, 2, attrs);
    TUTTI_TRY(tutti_graph_check(node->graph));
    for (int i = 0, at = 0; i < b->args; i++)
        if (node->wanted[1 + i])
            node->input_grads[1 + i] = tutti_sym_output(made, at++);
    return TUTTI_OK;
}

static tutti_status gradient_with(tutti_gradient_call *node, branch_gradient *b)
{
    tutti_graph *yes, *no;
    for (int i = 0; i < b->args; i++) {
        b->types[i] = tutti_sym_type(node->inputs[1 + i]);
        b->wanted += node->wanted[1 + i];
    }
    for (int i = 0; i < node->output_count; i++)
        if (tutti_sym_ok(node->output_grads[i])) {
            b->types[b->args + b->given] = tutti_sym_type(node->output_grads[i]);
            b->given_at[b->given++] = i;
        }
    if (b->wanted == 0 || b->given == 0)
        return TUTTI_OK;
    TUTTI_TRY(gradient_branch(b, true, &yes));
    tutti_status status = gradient_branch(b, false, &no);
    if (status == TUTTI_OK) {
        status = give(node, b, yes, no);
        tutti_graph_destroy(no);
    }
    tutti_graph_destroy(yes);
    return status;
}

static tutti_status cond_gradient(tutti_gradient_call *node)
{
    size_t args = (size_t)node->input_count - 1, outputs = (size_t)node->output_count;
    tutti_arena arena = {0};
    branch_gradient b = {.node = node, .args = (int)args};
    b.given_at = tutti__arena_array(&arena, outputs + 1, sizeof *b.given_at);
    b.types = tutti__arena_array(&arena, args + outputs + 1, sizeof *b.types);
    b.syms = tutti__arena_array(&arena, 3 * args + 3 * outputs + 2, sizeof *b.syms);
    tutti_status status = b.given_at && b.types && b.syms
                              ? gradient_with(node, &b)
                              : tutti_fail(TUTTI_NO_MEMORY, "no memory for the gradient of a cond");
    tutti__arena_free(&arena);
    return status;
}

/* ---- builder ---- */

static tutti_status build_branches(tutti_graph *graph, tutti_body_fn *const fns[2], void *context,
                                   int arg_count, const tutti_type *types, int result_count,
                                   tutti_control_body ret_bodies[2])
{
    static const char *const parts[] = {"then", "else"};
    for (int i = 0; i < 2; i++) {
        char label[512];
        tutti_status status = tutti__body_label(graph, "cond", parts[i], label, sizeof label);
        if (status == TUTTI_OK)
            status = tutti__body_build(label, fns[i], context, arg_count, types, result_count,
                                       &ret_bodies[i]);
        if (status != TUTTI_OK)
            return tutti__error_prefix(status, "cond, %s branch", parts[i]);
    }
    return TUTTI_OK;
}

/* inputs: room for pred, the arguments and the counter. */
static tutti_status cond_build(tutti_graph *graph, tutti_control_body *bodies, int arg_count,
                               tutti_sym *inputs, tutti_sym *ret)
{
    bool draws = bodies[0].draws || bodies[1].draws;
    for (int i = 0; i < 2 && !draws; i++)
        TUTTI_TRY(tutti__body_drop_counter(&bodies[i]));
    if (draws)
        inputs[1 + arg_count] = tutti__value_of(tutti__random_counter(graph));
    tutti_attr attrs[] = {TUTTI_GRAPH_ATTR("then_graph", bodies[0].graph),
                          TUTTI_GRAPH_ATTR("else_graph", bodies[1].graph)};
    *ret = tutti__build(graph, &tutti_op_cond, NULL, 1 + arg_count + draws, inputs, 2, attrs);
    return TUTTI_OK;
}

tutti_sym(tutti_cond)(tutti_sym pred, tutti_body_fn *then_fn, tutti_body_fn *else_fn, void *context,
                      int arg_count, const tutti_sym *args, int result_count,
                      tutti_sym *ret_results)
{
    tutti_graph *graph = tutti_sym_ok(pred) ? pred.node->graph : tutti__graph_of(arg_count, args);
    tutti_body_fn *const fns[] = {then_fn, else_fn};
    tutti_control_body bodies[2] = {0};
    tutti_arena arena = {0};
    tutti_sym cond = TUTTI_POISON;
    for (int i = 0; i < result_count && ret_results; i++)
        ret_results[i] = TUTTI_POISON;
    if (!graph)
        return tutti__poison_of("cond", 1, &pred);
    if (tutti_graph_check(graph) != TUTTI_OK)
        return TUTTI_POISON; /* poison passes on */
    tutti_status status = tutti__sym_usable(graph, pred, "cond: the condition", -1);
    if (status == TUTTI_OK)
        status = tutti__body_takes(graph, "cond", arg_count, args);
    if (status != TUTTI_OK)
        return tutti__poison(graph, status, "%s", tutti_error_message());
    tutti_sym *inputs = tutti__arena_array(&arena, (size_t)arg_count + 2, sizeof *inputs);
    tutti_type *types = tutti__arena_array(&arena, (size_t)arg_count + 1, sizeof *types);
    if (!inputs || !types) {
        tutti__arena_free(&arena);
        return tutti__poison(graph, TUTTI_NO_MEMORY, "cond: no memory");
    }
    inputs[0] = tutti__value_of(pred);
    for (int i = 0; i < arg_count; i++) {
        inputs[1 + i] = tutti__value_of(args[i]);
        types[i] = tutti_sym_type(inputs[1 + i]);
    }
    status = build_branches(graph, fns, context, arg_count, types, result_count, bodies);
    if (status == TUTTI_OK)
        status = cond_build(graph, bodies, arg_count, inputs, &cond);
    if (status != TUTTI_OK)
        tutti__poison(graph, status, "%s", tutti_error_message());
    for (int i = 0; tutti_sym_ok(cond) && ret_results && i < result_count; i++)
        ret_results[i] = tutti_sym_output(cond, i);
    tutti_graph_destroy(bodies[0].graph);
    tutti_graph_destroy(bodies[1].graph);
    tutti__arena_free(&arena);
    return cond;
}

static const tutti_attr_spec attrs[] = {
    {"then_graph", TUTTI_ATTR_GRAPH, NULL},
    {"else_graph", TUTTI_ATTR_GRAPH, NULL},
    {0},
};

const tutti_op tutti_op_cond = {
    .struct_size = sizeof(tutti_op),
    .name = "cond",
    .version = 1,
    .doc = "cond(p, args...): ys = then_graph(args) if p, else else_graph(args)",
    .category = "control",
    .min_inputs = 1,
    .max_inputs = -1,
    .outputs = -1,
    .flags = TUTTI_OP_CONTROL | TUTTI_OP_DYNAMIC,
    .attrs = attrs,
    .infer = cond_infer,
    .gradient = cond_gradient,
};
