/* flow_find.c: lowered loops and branches as bodies: what goes in, what comes out. */
#include "bridge/graphdef/flow.h"

#include <stdio.h>
#include <string.h>

#define STEPS 20000000 /* of searches, in all */

static tutti_status push_name(tutti_graphdef_study *s, tutti_onnx_names *list, const char *name)
{
    const char **slot = ONNX_PUSH(&s->def->arena, list);
    if (!slot)
        return tutti__graphdef_no_memory(s->def);
    *slot = name;
    return TUTTI_OK;
}

static tutti_status flow_find_bind(tutti_graphdef_study *s, tutti_graphdef_body *body,
                                   const tutti_graphdef_node *node, int output, int arg)
{
    tutti_graphdef_binding *slot = ONNX_PUSH(&s->def->arena, &body->bindings);
    if (!slot)
        return tutti__graphdef_no_memory(s->def);
    *slot = (tutti_graphdef_binding){node, output, arg};
    return TUTTI_OK;
}

static tutti_status end_at(tutti_graphdef_study *s, tutti_graphdef_flow *flow,
                           tutti_graphdef_node *node, int result)
{
    tutti_graphdef_end *slot = ONNX_PUSH(&s->def->arena, &flow->ends);
    if (!slot)
        return tutti__graphdef_no_memory(s->def);
    *slot = (tutti_graphdef_end){node, result};
    node->flow = flow;
    return TUTTI_OK;
}

static tutti_graphdef_flow *new_flow(tutti_graphdef_study *s)
{
    tutti_graphdef_flow *flow = tutti__arena_take(&s->def->arena, sizeof *flow);
    if (flow)
        flow->bodies[0].graph = flow->bodies[1].graph = s->graph;
    return flow;
}

/* ---- loops ---- */

/* A loop variable: Merge(Enter, NextIteration). Its number is kept as the Merge's stamp. */
static tutti_status add_variable(tutti_graphdef_study *s, tutti_graphdef_node *merge)
{
    tutti_graphdef_frame *frame = tutti__graphdef_frame_of(s, merge);
    int next = tutti__graphdef_next_input(s, merge), output;
    if (!frame || next < 0)
        return TUTTI_OK;
    if (!frame->flow && !(frame->flow = new_flow(s)))
        return tutti__graphdef_no_memory(s->def);
    tutti_graphdef_flow *flow = frame->flow;
    const tutti_graphdef_node *enter = tutti__graphdef_taken(s, merge, (size_t)(1 - next), &output);
    const tutti_graphdef_node *step = tutti__graphdef_taken(s, merge, (size_t)next, &output);
    if (enter->inputs.count == 0 || step->inputs.count == 0 || flow->variables >= GRAPHDEF_VALUES)
        return tutti_fail(TUTTI_CORRUPT,
                          "%s: loop variable '%s' has no value, or there are more "
                          "than %d of them",
                          s->def->file, merge->name, GRAPHDEF_VALUES);
    int variable = flow->variables++;
    flow->loop = true;
    s->stamps[tutti__graphdef_number(s, merge)] = variable;
    s->stamps[tutti__graphdef_number(s, enter)] = 1; /* it is no constant of the loop */
    TUTTI_TRY(push_name(s, &flow->waits, enter->inputs.items[0]));
    TUTTI_TRY(push_name(s, &flow->bodies[1].results, step->inputs.items[0]));
    TUTTI_TRY(flow_find_bind(s, &flow->bodies[0], merge, 0, variable));
    return flow_find_bind(s, &flow->bodies[1], merge, 0, variable);
}

/* Enter nodes that are no variable's go into both bodies as they are. */
static tutti_status add_constant(tutti_graphdef_study *s, tutti_graphdef_node *enter)
{
    tutti_graphdef_frame *frame = tutti__graphdef_frame_of(s, enter);
    if (!frame || !frame->flow || s->stamps[tutti__graphdef_number(s, enter)])
        return TUTTI_OK;
    int arg = (int)frame->flow->waits.count;
    if (enter->inputs.count == 0)
        return tutti_fail(TUTTI_CORRUPT, "%s: Enter '%s' has no input", s->def->file, enter->name);
    TUTTI_TRY(push_name(s, &frame->flow->waits, enter->inputs.items[0]));
    TUTTI_TRY(flow_find_bind(s, &frame->flow->bodies[0], enter, 0, arg));
    return flow_find_bind(s, &frame->flow->bodies[1], enter, 0, arg);
}

