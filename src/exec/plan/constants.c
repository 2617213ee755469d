/* constants.c: variables as constants, for runs that ask for it: kernels then have their weights
 * packed once, and what follows from weights alone is computed once. A plan that was made so holds
 * the values; a commit writes to copies meanwhile. The counter that random numbers go by stays a
 * variable: every run that draws advances it. */
#include "exec/plan/plan.h"

#include <string.h>

#include "ops/random/random.h"
#include "tutti/ops_state.h"

uint64_t tutti__engine_constants(tutti_engine *engine)
{
    return tutti__state_changes(tutti__engine_state(engine), TUTTI_RANDOM_COUNTER) + 1;
}

/* Programs that write are left as they are. */
static bool writes(const tutti_graph *job)
{
    for (size_t n = 0; n < job->nodes.count; n++)
        if (job->nodes.data[n]->op->flags & TUTTI_OP_UPDATES)
            return true;
    return false;
}

/* The present value of a variable, or NULL where it is no constant or lies on another device. */
static tutti_tensor *value_of(tutti_state *state, const tutti_device *device,
                              const tutti_node *node)
{
    tutti_state_variable *variable = tutti__state_find(state, tutti__state_name(node));
    tutti_device *own;
    tutti_piece *piece;
    if (!variable || node->colocate || strcmp(tutti__state_name(node), TUTTI_RANDOM_COUNTER) == 0 ||
        tutti__place_variable(node, device->name, &own) != TUTTI_OK || own != device ||
        tutti__state_piece(state, variable, device->name, device->memory, &piece) != TUTTI_OK)
        return NULL;
    return tutti__piece_acquire(state, piece);
}

tutti_status tutti__plan_constants(tutti_state *state, const char *name, tutti_graph *job)
{
    tutti_device *device;
    size_t count = job->nodes.count;
    TUTTI_TRY(tutti__device_open(name, &device));
    if (device->memory != tutti__host_memory() || writes(job))
        return TUTTI_OK;
    for (size_t n = 0; n < count; n++) {
        tutti_node *node = job->nodes.data[n];
        if (!tutti__is(node, "read") || !tutti__is(node->inputs[0].node, "variable"))
            continue;
        tutti_tensor *value = value_of(state, device, node->inputs[0].node);
        if (!value)
            continue; /* read in the run, which says when there is none */
        tutti_sym constant = (tutti_constant)(job, value);
        tutti_tensor_release(value);
        TUTTI_TRY(tutti_graph_check(job));
        tutti__graph_replace(job, (tutti_edge){node, 0}, tutti__edge(constant));
    }
    return tutti__graph_sort(job);
}
