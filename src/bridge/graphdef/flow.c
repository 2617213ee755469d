/* flow.c: lowered control flow: which loops and branches nodes stand in.
 *
 * A loop (a frame) is Enter → Merge → Switch → body → NextIteration → Merge for each variable;
 * LoopCond decides its Switches, whose output 0 goes to Exit. A branch is Switch → nodes → Merge. A
 * node stands in what its inputs stand in; Enter and Switch add a place, Exit and Merge leave one.
 */
#include "bridge/graphdef/flow.h"

#include <string.h>

bool tutti__graphdef_is(const tutti_graphdef_node *node, const char *op)
{
    return node && strcmp(node->op, op) == 0;
}

tutti_graphdef_node *tutti__graphdef_taken(const tutti_graphdef_study *s,
                                           const tutti_graphdef_node *node, size_t i,
                                           int *ret_output)
{
    *ret_output = 0;
    return node && i < node->inputs.count
               ? tutti__graphdef_find(s->graph, node->inputs.items[i], ret_output)
               : NULL;
}

int tutti__graphdef_next_input(const tutti_graphdef_study *s, const tutti_graphdef_node *node)
{
    int output;
    for (size_t i = 0; tutti__graphdef_is(node, "Merge") && i < 2; i++)
        if (tutti__graphdef_is(tutti__graphdef_taken(s, node, i, &output), "NextIteration"))
            return (int)i;
    return -1;
}

const tutti_graphdef_node *tutti__graphdef_decider(const tutti_graphdef_study *s,
                                                   const tutti_graphdef_node *node, int *ret_output)
{
    node = tutti__graphdef_taken(s, node, 1, ret_output);
    for (int i = 0; i < 64 && tutti__graphdef_is(node, "Identity"); i++)
        node = tutti__graphdef_taken(s, node, 0, ret_output);
    return node;
}

static bool is_loop_switch(const tutti_graphdef_study *s, const tutti_graphdef_node *node)
{
    int output;
    return tutti__graphdef_is(node, "Switch") &&
           tutti__graphdef_is(tutti__graphdef_decider(s, node, &output), "LoopCond");
}

tutti_graphdef_frame *tutti__graphdef_frame_of(const tutti_graphdef_study *s,
                                               const tutti_graphdef_node *node)
{
    int output;
    if (tutti__graphdef_is(node, "Exit"))
        node = tutti__graphdef_taken(s, node, 0, &output);
    if (tutti__graphdef_is(node, "Switch"))
        node = is_loop_switch(s, node) ? tutti__graphdef_taken(s, node, 0, &output) : NULL;
    int next = tutti__graphdef_next_input(s, node);
    if (next >= 0)
        node = tutti__graphdef_taken(s, node, (size_t)(1 - next), &output);
    const tutti_graphdef_attr *name =
        tutti__graphdef_is(node, "Enter") ? tutti__graphdef_attr(node, "frame_name") : NULL;
    return name ? tutti__map_get(&s->frames, name->s) : NULL;
}

/* ---- contexts ---- */

static bool same_place(tutti_graphdef_place a, tutti_graphdef_place b)
{
    return a.node == b.node && a.output == b.output && a.side == b.side;
}

bool tutti__graphdef_stands_in(const tutti_graphdef_context *context, tutti_graphdef_place place)
{
    for (int i = 0; context && i < context->count; i++)
        if (same_place(context->places[i], place))
            return true;
    return false;
}

static tutti_status new_context(tutti_graphdef_study *s, const tutti_graphdef_context *from,
                                tutti_graphdef_context **ret)
{
    int count = from ? from->count : 0;
    tutti_graphdef_context *made = tutti__arena_take(
        &s->def->arena, sizeof *made + sizeof made->places[0] * (size_t)(count + 1));
    if (!made) {
        tutti__graphdef_no_memory(s->def);
        return TUTTI_NO_MEMORY;
    }
    if (count >= FLOW_CONTEXT)
        return tutti_fail(TUTTI_TOO_LARGE, "%s: more than %d loops and branches in each other",
                          s->def->file, FLOW_CONTEXT);
    made->count = count;
    if (from)
        memcpy(made->places, from->places, (size_t)count * sizeof made->places[0]);
    *ret = made;
    return TUTTI_OK;
}

static tutti_status with_place(tutti_graphdef_study *s, tutti_graphdef_place place,
                               const tutti_graphdef_context **context)
{
    tutti_graphdef_context *made;
    if (tutti__graphdef_stands_in(*context, place))
        return TUTTI_OK;
    TUTTI_TRY(new_context(s, *context, &made));
    made->places[made->count++] = place;
    *context = made;
    return TUTTI_OK;
}