/* Switch(Merge, LoopCond): output 1 goes into the body. */
static tutti_status add_switch(tutti_graphdef_study *s, tutti_graphdef_node *node)
{
    int output;
    tutti_graphdef_frame *frame = tutti__graphdef_frame_of(s, node);
    const tutti_graphdef_node *merge = tutti__graphdef_taken(s, node, 0, &output);
    const tutti_graphdef_node *decider = tutti__graphdef_decider(s, node, &output);
    if (!frame || !frame->flow || !merge || !decider)
        return TUTTI_OK;
    tutti_onnx_names *results = &frame->flow->bodies[0].results;
    if (results->count == 0)
        TUTTI_TRY(push_name(s, results, decider->name));
    else if (strcmp(results->items[0], decider->name) != 0)
        return tutti_fail(TUTTI_CORRUPT, "%s: a loop has two conditions, '%s' and '%s'",
                          s->def->file, results->items[0], decider->name);
    return flow_find_bind(s, &frame->flow->bodies[1], node, 1,
                          s->stamps[tutti__graphdef_number(s, merge)]);
}

/* Exit(Switch(Merge)). */
static tutti_status add_exit(tutti_graphdef_study *s, tutti_graphdef_node *node)
{
    int output;
    tutti_graphdef_frame *frame = tutti__graphdef_frame_of(s, node);
    const tutti_graphdef_node *from = tutti__graphdef_taken(s, node, 0, &output);
    const tutti_graphdef_node *merge = from ? tutti__graphdef_taken(s, from, 0, &output) : NULL;
    if (!frame || !frame->flow || !merge || frame->flow->bodies[0].results.count != 1)
        return TUTTI_OK;
    return end_at(s, frame->flow, node, s->stamps[tutti__graphdef_number(s, merge)]);
}

/* ---- branches ---- */

/* Merges that one predicate decides, stand in the same places, and do not wait for each other, are
 * results of one branch. */
static tutti_status add_merge(tutti_graphdef_study *s, tutti_graphdef_node *merge)
{
    tutti_graphdef_place place;
    char key[96];
    uint64_t where = 0;
    size_t number = tutti__graphdef_number(s, merge);
    const tutti_graphdef_context *context = s->contexts[number];
    int yes =
        tutti__graphdef_next_input(s, merge) < 0 ? tutti__graphdef_joined(s, merge, &place) : -1;
    if (yes < 0)
        return TUTTI_OK;
    for (int i = 0; context && i < context->count; i++)
        where += tutti__hash_mix((uint64_t)context->places[i].side * 8 +
                                     (uint64_t)context->places[i].output,
                                 (uint64_t)(uintptr_t)context->places[i].node);
    snprintf(key, sizeof key, "%p %d %d %llx", (const void *)place.node, place.output,
             s->levels[number], (unsigned long long)where);
    tutti_graphdef_flow *flow = tutti__map_get(&s->branches, key);
    if (!flow) {
        if (!(flow = new_flow(s)))
            return tutti__graphdef_no_memory(s->def);
        TUTTI_TRY(tutti__map_set(&s->branches, key, flow));
        const char *pred =
            tutti__arena_format(&s->def->arena, "%s:%d", place.node->name, place.output);
        if (!pred)
            return tutti__graphdef_no_memory(s->def);
        TUTTI_TRY(push_name(s, &flow->waits, pred));
    }
    int result = (int)flow->bodies[0].results.count;
    TUTTI_TRY(push_name(s, &flow->bodies[0].results, merge->inputs.items[yes]));
    TUTTI_TRY(push_name(s, &flow->bodies[1].results, merge->inputs.items[1 - yes]));
    return end_at(s, flow, merge, result);
}

typedef TUTTI_VEC(const tutti_graphdef_node *) nodes;

