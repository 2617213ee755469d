/* parts.c: cuts updates between devices; see parts.h. */
#include "exec/parts.h"

#include <stdlib.h>
#include <string.h>

#include "ops/update/rule.h"
#include "program/program.h"

/* Elements of a variable below which its update takes no time to speak of, some microseconds. */
enum { LEAST = 16384, LEAST_OF_PART = 64 };

typedef struct chooser {
    tutti_state *state;
    int parts;
    tutti_device **devices; /* of the parts */
    tutti_piece_graph **pieces;
    tutti_parts_look *looks;
    tutti_plan *plan;
    bool alone; /* gradients are summed between these devices only, and as is cheapest */
} chooser;

/* The pieces of the strategy's devices, all of which can; false: they cannot. */
static bool find_pieces(chooser *c, const tutti_strategy *strategy, int count,
                        tutti_piece_graph *pieces)
{
    for (int i = 0; i < c->parts; i++) {
        for (int k = 0; k < count; k++)
            if (strcmp(pieces[k].device, strategy->device_names[i]) == 0)
                c->pieces[i] = &pieces[k];
        if (!c->pieces[i] || c->pieces[i]->shadows ||
            tutti__device_open(c->pieces[i]->device, &c->devices[i]) != TUTTI_OK ||
            !c->devices[i]->target->joins || c->devices[i]->memory != c->devices[0]->memory)
            return false;
    }
    return true;
}

/* The update on device i of the variables that `node` updates on the first. */
static tutti_node *partner(const chooser *c, int i, const tutti_node *node)
{
    const tutti_parts_look *look = &c->looks[i];
    for (size_t n = 0; n < look->graph->nodes.count; n++) {
        tutti_node *other = look->graph->nodes.data[n];
        if (look->bad[n] || other->op != node->op || other->input_count != node->input_count)
            continue;
        bool same = true;
        for (int k = 0; same && k < node->input_count; k++)
            if (tutti__edge_type(node->inputs[k])->handle)
                same = strcmp(tutti__parts_name(node->inputs[k].node),
                              tutti__parts_name(other->inputs[k].node)) == 0;
        if (same)
            return other;
    }
    return NULL;
}

static tutti_status set_part(tutti_graph *graph, tutti_node *node, int part, int parts)
{
    tutti_attr *attrs = (void *)tutti__arena_bytes(&graph->arena, node->attrs,
                                                   (size_t)node->attr_count * sizeof *node->attrs);
    if (!attrs)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    for (int i = 0; i < node->attr_count; i++) {
        if (strcmp(attrs[i].name, "part") == 0)
            attrs[i].value.i = part;
        if (strcmp(attrs[i].name, "parts") == 0)
            attrs[i].value.i = parts;
    }
    node->attrs = attrs;
    return TUTTI_OK;
}

/* Where an update's gradient comes from, if nobody else takes it: an output of a bucket's sum. */
static tutti_edge bucket_of(const tutti_graph *graph, const tutti_node *update)
{
    tutti_update_layout at =
        tutti__update_layout(update->op, update->attrs, update->attr_count, update->input_count);
    tutti_edge edge = update->inputs[at.gradient], none = {0};
    for (;;) {
        int uses = 0;
        for (size_t n = 0; n < graph->nodes.count; n++)
            for (int i = 0; i < graph->nodes.data[n]->input_count; i++)
                uses += graph->nodes.data[n]->inputs[i].node == edge.node &&
                        graph->nodes.data[n]->inputs[i].index == edge.index;
        for (size_t i = 0; i < graph->results.count; i++)
            uses += graph->results.data[i].node == edge.node;
        if (uses != 1)
            return none;
        if (!(edge.node->op->flags & TUTTI_OP_VIEW) || edge.node->input_count == 0)
            break;
        edge = edge.node->inputs[0];
    }
    const tutti_node *sum = edge.node;
    bool plain = tutti__is(sum, "all_reduce_many") && strcmp(tutti__str(sum, "op"), "sum") == 0 &&
                 tutti__str(sum, "wire")[0] == 0 && tutti__int(sum, "starts") == 0 &&
                 tutti__edge_type(edge)->dtype == TUTTI_F32;
    return plain ? edge : none;
}

/* Output `index` of a sum is wanted in parts. */
static tutti_status cut_output(tutti_graph *graph, tutti_node *sum, int64_t index)
{
    tutti_attr *attrs = (void *)tutti__arena_bytes(&graph->arena, sum->attrs,
                                                   (size_t)sum->attr_count * sizeof *sum->attrs);
    for (int i = 0; attrs && i < sum->attr_count; i++) {
        if (strcmp(attrs[i].name, "cut") != 0)
            continue;
        int count = attrs[i].count, at = count;
        int64_t *list = tutti__arena_array(&graph->arena, (size_t)count + 1, sizeof *list);
        if (!list)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
        for (; at > 0 && attrs[i].value.ints[at - 1] > index; at--)
            list[at] = attrs[i].value.ints[at - 1];
        list[at] = index;
        for (int k = 0; k < at; k++)
            list[k] = attrs[i].value.ints[k];
        attrs[i].value.ints = list;
        attrs[i].count = count + 1;
    }
    if (!attrs)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    sum->attrs = attrs;
    return TUTTI_OK;
}

