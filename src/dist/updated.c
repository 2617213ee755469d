/* updated.c: which variable a gradient is for. */
#include <stdlib.h>
#include <string.h>

#include "dist/walk.h"

/* The variable that an update writes, or the one whose slot that is; NULL: none. */
static const char *written_by(const tutti_node *update)
{
    for (int i = 0; i < update->input_count; i++) {
        const tutti_node *handle = update->inputs[i].node;
        if (!tutti__is(handle, "variable"))
            continue;
        const char *of = tutti__str(handle, "slot_of"), *name = tutti__str(handle, "shared_name");
        return of[0] ? of : name[0] ? name : handle->name;
    }
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

tutti_status tutti__spread_updated(const tutti_graph *graph, const tutti_node *gradient,
                                   const char **ret)
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
        const char *name = node->op->flags & TUTTI_OP_UPDATES ? written_by(node) : NULL;
        if (name && (least == 0 || steps[n] < least)) {
            *ret = name;
            least = steps[n];
        }
    }
    free(steps);
    return TUTTI_OK;
}