/* A node that a branch takes from around it: true when it was one. */
static tutti_status capture(tutti_graphdef_study *s, tutti_graphdef_flow *flow,
                            const tutti_graphdef_node *node, int output, bool *ret_done)
{
    const tutti_graphdef_node *merge = flow->ends.items[0].node;
    const tutti_graphdef_context *context = s->contexts[tutti__graphdef_number(s, merge)];
    const tutti_graphdef_frame *frame = tutti__graphdef_frame_of(s, node);
    tutti_graphdef_place place = {0};
    int arg = (int)flow->waits.count - 1, decides = 0;
    const char *input = NULL;
    tutti__graphdef_joined(s, merge, &place);
    bool mine = tutti__graphdef_is(node, "Switch") &&
                tutti__graphdef_decider(s, node, &decides) == place.node && decides == place.output;
    *ret_done = true;
    if (mine) {
        TUTTI_TRY(push_name(s, &flow->waits, node->inputs.items[0]));
        TUTTI_TRY(flow_find_bind(s, &flow->bodies[0], node, 1, arg));
        return flow_find_bind(s, &flow->bodies[1], node, 0, arg);
    }
    *ret_done = tutti__graphdef_is(node, "Placeholder") || tutti__graphdef_is(node, "_Arg") ||
                (frame && !tutti__graphdef_is(node, "Exit") &&
                 tutti__graphdef_stands_in(context, (tutti_graphdef_place){frame->first, 0, 2}));
    if (!*ret_done)
        return TUTTI_OK;
    input = tutti__arena_format(&s->def->arena, "%s:%d", node->name, output);
    if (!input)
        return tutti__graphdef_no_memory(s->def);
    TUTTI_TRY(push_name(s, &flow->waits, input));
    TUTTI_TRY(flow_find_bind(s, &flow->bodies[0], node, output, arg));
    return flow_find_bind(s, &flow->bodies[1], node, output, arg);
}

static tutti_status flow_find_visit(tutti_graphdef_study *s, const char *input,
                                    tutti_graphdef_flow *flow, nodes *stack)
{
    int output;
    bool done;
    tutti_graphdef_node *node = tutti__graphdef_find(s->graph, input, &output);
    if (++s->steps > STEPS)
        return tutti_fail(TUTTI_TOO_LARGE, "%s: its branches have too many nodes", s->def->file);
    if (!node || input[0] == '^' || s->stamps[tutti__graphdef_number(s, node)] == s->stamp)
        return TUTTI_OK;
    s->stamps[tutti__graphdef_number(s, node)] = s->stamp;
    TUTTI_TRY(capture(s, flow, node, output, &done));
    if (flow->waits.count > GRAPHDEF_VALUES)
        return tutti_fail(TUTTI_TOO_LARGE, "%s: branch '%s' takes more than %d values",
                          s->def->file, flow->ends.items[0].node->name, GRAPHDEF_VALUES);
    return done || TUTTI_VEC_PUSH(stack, node) ? TUTTI_OK : tutti__graphdef_no_memory(s->def);
}

/* What the nodes of a branch take through Switches of its own. */
static tutti_status find_captures(tutti_graphdef_study *s, tutti_graphdef_flow *flow, nodes *stack)
{
    s->stamp++;
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < flow->bodies[side].results.count; i++)
            TUTTI_TRY(flow_find_visit(s, flow->bodies[side].results.items[i], flow, stack));
    while (stack->count > 0) {
        const tutti_graphdef_node *node = stack->data[--stack->count];
        for (size_t i = 0; i < node->inputs.count; i++)
            TUTTI_TRY(flow_find_visit(s, node->inputs.items[i], flow, stack));
    }
    return TUTTI_OK;
}

static tutti_status each(tutti_graphdef_study *s, const char *op,
                         tutti_status (*add)(tutti_graphdef_study *, tutti_graphdef_node *))
{
    for (size_t i = 0; i < s->graph->nodes.count; i++)
        if (tutti__graphdef_is(&s->graph->nodes.items[i], op))
            TUTTI_TRY(add(s, &s->graph->nodes.items[i]));
    return TUTTI_OK;
}

tutti_status tutti__graphdef_make_flows(tutti_graphdef_study *s)
{
    nodes stack = {0};
    tutti_status status = TUTTI_OK;
    TUTTI_TRY(each(s, "Merge", add_variable));
    TUTTI_TRY(each(s, "Enter", add_constant));
    TUTTI_TRY(each(s, "Switch", add_switch));
    TUTTI_TRY(each(s, "Exit", add_exit));
    TUTTI_TRY(each(s, "Merge", add_merge));
    s->stamp = GRAPHDEF_VALUES; /* other than all that stamps hold so far */
    for (size_t i = 0; status == TUTTI_OK && i < s->branches.count; i++)
        status = find_captures(s, s->branches.entries[i].value, &stack);
    TUTTI_VEC_FREE(&stack);
    return status;
}