/* Gradients need not be whole either, where their sum is made by these devices alone. */
static tutti_status cut_gradients(chooser *c, tutti_node **updates)
{
    tutti_edge first = {0};
    for (int i = 0; c->alone && i < c->parts; i++) {
        tutti_edge edge = bucket_of(c->pieces[i]->graph, updates[i]);
        first = i == 0 ? edge : first;
        if (!edge.node || edge.index != first.index ||
            edge.node->output_count != first.node->output_count ||
            strcmp(tutti__str(edge.node, "channel"), tutti__str(first.node, "channel")) != 0)
            return TUTTI_OK;
    }
    for (int i = 0; c->alone && i < c->parts; i++) {
        tutti_edge edge = bucket_of(c->pieces[i]->graph, updates[i]);
        TUTTI_TRY(cut_output(c->pieces[i]->graph, edge.node, edge.index));
    }
    return TUTTI_OK;
}

static tutti_status share(chooser *c, const tutti_node *variable)
{
    for (int i = 0; i < c->parts; i++) {
        tutti_piece *piece;
        TUTTI_TRY(tutti__bind_variable(c->state, c->devices[i], variable, &piece));
        if (!TUTTI_VEC_PUSH(&c->plan->shared, piece))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    }
    return TUTTI_OK;
}

/* The same update on all devices, each with its part. */
static tutti_status cut(chooser *c, tutti_node **updates)
{
    for (int i = 0; i < c->parts; i++)
        TUTTI_TRY(set_part(c->pieces[i]->graph, updates[i], i, c->parts));
    for (int k = 0; k < updates[0]->input_count; k++)
        if (tutti__edge_type(updates[0]->inputs[k])->handle)
            TUTTI_TRY(share(c, updates[0]->inputs[k].node));
    return cut_gradients(c, updates);
}

static tutti_status choose(chooser *c, tutti_node **updates)
{
    const tutti_parts_look *first = &c->looks[0];
    for (size_t n = 0; n < first->graph->nodes.count; n++) {
        updates[0] = first->graph->nodes.data[n];
        if (!(updates[0]->op->flags & TUTTI_OP_UPDATES) || first->bad[n])
            continue;
        bool all = true;
        for (int i = 1; all && i < c->parts; i++)
            all = (updates[i] = partner(c, i, updates[0])) != NULL;
        if (all)
            TUTTI_TRY(cut(c, updates));
    }
    return TUTTI_OK;
}

static tutti_status look_and_choose(chooser *c, const tutti_strategy *strategy)
{
    int64_t least = (int64_t)LEAST_OF_PART * c->parts;
    if (strategy->options.parts == 0 && least < LEAST)
        least = LEAST;
    for (int i = 0; i < c->parts; i++)
        TUTTI_TRY(tutti__parts_look(c->pieces[i]->graph, least, &c->looks[i]));
    tutti_node **updates = calloc((size_t)c->parts, sizeof *updates);
    tutti_status status =
        updates ? choose(c, updates) : tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    free(updates);
    return status;
}

tutti_status tutti__parts_choose(tutti_state *state, const tutti_strategy *strategy, int count,
                                 tutti_piece_graph *pieces, tutti_plan *plan)
{
    if (!strategy || !strategy->team || strategy->team->local < 2 || strategy->kind->central ||
        strategy->options.parts < 0)
        return TUTTI_OK;
    size_t parts = (size_t)strategy->team->local;
    chooser c = {.state = state,
                 .parts = strategy->team->local,
                 .devices = calloc(parts, sizeof *c.devices),
                 .pieces = calloc(parts, sizeof *c.pieces),
                 .looks = calloc(parts, sizeof *c.looks),
                 .plan = plan,
                 .alone = !strategy->team->world && !strategy->team->algorithm &&
                          strategy->team->local <= TUTTI_TEAM_PARTS};
    tutti_status status = TUTTI_OK;
    plan->parts = c.parts;
    if (!c.devices || !c.pieces || !c.looks)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    else if (find_pieces(&c, strategy, count, pieces))
        status = look_and_choose(&c, strategy);
    for (size_t i = 0; c.looks && i < parts; i++)
        tutti__parts_look_free(&c.looks[i]);
    free(c.devices);
    free(c.pieces);
    free(c.looks);
    return status;
}