static tutti_status joined_with(tutti_graphdef_study *s, const tutti_graphdef_context *other,
                                const tutti_graphdef_context **context)
{
    if (!*context || *context == other) {
        *context = other;
        return TUTTI_OK;
    }
    for (int i = 0; other && i < other->count; i++)
        TUTTI_TRY(with_place(s, other->places[i], context));
    return TUTTI_OK;
}

/* Without what `leaves` says. */
static tutti_status without(tutti_graphdef_study *s, tutti_graphdef_place place, bool both_sides,
                            const tutti_graphdef_context **context)
{
    tutti_graphdef_context *made;
    if (!*context)
        return TUTTI_OK;
    TUTTI_TRY(new_context(s, *context, &made));
    made->count = 0;
    for (int i = 0; i < (*context)->count; i++) {
        tutti_graphdef_place at = (*context)->places[i];
        if (at.node != place.node || at.output != place.output ||
            (!both_sides && at.side != place.side))
            made->places[made->count++] = at;
    }
    *context = made->count > 0 ? made : NULL;
    return TUTTI_OK;
}

tutti_status tutti__graphdef_context_in(tutti_graphdef_study *s, const tutti_graphdef_node *node,
                                        size_t i, const tutti_graphdef_context **ret)
{
    int output, decides = 0;
    const tutti_graphdef_node *from = tutti__graphdef_taken(s, node, i, &output);
    *ret = from ? s->contexts[tutti__graphdef_number(s, from)] : NULL;
    if (!tutti__graphdef_is(from, "Switch") || is_loop_switch(s, from))
        return TUTTI_OK;
    const tutti_graphdef_node *decider = tutti__graphdef_decider(s, from, &decides);
    if (!decider)
        return TUTTI_OK;
    return with_place(s, (tutti_graphdef_place){decider, decides, output != 0}, ret);
}

int tutti__graphdef_joined(const tutti_graphdef_study *s, const tutti_graphdef_node *merge,
                           tutti_graphdef_place *ret)
{
    const tutti_graphdef_context *in[2] = {NULL, NULL};
    tutti_graphdef_study *study = (tutti_graphdef_study *)s;
    for (size_t i = 0; i < 2; i++)
        if (tutti__graphdef_context_in(study, merge, i, &in[i]) != TUTTI_OK)
            return -1;
    for (int i = in[0] ? in[0]->count - 1 : -1; i >= 0; i--) {
        tutti_graphdef_place other = in[0]->places[i];
        if (other.side == 2)
            continue;
        other.side = 1 - other.side;
        if (!tutti__graphdef_stands_in(in[1], other))
            continue;
        *ret = in[0]->places[i];
        return other.side == 1 ? 1 : 0;
    }
    return -1;
}

/* What both inputs of a Merge stand in. */
static tutti_status merge_context(tutti_graphdef_study *s, const tutti_graphdef_node *node,
                                  const tutti_graphdef_context **ret)
{
    const tutti_graphdef_context *in[2];
    tutti_graphdef_place place;
    TUTTI_TRY(tutti__graphdef_context_in(s, node, 0, &in[0]));
    TUTTI_TRY(tutti__graphdef_context_in(s, node, 1, &in[1]));
    *ret = in[0];
    for (int i = 0; in[0] && i < in[0]->count; i++)
        if (!tutti__graphdef_stands_in(in[1], in[0]->places[i]))
            TUTTI_TRY(without(s, in[0]->places[i], false, ret));
    if (tutti__graphdef_joined(s, node, &place) >= 0)
        TUTTI_TRY(without(s, place, true, ret));
    return TUTTI_OK;
}

static tutti_status find_context(tutti_graphdef_study *s, tutti_graphdef_node *node)
{
    const tutti_graphdef_context *context = NULL, *other;
    const tutti_graphdef_frame *frame = tutti__graphdef_frame_of(s, node);
    int next = tutti__graphdef_next_input(s, node);
    size_t number = tutti__graphdef_number(s, node);
    if (tutti__graphdef_is(node, "Merge") && next < 0) {
        TUTTI_TRY(merge_context(s, node, &context));
    } else {
        for (size_t i = 0; i < node->inputs.count; i++) {
            if ((int)i == next)
                continue;
            TUTTI_TRY(tutti__graphdef_context_in(s, node, i, &other));
            TUTTI_TRY(joined_with(s, other, &context));
        }
    }
    if (frame && tutti__graphdef_is(node, "Enter"))
        TUTTI_TRY(with_place(s, (tutti_graphdef_place){frame->first, 0, 2}, &context));
    if (frame && tutti__graphdef_is(node, "Exit"))
        TUTTI_TRY(without(s, (tutti_graphdef_place){frame->first, 0, 2}, false, &context));
    s->contexts[number] = context;
    node->inside = context || tutti__graphdef_is(node, "Switch");
    for (size_t i = 0; i < node->inputs.count; i++) {
        int output;
        const tutti_graphdef_node *from = tutti__graphdef_taken(s, node, i, &output);
        int level = from && (int)i != next ? s->levels[tutti__graphdef_number(s, from)] : 0;
        s->levels[number] = level > s->levels[number] ? level : s->levels[number];
    }
    s->levels[number] += tutti__graphdef_is(node, "Merge");
    return TUTTI_OK;
}

