/* owned.c: processes share the updates of a bucket; see parts.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/plan/parts.h"
#include "ops/comm/comm.h"
#include "ops/update/rule.h"
#include "program/program.h"

/* Elements of a bucket below which its updates take no longer than one more meeting; and the part
 * of it, one in so many, that all may want whole. */
enum { LEAST = 65536, COMMON = 8 };

typedef struct chooser {
    tutti_axis_group *axis_group;
    tutti_graph *graph;
    size_t count; /* nodes before any is added */
    tutti_parts_look look;
    int64_t least;
    tutti_plan *plan;
    tutti_node **updates; /* by output of the bucket at hand: what takes it, or NULL */
} chooser;

/* Whether processes can read each other's parts at any time (tutti__team_fetch). */
static bool can_fetch(const tutti_comm *world)
{
    for (int r = 0; world && r < tutti_comm_size(world); r++)
        if (r != tutti_comm_rank(world) && strcmp(tutti_comm_engine(world, r), "shm") != 0 &&
            strcmp(tutti_comm_engine(world, r), "tcp") != 0)
            return false;
    return true;
}

/* One device each, of a job that sums as is cheapest. Also of processes that are only imagined. */
static bool may_own(const tutti_strategy *strategy)
{
    const tutti_axis_group *axis_group = strategy ? strategy->axis_group : NULL;
    return axis_group && axis_group->size > 1 && axis_group->local == 1 && !axis_group->inner &&
           !axis_group->algorithm && !strategy->kind->central && !strategy->options.deterministic &&
           strategy->options.parts >= 0 && can_fetch(axis_group->world);
}

/* An output of the sum as the gradient of an update of as many elements, in the same order. */
static bool takes(const chooser *c, const tutti_node *update, const tutti_node *sum, int *ret)
{
    if (!(update->op->flags & TUTTI_OP_UPDATES) || c->look.bad[update->id] ||
        tutti__is(update, "ema_update"))
        return false;
    tutti_edge edge = tutti__parts_sum_of(c->graph, update);
    if (edge.node != sum ||
        tutti_type_count(tutti__edge_type(edge)) != tutti_type_count(&update->types[0]))
        return false;
    *ret = (int)edge.index;
    return true;
}

/* A running mean takes the new value of all elements: an update that has one is not shared. */
static bool has_mean(const chooser *c, const tutti_node *update)
{
    for (size_t n = 0; n < c->count; n++)
        for (int i = 0; i < c->graph->nodes.data[n]->input_count; i++)
            if (c->graph->nodes.data[n]->inputs[i].node == update)
                return true;
    return false;
}

/* Which updates take this bucket; the number of them, 0 where it does not pay. */
static int find_updates(const chooser *c, const tutti_node *sum)
{
    int found = 0, at;
    int64_t owned = 0, all = tutti__owned_count(sum->types, sum->output_count);
    memset(c->updates, 0, (size_t)sum->output_count * sizeof *c->updates);
    for (size_t n = 0; n < c->count; n++) {
        tutti_node *update = c->graph->nodes.data[n];
        if (!takes(c, update, sum, &at) || has_mean(c, update))
            continue;
        c->updates[at] = update;
        owned += tutti_type_count(&update->types[0]);
        found++;
    }
    int64_t padding = 16 * (int64_t)sum->output_count;
    return owned >= c->least && all - owned <= padding + all / COMMON ? found : 0;
}

static tutti_status own_elements(const chooser *c, tutti_node *sum, int output)
{
    tutti_node *update = c->updates[output];
    TUTTI_TRY(tutti__parts_set(c->graph, update, "bucket",
                               tutti__owned_count(sum->types, sum->output_count)));
    TUTTI_TRY(
        tutti__parts_set(c->graph, update, "offset", tutti__owned_offset(sum->types, output)));
    TUTTI_TRY(tutti__parts_set(c->graph, update, "part", c->axis_group->first));
    TUTTI_TRY(tutti__parts_set(c->graph, update, "parts", c->axis_group->size));
    return tutti__parts_cut_output(c->graph, sum, "cut", output);
}

