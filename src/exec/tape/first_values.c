/* first_values.c: initial values of variables that a step has made. They run before the rest of the
 * step, so that a variable has its value whatever becomes of the step, and the rest is computed
 * from variables that are there. */
#include "exec/tape/eager.h"

static bool is_initializer(const tutti_node *node)
{
    return !node->dead && tutti__is(node, "assign") && tutti__int(node, "initializer");
}

/* Notes which variables a node uses, by their names in the state. */
static tutti_status note_used(const tutti_node *node, tutti_map *used)
{
    for (int i = 0; (node->op->flags & TUTTI_OP_TAKES_HANDLE) && i < node->input_count; i++) {
        tutti_node *handle = node->inputs[i].node;
        if (tutti__is(handle, "variable"))
            TUTTI_TRY(tutti__map_set(used, tutti__state_name(handle), handle));
    }
    return TUTTI_OK;
}

static tutti_status collect_among(tutti_eager *eager, tutti_map *used)
{
    tutti_graph *graph = eager->graph;
    uint8_t *waits = eager->seen.data; /* by node: for an effect that has not taken place */
    for (size_t n = eager->done; n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        if (node->dead)
            continue;
        bool initializer =
            is_initializer(node) && !tutti__map_get(used, tutti__state_name(node->inputs[0].node));
        waits[n] = !initializer && tutti__eager_acts(node);
        for (int i = 0; i < node->input_count; i++)
            waits[n] |= waits[node->inputs[i].node->id];
        for (int i = 0; i < node->control_count; i++)
            waits[n] |= waits[node->controls[i]->id];
        TUTTI_TRY(note_used(node, used));
        if (initializer && !waits[n] && !TUTTI_VEC_PUSH(&eager->targets, node))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a step");
    }
    return TUTTI_OK;
}

/* Initialisers that wait for nothing else of the step, and overtake nothing that uses a variable of
 * the same name, become the targets. */
static tutti_status collect(tutti_eager *eager)
{
    tutti_map used = {0};
    TUTTI_TRY(tutti__eager_clear_seen(eager));
    tutti_status status = collect_among(eager, &used);
    tutti__map_free(&used);
    return status;
}

/* Runs the targets. What they read that the rest of the step may read as well is kept: it is not
 * the same afterwards, as the counter of random numbers. */
static tutti_status run_targets(tutti_eager *eager)
{
    eager->feeds.count = eager->fetches.count = 0;
    TUTTI_TRY(tutti__eager_find_feeds(eager));
    for (size_t n = eager->done; n < eager->graph->nodes.count; n++) {
        tutti_node *node = eager->graph->nodes.data[n];
        if (eager->seen.data[n] && tutti__is(node, "read") &&
            !tutti__eager_known(eager, (tutti_edge){node, 0}) &&
            !TUTTI_VEC_PUSH(&eager->fetches, ((tutti_edge){node, 0})))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a step");
    }
    TUTTI_TRY(tutti__eager_run(eager));
    for (size_t i = 0; i < eager->targets.count; i++) {
        tutti_node *node = eager->targets.data[i], *variable = node->inputs[0].node;
        node->dead = true; /* it has run */
        if (variable->updated == node)
            variable->updated = NULL;
    }
    return TUTTI_OK;
}

tutti_status tutti__eager_first_values(tutti_eager *eager)
{
    if (eager->graph->initializers == 0)
        return TUTTI_OK;
    eager->targets.count = 0;
    tutti__eager_drop_controls(eager);
    TUTTI_TRY(collect(eager));
    if (eager->targets.count > 0)
        TUTTI_TRY(run_targets(eager));
    eager->graph->initializers = 0; /* the rest of the step runs those that wait for it */
    return TUTTI_OK;
}

void tutti__eager_keep_variables(tutti_eager *eager)
{
    tutti_graph *graph = eager->graph;
    for (size_t n = eager->done; n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        if (!is_initializer(node))
            continue;
        eager->failed.status = TUTTI_OK;
        eager->targets.count = 0;
        tutti__eager_drop_controls(eager);
        bool alone = collect(eager) == TUTTI_OK;
        for (size_t i = 0; alone && i < eager->targets.count; i++)
            if (eager->targets.data[i] == node) {
                eager->targets.data[0] = node;
                eager->targets.count = 1;
                break;
            }
        alone = alone && eager->targets.count == 1 && eager->targets.data[0] == node;
        if (!alone || run_targets(eager) != TUTTI_OK)
            node->inputs[0].node->dead = true; /* it is made anew when it is asked for again */
    }
}
