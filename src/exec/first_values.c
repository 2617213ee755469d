/* first_values.c: initial values of variables that a step has made. They run before the rest of the
 * step, so that a variable has its value whatever becomes of the step, and the rest is computed
 * from variables that are there. */
#include <string.h>

#include "exec/eager.h"

static bool is_initializer(const tutti_node *node)
{
    return !node->dead && tutti__is(node, "assign") && tutti__int(node, "initializer");
}

/* Whether something of the step that has not run uses the same variable before the initialiser. */
static bool overtakes(const tutti_eager *eager, const tutti_node *initializer)
{
    const char *name = tutti__state_name(initializer->inputs[0].node);
    for (uint32_t n = eager->done; n < initializer->id; n++) {
        const tutti_node *node = eager->graph->nodes.data[n];
        if (!(node->op->flags & TUTTI_OP_TAKES_HANDLE) || node->dead)
            continue;
        for (int i = 0; i < node->input_count; i++)
            if (tutti__is(node->inputs[i].node, "variable") &&
                strcmp(tutti__state_name(node->inputs[i].node), name) == 0)
                return true;
    }
    return false;
}

/* Initialisers that wait for nothing else of the step become the targets. */
static tutti_status collect(tutti_eager *eager)
{
    tutti_graph *graph = eager->graph;
    TUTTI_TRY(tutti__eager_clear_seen(eager));
    uint8_t *waits = eager->seen.data; /* by node: for an effect that has not taken place */
    for (size_t n = eager->done; n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        bool initializer = is_initializer(node) && !overtakes(eager, node);
        waits[n] = !initializer && tutti__eager_acts(node);
        for (int i = 0; i < node->input_count; i++)
            waits[n] |= waits[node->inputs[i].node->id];
        for (int i = 0; i < node->control_count; i++)
            waits[n] |= waits[node->controls[i]->id];
        if (initializer && !waits[n] && !TUTTI_VEC_PUSH(&eager->targets, node))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a step");
    }
    return TUTTI_OK;
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
