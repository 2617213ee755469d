/* trace.c: notes what a rank would do. */
#include "comm/sim/trace.h"

#include <stdlib.h>
#include <string.h>

static _Thread_local tutti_sim_trace *current;

/* Pointers are computed from it and compared, nothing more. */
void *tutti__sim_trace_memory(void)
{
    return (void *)(uintptr_t)(UINT64_C(1) << 40); // NOLINT(performance-no-int-to-ptr)
}

static void *grow(tutti_sim_trace *trace, void *data, uint32_t count, uint32_t *room, size_t each)
{
    if (count < *room)
        return data;
    uint32_t more = *room ? *room * 2 : 16;
    void *grown = more > *room ? realloc(data, more * each) : NULL;
    if (!grown) {
        trace->failed = true;
        return data;
    }
    *room = more;
    return grown;
}

static bool same_group(const tutti_sim_trace *trace, const tutti_sim_group *last)
{
    uint32_t count = trace->step_count - trace->open;
    return last->count == count && last->times < UINT32_MAX &&
           memcmp(trace->steps + last->first, trace->steps + trace->open,
                  count * sizeof *trace->steps) == 0;
}

/* The steps since `open` become a group, or one more time of the group before. */
static void close_group(tutti_sim_trace *trace)
{
    tutti_sim_group *last = trace->group_count ? &trace->groups[trace->group_count - 1] : NULL;
    if (trace->open == trace->step_count || trace->failed)
        return;
    if (last && same_group(trace, last)) {
        last->times++;
        trace->step_count = trace->open;
        return;
    }
    trace->groups =
        grow(trace, trace->groups, trace->group_count, &trace->group_room, sizeof *trace->groups);
    if (trace->failed)
        return;
    trace->groups[trace->group_count++] =
        (tutti_sim_group){trace->open, trace->step_count - trace->open, 1};
    trace->open = trace->step_count;
}

static void trace_add(tutti_sim_trace *trace, tutti_sim_kind kind, uint32_t peer, size_t bytes)
{
    trace->steps =
        grow(trace, trace->steps, trace->step_count, &trace->step_room, sizeof *trace->steps);
    if (!trace->failed)
        trace->steps[trace->step_count++] = (tutti_sim_step){(uint32_t)kind, peer, bytes};
}

/* A group ends before the first message after a wait, so that one exchange is one group. */
size_t tutti__sim_trace_post(tutti_sim_trace *trace, int peer, bool outgoing, size_t bytes)
{
    const tutti_sim_step *last =
        trace->step_count > trace->open ? &trace->steps[trace->step_count - 1] : NULL;
    if (last && (last->kind == TUTTI_SIM_WAIT || last->kind == TUTTI_SIM_COMPUTE))
        close_group(trace);
    trace_add(trace, outgoing ? TUTTI_SIM_SEND : TUTTI_SIM_RECV, (uint32_t)peer, bytes);
    trace->messages += outgoing;
    return (size_t)trace->posted++;
}

void tutti__sim_trace_wait(tutti_sim_trace *trace, size_t number)
{
    trace_add(trace, TUTTI_SIM_WAIT, (uint32_t)(trace->posted - number), 0);
}

void tutti__sim_trace_copy(tutti_sim_trace *trace, size_t bytes)
{
    trace_add(trace, TUTTI_SIM_COMPUTE, 0, bytes);
}

void tutti__sim_trace_fold(void *out, const void *const *in, int sources, int64_t count)
{
    (void)out, (void)in;
    if (sources > 1 && count > 0)
        tutti__sim_trace_copy(current, (size_t)count * current->element * (size_t)(sources - 1));
}

void tutti__sim_trace_begin(tutti_sim_trace *trace)
{
    current = trace;
}

void tutti__sim_trace_end(tutti_sim_trace *trace)
{
    close_group(trace);
    current = NULL;
}

void tutti__sim_trace_free(tutti_sim_trace *trace)
{
    free(trace->steps);
    free(trace->groups);
    *trace = (tutti_sim_trace){0};
}
