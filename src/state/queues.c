/* queues.c: queues by name. */
#include <string.h>

#include "state/queue_parts.h"
#include "state/state_inside.h"

void tutti__state_leave_queues(tutti_state *state)
{
    state->queues_apart = true;
}

bool tutti__is_queue_part(const char *name)
{
    return strncmp(name, TUTTI_QUEUE_PARTS, sizeof TUTTI_QUEUE_PARTS - 1) == 0;
}

bool tutti__state_passes_over(const tutti_state *state, const char *name)
{
    return state->queues_apart && tutti__is_queue_part(name);
}

void tutti__state_wake(tutti_state *state)
{
    pthread_mutex_lock(&state->lock);
    for (size_t i = 0; i < state->queues.count; i++)
        tutti__queue_wake(state->queues.entries[i].value);
    pthread_mutex_unlock(&state->lock);
}

static tutti_status queues_make(tutti_state *state, const char *name, int64_t capacity,
                                int type_count, const tutti_type *types,
                                const tutti_queue_order *order, tutti_queue **ret)
{
    tutti_queue *queue;
    TUTTI_TRY(tutti__queue_create_ordered(name, capacity, type_count, types, order, &queue));
    tutti_status status = tutti__queue_expected(state, name, queue);
    if (status == TUTTI_OK)
        status = tutti__map_set(&state->queues, name, queue);
    if (status == TUTTI_OK)
        *ret = queue;
    else
        tutti__queue_release(queue);
    return status;
}

tutti_status tutti__state_queue_ordered(tutti_state *state, const char *name, int64_t capacity,
                                        int type_count, const tutti_type *types,
                                        const tutti_queue_order *order, tutti_queue **ret)
{
    pthread_mutex_lock(&state->lock);
    tutti_queue *queue = tutti__map_get(&state->queues, name);
    tutti_status status = TUTTI_OK;
    if (!queue)
        status = queues_make(state, name, capacity, type_count, types, order, &queue);
    else if (tutti__queue_order_of(queue)->kind != order->kind)
        status = tutti_fail(TUTTI_INVALID,
                            "queue '%s' is there already, but of another kind; give one of them "
                            "another name",
                            name);
    pthread_mutex_unlock(&state->lock);
    if (status == TUTTI_OK)
        *ret = queue;
    return status;
}
