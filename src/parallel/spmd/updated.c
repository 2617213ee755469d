/* updated.c: which variable a gradient is for. */
#include <stdlib.h>
#include <string.h>

#include "parallel/spmd/rewrite.h"

const char *tutti__spmd_variable_name(const tutti_node *variable)
{
    const char *of = tutti__str(variable, "slot_of"), *name = tutti__str(variable, "shared_name");
    return of[0] ? of : name[0] ? name : variable->name;
}

/* The variable that an update writes, or a slot of it; NULL: none. */
static const tutti_node *written_by(const tutti_node *update)
{
    for (int i = 0; i < update->input_count; i++)
        if (tutti__is(update->inputs[i].node, "variable"))
            return update->inputs[i].node;
    return NULL;
}

static int nearest_input(const tutti_node *node, const int *steps)
{
    int least = 0;
    for (int i = 0; i < node->input_count; i++) {
        int behind = steps[node->inputs[i].node->id];
        if (behind > 0 && (least == 0 || behind < least))
            least = behind;
    }
    return least;
}

tutti_status tutti__spmd_updated(const tutti_graph *graph, const tutti_node *gradient,
                                 const tutti_node **ret)
{
    int *steps = calloc(graph->nodes.count + 1, sizeof *steps); /* behind it, from 1; 0: not */
    int least = 0;
    if (!steps)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to join gradients");
    *ret = NULL;
    steps[gradient->id] = 1;
    for (size_t n = gradient->id + 1; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        int before = node->dead ? 0 : nearest_input(node, steps);
        if (before == 0)
            continue;
        steps[n] = before + 1;
        const tutti_node *variable = node->op->flags & TUTTI_OP_UPDATES ? written_by(node) : NULL;
        if (variable && (least == 0 || steps[n] < least)) {
            *ret = variable;
            least = steps[n];
        }
    }
    free(steps);
    return TUTTI_OK;
}