/* ---- order ---- */

/* Nodes after what they take; NextIteration nodes do not count for their Merge. */
static tutti_status order_nodes(tutti_graphdef_study *s)
{
    size_t count = s->graph->nodes.count, edges = 0;
    int output, *waiting = tutti__arena_array(&s->def->arena, count + 1, sizeof *waiting);
    size_t *first = tutti__arena_array(&s->def->arena, count + 2, sizeof *first);
    s->order = tutti__arena_array(&s->def->arena, count + 1, sizeof *s->order);
    for (size_t i = 0; i < count; i++)
        edges += s->graph->nodes.items[i].inputs.count;
    int *users = tutti__arena_array(&s->def->arena, edges + 1, sizeof *users);
    if (!waiting || !first || !s->order || !users)
        return tutti__graphdef_no_memory(s->def);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < count; i++) {
            const tutti_graphdef_node *node = &s->graph->nodes.items[i];
            int next = tutti__graphdef_next_input(s, node);
            for (size_t k = 0; k < node->inputs.count; k++) {
                const tutti_graphdef_node *from = tutti__graphdef_taken(s, node, k, &output);
                if (!from || (int)k == next)
                    continue;
                size_t at = tutti__graphdef_number(s, from);
                if (pass == 0)
                    first[at + 2]++, waiting[i]++;
                else
                    users[first[at + 1]++] = (int)i;
            }
        }
        for (size_t i = 2; pass == 0 && i < count + 2; i++)
            first[i] += first[i - 1];
    }
    for (size_t i = 0; i < count; i++)
        if (waiting[i] == 0)
            s->order[s->ordered++] = (int)i;
    for (int at = 0; at < s->ordered; at++)
        for (size_t k = first[s->order[at]]; k < first[s->order[at] + 1]; k++)
            if (--waiting[users[k]] == 0)
                s->order[s->ordered++] = users[k];
    return TUTTI_OK;
}

static tutti_status find_frames(tutti_graphdef_study *s)
{
    for (size_t i = 0; i < s->graph->nodes.count; i++) {
        const tutti_graphdef_node *node = &s->graph->nodes.items[i];
        const tutti_graphdef_attr *name =
            tutti__graphdef_is(node, "Enter") ? tutti__graphdef_attr(node, "frame_name") : NULL;
        if (!name || tutti__map_get(&s->frames, name->s))
            continue;
        tutti_graphdef_frame *frame = tutti__arena_take(&s->def->arena, sizeof *frame);
        if (!frame)
            return tutti__graphdef_no_memory(s->def);
        frame->first = node;
        TUTTI_TRY(tutti__map_set(&s->frames, name->s, frame));
    }
    return TUTTI_OK;
}

static tutti_status study(tutti_graphdef_study *s)
{
    size_t count = s->graph->nodes.count;
    s->contexts = tutti__arena_array(&s->def->arena, count, sizeof(void *));
    s->levels = tutti__arena_array(&s->def->arena, count, sizeof *s->levels);
    s->stamps = tutti__arena_array(&s->def->arena, count, sizeof *s->stamps);
    if (!s->contexts || !s->levels || !s->stamps)
        return tutti__graphdef_no_memory(s->def);
    TUTTI_TRY(find_frames(s));
    TUTTI_TRY(order_nodes(s));
    for (int i = 0; i < s->ordered; i++)
        TUTTI_TRY(find_context(s, &s->graph->nodes.items[s->order[i]]));
    return tutti__graphdef_make_flows(s);
}

tutti_status tutti__graphdef_find_flows(tutti_graphdef *def, tutti_graphdef_graph *graph)
{
    tutti_graphdef_study s = {.def = def, .graph = graph};
    bool any = false;
    for (size_t i = 0; !graph->flows_known && i < graph->nodes.count; i++)
        any = any || tutti__graphdef_is(&graph->nodes.items[i], "Enter") ||
              tutti__graphdef_is(&graph->nodes.items[i], "Switch");
    graph->flows_known = true;
    if (!any)
        return TUTTI_OK;
    tutti_status status = study(&s);
    tutti__map_free(&s.frames);
    tutti__map_free(&s.branches);
    return status;
}
