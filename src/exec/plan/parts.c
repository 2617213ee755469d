/* parts.c: cuts updates between devices; see parts.h. */
#include "exec/plan/parts.h"

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
    TUTTI_TRY(tutti__parts_set(graph, node, "part", part));
    return tutti__parts_set(graph, node, "parts", parts);
}

/* Gradients need not be whole either, where their sum is made by these devices alone. */
static tutti_status cut_gradients(chooser *c, tutti_node **updates)
{
    tutti_edge first = {0};
    for (int i = 0; c->alone && i < c->parts; i++) {
        tutti_edge edge = tutti__parts_sum_of(c->pieces[i]->graph, updates[i]);
        first = i == 0 ? edge : first;
        if (!edge.node || edge.index != first.index ||
            edge.node->output_count != first.node->output_count ||
            strcmp(tutti__str(edge.node, "channel"), tutti__str(first.node, "channel")) != 0)
            return TUTTI_OK;
    }
    bool late = c->parts == 2;
    for (int i = 0; i < c->parts; i++)
        late = late && tutti__parts_may_add(c->pieces[i]->graph, updates[i]);
    for (int i = 0; c->alone && i < c->parts; i++) {
        tutti_edge edge = tutti__parts_sum_of(c->pieces[i]->graph, updates[i]);
        TUTTI_TRY(tutti__parts_cut_output(c->pieces[i]->graph, edge.node, "cut", edge.index));
        if (late)
            TUTTI_TRY(tutti__parts_cut_output(c->pieces[i]->graph, edge.node, "late", edge.index));
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
static tutti_status parts_cut(chooser *c, tutti_node **updates)
{
    for (int i = 0; i < c->parts; i++)
        TUTTI_TRY(set_part(c->pieces[i]->graph, updates[i], i, c->parts));
    for (int k = 0; k < updates[0]->input_count; k++)
        if (tutti__edge_type(updates[0]->inputs[k])->handle)
            TUTTI_TRY(share(c, updates[0]->inputs[k].node));
    return cut_gradients(c, updates);
}

static tutti_status parts_choose(chooser *c, tutti_node **updates)
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
            TUTTI_TRY(parts_cut(c, updates));
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
        updates ? parts_choose(c, updates) : tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    for (int i = 0; status == TUTTI_OK && i < c->parts; i++)
        status = tutti__parts_norm(c->pieces[i]->graph, i, c->parts);
    free(updates);
    return status;
}

tutti_status tutti__parts_choose(tutti_state *state, const tutti_strategy *strategy, int count,
                                 tutti_piece_graph *pieces, tutti_plan *plan)
{
    if (!strategy || !strategy->axis_group || strategy->axis_group->local < 2 ||
        strategy->kind->central || strategy->options.parts < 0)
        return TUTTI_OK;
    size_t parts = (size_t)strategy->axis_group->local;
    chooser c = {.state = state,
                 .parts = strategy->axis_group->local,
                 .devices = calloc(parts, sizeof *c.devices),
                 .pieces = calloc(parts, sizeof *c.pieces),
                 .looks = calloc(parts, sizeof *c.looks),
                 .plan = plan,
                 .alone = !strategy->axis_group->world && !strategy->axis_group->algorithm &&
                          strategy->axis_group->local <= TUTTI_AXIS_GROUP_PARTS};
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
