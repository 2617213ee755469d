/* while.c: a loop over a sub-graph. */
#include "base/container.h"
#include "ops/control/control.h"
#include "ops/random/random.h"

static tutti_status while_infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__infer_loop(node));
    if (node->output_count != RULE_INT(node, "loop_count"))
        return RULE_FAIL(node, TUTTI_INVALID, "has %d outputs for %lld loop variables",
                         node->output_count, (long long)RULE_INT(node, "loop_count"));
    return TUTTI_OK;
}

/* Runs the loop again with its history kept, then backwards over the history. */
static tutti_status while_gradient(tutti_gradient_call *node)
{
    int loop_count = (int)RULE_INT(node, "loop_count");
    tutti_attr attrs[] = {
        *tutti_attr_find(node->attrs, node->attr_count, "cond_graph"),
        *tutti_attr_find(node->attrs, node->attr_count, "body_graph"),
        TUTTI_INT("loop_count", loop_count),
        TUTTI_INT("outputs", 3 * loop_count + 1),
    };
    tutti_sym kept = tutti_apply_op(node->graph, "while_history", node->input_count, node->inputs,
                                    TUTTI_COUNT(attrs), attrs);
    TUTTI_TRY(tutti_graph_check(node->graph));
    tutti_sym *history =
        tutti__arena_array(&node->graph->arena, 2 * (size_t)loop_count, sizeof *history);
    if (!history)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the gradient of a loop");
    for (int i = 0; i < 2 * loop_count; i++)
        history[i] = tutti_sym_output(kept, loop_count + 1 + i);
    tutti_loop_gradient loop = {.trips = tutti_sym_output(kept, loop_count),
                                .history = history,
                                .shapes = history + loop_count};
    return tutti__gradient_loop(node, &loop);
}

extern const tutti_op tutti_op_while;

/* What the builder holds. Inputs: variables, then captures; one place more for the counter. */
typedef struct loop_builder {
    tutti_graph *graph;
    tutti_body_fn *condition, *step;
    void *context;
    int variables, captures;
    tutti_sym *inputs;
    tutti_type *types;            /* of the parameters: unknown where rounds may differ */
    tutti_control_body bodies[2]; /* condition, step */
    char label[512];
} loop_builder;

/* Where the step gives an unknown dimension, the loop variable has one too. */
static bool relax(loop_builder *b)
{
    bool changed = false;
    for (int i = 0; i < b->variables; i++) {
        const tutti_type *result = tutti__edge_type(b->bodies[1].graph->results.data[i]);
        for (int axis = 0; result->rank == b->types[i].rank && axis < result->rank; axis++)
            if (result->dims[axis] == TUTTI_ANY && b->types[i].dims[axis] != TUTTI_ANY) {
                b->types[i].dims[axis] = TUTTI_ANY;
                changed = true;
            }
    }
    return changed;
}

static tutti_status build_step(loop_builder *b)
{
    int args = b->variables + b->captures;
    TUTTI_TRY(tutti__body_label(b->graph, "while", "step", b->label, sizeof b->label));
    do {
        tutti_graph_destroy(b->bodies[1].graph);
        b->bodies[1].graph = NULL;
        TUTTI_TRY(tutti__body_build(b->label, b->step, b->context, args, b->types, b->variables,
                                    &b->bodies[1]));
    } while (relax(b));
    return TUTTI_OK;
}

static tutti_status build_condition(loop_builder *b)
{
    char label[512];
    TUTTI_TRY(tutti__body_label(b->graph, "while", "condition", label, sizeof label));
    return tutti__body_build(label, b->condition, b->context, b->variables + b->captures, b->types,
                             1, &b->bodies[0]);
}

/* The counter becomes a loop variable that a large number, the loop's own, is added to in every
 * round: rounds differ, and so do those of loops inside loops. */
static tutti_status thread_counter(loop_builder *b)
{
    tutti_graph *step = b->bodies[1].graph;
    for (int i = 0; i < 2; i++)
        tutti__body_move_counter(&b->bodies[i], b->variables);
    for (int i = b->variables + b->captures; i > b->variables; i--)
        b->inputs[i] = b->inputs[i - 1];
    b->inputs[b->variables] = tutti__value_of(tutti__random_counter(b->graph));
    double stride = (double)(tutti__hash_string(0, b->label) >> 20 | 1);
    tutti_sym next =
        tutti_add(tutti__sym(b->bodies[1].counter, 0), tutti_scalar(step, TUTTI_I64, stride));
    return tutti__subgraph_results(step, 1, &next);
}