static tutti_status add_gather(const chooser *c, tutti_node *sum, int variables, tutti_edge *inputs,
                               int64_t *of, tutti_node **before)
{
    int found = 0;
    char channel[64]; /* another meeting than the sum */
    snprintf(channel, sizeof channel, "%s.updates", tutti__str(sum, "channel"));
    for (int i = 0; i < sum->output_count; i++) {
        inputs[variables + i] = (tutti_edge){sum, (uint32_t)i};
        if (!c->updates[i])
            continue;
        inputs[found] = c->updates[i]->inputs[0];
        before[found] = c->updates[i];
        of[found++] = i;
    }
    tutti_attr attrs[] = {
        TUTTI_STR("axis", tutti__str(sum, "axis")),
        TUTTI_INT("size", tutti__int(sum, "size")),
        TUTTI_STR("channel", channel),
        {.name = "of", .kind = TUTTI_ATTR_INTS, .count = found, .value.ints = of}};
    tutti_node *gather;
    TUTTI_TRY(tutti__node_add(c->graph, tutti_op_find("gather_updates"), "gather_updates",
                              variables + sum->output_count, inputs, 4, attrs, &gather));
    gather->device = sum->device;
    gather->controls =
        (void *)tutti__arena_bytes(&c->graph->arena, before, (size_t)found * sizeof *before);
    if (!gather->controls || !TUTTI_VEC_PUSH(&c->graph->targets, gather))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    gather->control_count = found;
    return TUTTI_OK;
}

static tutti_status own_bucket(const chooser *c, tutti_node *sum, int variables)
{
    size_t inputs = (size_t)variables + (size_t)sum->output_count;
    tutti_edge *edges = calloc(inputs, sizeof *edges);
    int64_t *of = calloc((size_t)variables, sizeof *of);
    tutti_node **before = calloc((size_t)variables, sizeof *before);
    tutti_status status =
        edges && of && before ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    for (int i = 0; status == TUTTI_OK && i < sum->output_count; i++)
        if (c->updates[i])
            status = own_elements(c, sum, i);
    if (status == TUTTI_OK)
        status = add_gather(c, sum, variables, edges, of, before);
    free(edges);
    free(of);
    free(before);
    return status;
}

static bool is_bucket(const chooser *c, const tutti_node *node)
{
    return tutti__is(node, "all_reduce_many") && tutti__int(node, "size") == c->axis_group->size;
}

/* Counts the elements that can be shared, or shares them. */
static tutti_status owned_choose(chooser *c, bool counts, int64_t *ret_elements)
{
    *ret_elements = 0;
    for (size_t n = 0; n < c->count; n++) {
        tutti_node *sum = c->graph->nodes.data[n];
        if (!is_bucket(c, sum))
            continue;
        c->updates = calloc((size_t)sum->output_count, sizeof *c->updates);
        if (!c->updates)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
        int found = find_updates(c, sum);
        for (int i = 0; found > 0 && i < sum->output_count; i++)
            *ret_elements += c->updates[i] ? tutti_type_count(&sum->types[i]) : 0;
        tutti_status status = found > 0 && !counts ? own_bucket(c, sum, found) : TUTTI_OK;
        free(c->updates);
        TUTTI_TRY(status);
    }
    return TUTTI_OK;
}

/* Devices of other processes may be of another kind: all can share the same, or nobody does. */
static tutti_status agree(const tutti_axis_group *axis_group, int64_t *elements)
{
    int64_t least[] = {*elements, -*elements};
    if (!axis_group->world)
        return TUTTI_OK;
    TUTTI_TRY(
        tutti_comm_all_reduce(axis_group->world, least, least, 2, TUTTI_I64, TUTTI_MIN, NULL));
    if (least[0] != -least[1])
        *elements = 0;
    return TUTTI_OK;
}

static tutti_status share(chooser *c, tutti_state *state, bool can)
{
    int64_t elements = 0;
    if (can)
        TUTTI_TRY(owned_choose(c, true, &elements));
    TUTTI_TRY(agree(c->axis_group, &elements));
    if (elements == 0)
        return TUTTI_OK;
    TUTTI_TRY(owned_choose(c, false, &c->plan->owned));
    TUTTI_TRY(tutti__parts_norm(c->graph, c->axis_group->first, c->axis_group->size));
    return tutti__axis_group_show(c->axis_group, state);
}

tutti_status tutti__owned_choose(tutti_state *state, const tutti_strategy *strategy, int count,
                                 tutti_piece_graph *pieces, tutti_plan *plan)
{
    tutti_device *device;
    bool meets = false;
    if (!may_own(strategy) || count < 1)
        return TUTTI_OK;
    chooser c = {.axis_group = strategy->axis_group,
                 .graph = pieces[0].graph,
                 .count = pieces[0].graph->nodes.count,
                 .least = strategy->options.parts > 0 ? 1 : LEAST,
                 .plan = plan};
    for (int i = 0; i < count; i++)
        for (size_t n = 0; n < pieces[i].graph->nodes.count; n++)
            meets = meets || is_bucket(&c, pieces[i].graph->nodes.data[n]);
    if (!meets) /* nor does any other process */
        return TUTTI_OK;
    TUTTI_TRY(tutti__device_open(pieces[0].device, &device));
    TUTTI_TRY(tutti__parts_look(c.graph, 1, &c.look));
    tutti_status status =
        share(&c, state, count == 1 && !pieces[0].shadows && device->target->joins);
    tutti__parts_look_free(&c.look);
    return status;
}
