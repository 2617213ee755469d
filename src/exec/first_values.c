/* first_values.c: initial values of variables that a step has made. They run before the rest of the
 * step, so that a variable has its value whatever becomes of the step, and the rest is computed
 * from variables that are there. */
#include "exec/eager.h"

static bool is_initializer(const tutti_node *node)
{
    return !node->dead && tutti__is(node, "assign") && tutti__int(node, "initializer");
}

/* Initialisers that wait for nothing else of the step become the targets. */
static tutti_status collect(tutti_eager *eager)
{
    tutti_graph *graph = eager->graph;
    TUTTI_TRY(tutti__eager_clear_seen(eager));
    uint8_t *waits = eager->seen.data; /* by node: for an effect that has not taken place */
    for (size_t n = eager->done; n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        bool initializer = is_initializer(node);
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

tutti_status tutti__eager_first_values(tutti_eager *eager)
{
    if (eager->graph->initializers == 0)
        return TUTTI_OK;
    eager->feeds.count = eager->fetches.count = eager->targets.count = 0;
    tutti__eager_drop_controls(eager);
    TUTTI_TRY(collect(eager));
    if (eager->targets.count == 0 || tutti__eager_find_feeds(eager) != TUTTI_OK)
        return TUTTI_OK; /* the rest of the step runs them, or says what they lack */
    TUTTI_TRY(tutti__eager_run(eager));
    eager->graph->initializers = 0;
    for (size_t i = 0; i < eager->targets.count; i++) {
        tutti_node *node = eager->targets.data[i], *variable = node->inputs[0].node;
        node->dead = true; /* it has run */
        if (variable->updated == node)
            variable->updated = NULL;
    }
    return TUTTI_OK;
}