static tutti_status while_build(loop_builder *b, tutti_sym *ret)
{
    bool draws;
    tutti_status status = build_step(b);
    if (status != TUTTI_OK)
        return tutti__error_prefix(status, "while, step");
    status = build_condition(b);
    if (status != TUTTI_OK)
        return tutti__error_prefix(status, "while, condition");
    draws = b->bodies[0].draws || b->bodies[1].draws;
    for (int i = 0; i < 2 && !draws; i++)
        TUTTI_TRY(tutti__body_drop_counter(&b->bodies[i]));
    if (draws)
        TUTTI_TRY(thread_counter(b));
    tutti_attr attrs[] = {TUTTI_GRAPH_ATTR("cond_graph", b->bodies[0].graph),
                          TUTTI_GRAPH_ATTR("body_graph", b->bodies[1].graph),
                          TUTTI_INT("loop_count", b->variables + draws)};
    *ret = tutti__build(b->graph, &tutti_op_while, NULL, b->variables + b->captures + draws,
                        b->inputs, 3, attrs);
    return TUTTI_OK;
}

/* Inputs and their types. */
static void take_inputs(loop_builder *b, const tutti_sym *variables, const tutti_sym *captures)
{
    for (int i = 0; i < b->variables + b->captures; i++) {
        b->inputs[i] =
            tutti__value_of(i < b->variables ? variables[i] : captures[i - b->variables]);
        b->types[i] = tutti_sym_type(b->inputs[i]);
    }
}

static tutti_status check_lists(const tutti_graph *graph, const loop_builder *b,
                                const tutti_sym *variables, const tutti_sym *captures)
{
    if (b->variables < 1)
        return tutti_fail(TUTTI_INVALID,
                          "while: %d loop variables are given; it takes at least 1, what the "
                          "condition looks at",
                          b->variables);
    TUTTI_TRY(tutti__body_takes(graph, "while", b->variables, variables));
    return tutti__body_takes(graph, "while", b->captures, captures);
}

tutti_sym(tutti_while)(tutti_body_fn *condition, tutti_body_fn *step, void *context,
                       int variable_count, const tutti_sym *variables, int capture_count,
                       const tutti_sym *captures, tutti_sym *ret_results)
{
    tutti_arena arena = {0};
    tutti_sym loop = TUTTI_POISON;
    for (int i = 0; i < variable_count && ret_results; i++)
        ret_results[i] = TUTTI_POISON;
    tutti_graph *graph = tutti__graph_of(variable_count, variables);
    loop_builder b = {.graph = graph ? graph : tutti__graph_of(capture_count, captures),
                      .condition = condition,
                      .step = step,
                      .context = context,
                      .variables = variable_count,
                      .captures = capture_count};
    if (b.graph && tutti_graph_check(b.graph) != TUTTI_OK)
        return TUTTI_POISON; /* poison passes on */
    if (!b.graph && variable_count > 0 && variables)
        return tutti__poison_of("while", variable_count, variables);
    tutti_status status = check_lists(b.graph, &b, variables, captures);
    if (status != TUTTI_OK || !variables) /* a list that is NULL was refused */
        return tutti__poison(b.graph, status, "%s", tutti_error_message());
    size_t count = (size_t)variable_count + (size_t)capture_count + 1;
    b.inputs = tutti__arena_array(&arena, count, sizeof *b.inputs);
    b.types = tutti__arena_array(&arena, count, sizeof *b.types);
    if (!b.inputs || !b.types)
        tutti__poison(b.graph, TUTTI_NO_MEMORY, "while: no memory");
    else {
        take_inputs(&b, variables, captures);
        status = while_build(&b, &loop);
        if (status != TUTTI_OK)
            tutti__poison(b.graph, status, "%s", tutti_error_message());
    }
    for (int i = 0; tutti_sym_ok(loop) && ret_results && i < variable_count; i++)
        ret_results[i] = tutti_sym_output(loop, i);
    tutti_graph_destroy(b.bodies[0].graph);
    tutti_graph_destroy(b.bodies[1].graph);
    tutti__arena_free(&arena);
    return loop;
}

static const tutti_attr_spec attrs[] = {
    {"cond_graph", TUTTI_ATTR_GRAPH, NULL},
    {"body_graph", TUTTI_ATTR_GRAPH, NULL},
    {"loop_count", TUTTI_ATTR_INT,
     NULL}, /* inputs that are loop variables; the others are captures */
    {0},
};

const tutti_op tutti_op_while = {
    .struct_size = sizeof(tutti_op),
    .name = "while",
    .version = 1,
    .doc =
        "while(xs..., captures...): while cond_graph(xs, captures): xs = body_graph(xs, captures); ys = xs",
    .category = "control",
    .min_inputs = 1,
    .max_inputs = -1,
    .outputs = -1,
    .flags = TUTTI_OP_CONTROL | TUTTI_OP_DYNAMIC,
    .attrs = attrs,
    .infer = while_infer,
    .gradient = while_gradient,
};
