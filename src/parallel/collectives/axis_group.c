/* axis_group.c: groups made, connected, compared, closed; what they do is in axis_group_calls.c. */
#include "parallel/collectives/axis_group.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/world.h"
#include "comm/comm.h"

static tutti_status make_lists(tutti_axis_group *group, const tutti_axis_rank *homes, int process)
{
    size_t size = (size_t)group->size;
    group->members = calloc(size, sizeof *group->members);
    group->counts = calloc(size, sizeof *group->counts);
    group->places = calloc(size, sizeof *group->places);
    if (!group->members || !group->counts || !group->places)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a group of %d devices", group->size);
    group->in_order = group->even = true;
    group->first = -1;
    for (int r = 0; r < group->size; r++) {
        int p = 0;
        while (p < group->processes && group->members[p] != homes[r].process)
            p++;
        if (p == group->processes)
            group->members[group->processes++] = homes[r].process;
        group->in_order = group->in_order && p + 1 == group->processes;
        if (homes[r].process == process && group->first < 0) {
            group->process = p;
            group->first = r;
        }
        group->places[r] = (tutti_axis_rank){p, group->counts[p]++};
    }
    for (int p = 0; p < group->processes; p++) {
        group->most = group->counts[p] > group->most ? group->counts[p] : group->most;
        group->even = group->even && group->in_order && group->counts[p] == group->counts[0];
    }
    group->local = group->counts[group->process];
    return TUTTI_OK;
}

static tutti_status make_local(tutti_axis_group *group, const tutti_axis_rank *homes,
                               const char *const *devices)
{
    size_t local = (size_t)group->local;
    group->ranks = calloc(local, sizeof *group->ranks);
    group->devices = calloc(local, sizeof *group->devices);
    group->over = calloc(local, sizeof *group->over);
    group->inner = local > 1 ? calloc(local, sizeof *group->inner) : NULL;
    if (!group->ranks || !group->devices || !group->over || (local > 1 && !group->inner))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %d replicas", group->local);
    for (int r = group->first, i = 0; r < group->size; r++)
        if (group->places[r].process == group->process) {
            group->ranks[i] = r;
            snprintf(group->devices[i++], sizeof *group->devices, "%s", devices[homes[r].place]);
        }
    return group->inner ? tutti_comm_local(group->local, NULL, group->inner) : TUTTI_OK;
}

tutti_status tutti__axis_group_create(const char *axes, int size, const tutti_axis_rank *homes,
                                      int process, const char *const *devices,
                                      const char *algorithm, tutti_axis_group **ret)
{
    tutti_axis_group *group = calloc(1, sizeof *group);
    if (!group)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a group of %d devices", size);
    pthread_mutex_init(&group->lock, NULL);
    snprintf(group->axes, sizeof group->axes, "%s", axes);
    group->size = size;
    group->algorithm = algorithm;
    tutti_status status = make_lists(group, homes, process);
    if (status == TUTTI_OK)
        status = make_local(group, homes, devices);
    if (status == TUTTI_OK)
        *ret = group;
    else
        tutti__axis_group_close(group);
    return status;
}

static tutti_comm_call until(int64_t deadline_ns)
{
    double left = 1e-9 * (double)(deadline_ns - tutti__now_ns());
    return (tutti_comm_call){.struct_size = sizeof(tutti_comm_call), .timeout = fmax(left, 1e-3)};
}

tutti_status tutti__axis_group_connect(tutti_axis_group *group, tutti_comm *job,
                                       int64_t deadline_ns)
{
    tutti_comm_call call = until(deadline_ns);
    if (group->processes == 1 || group->world)
        return TUTTI_OK;
    if (!job)
        return tutti_fail(TUTTI_INTERNAL, "a group along '%s' has no processes", group->axes);
    tutti_status status = tutti__comm_subgroup(
        job, group->processes, group->members,
        tutti__hash_string((uint64_t)group->size, group->axes), &call, &group->world);
    return status == TUTTI_OK ? TUTTI_OK
                              : tutti__error_prefix(status, "the group along '%s'", group->axes);
}

void tutti__axis_group_close(tutti_axis_group *group)
{
    if (!group)
        return;
    for (size_t i = 0; i < sizeof group->pending / sizeof *group->pending; i++)
        if (group->pending[i].request) /* of a run that failed */
            (void)tutti_comm_wait(group->pending[i].request);
    for (int i = 0; group->inner && i < group->local; i++)
        tutti_comm_close(group->inner[i]);
    if (!group->borrowed)
        tutti_comm_close(group->world);
    TUTTI_VEC_FREE(&group->agreed);
    pthread_mutex_destroy(&group->lock);
    free(group->members);
    free(group->counts);
    free(group->places);
    free(group->ranks);
    free(group->room);
    free(group->over);
    free(group->diaries);
    free(group->cost);
    free(group->inner);
    free(group->devices);
    free(group);
}

void tutti__axis_group_renew(tutti_axis_group *group)
{
    tutti_comm **fresh = group->inner ? calloc((size_t)group->local, sizeof *fresh) : NULL;
    if (fresh && tutti_comm_local(group->local, NULL, fresh) == TUTTI_OK)
        for (int i = 0; i < group->local; i++) {
            tutti_comm_close(group->inner[i]);
            group->inner[i] = fresh[i];
        }
    free(fresh);
}

int tutti__axis_group_find(const tutti_axis_group *group, const char *device)
{
    for (int i = 0; i < group->local; i++)
        if (strcmp(group->devices[i], device) == 0)
            return i;
    return -1;
}

static bool is_agreed(tutti_axis_group *group, uint64_t schedule)
{
    bool found = false;
    pthread_mutex_lock(&group->lock);
    for (size_t i = group->agreed.count; !found && i-- > 0;)
        found = group->agreed.data[i] == schedule;
    pthread_mutex_unlock(&group->lock);
    return found;
}

static tutti_status note_agreed(tutti_axis_group *group, uint64_t schedule)
{
    pthread_mutex_lock(&group->lock);
    bool ok = TUTTI_VEC_PUSH(&group->agreed, schedule);
    pthread_mutex_unlock(&group->lock);
    return ok ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a schedule");
}

tutti_status tutti__axis_group_agree(tutti_axis_group *group, int64_t count,
                                     const char *const *texts, int64_t deadline_ns)
{
    uint64_t schedule = (uint64_t)count;
    for (int64_t i = 0; i < count; i++)
        schedule = tutti__hash_mix(tutti__hash_string(schedule, texts[i]), (uint64_t)i);
    if (!is_agreed(group, schedule)) {
        tutti_comm_call call = until(deadline_ns);
        TUTTI_TRY(tutti_comm_agree(group->world, "program of the step", texts, count, 0, &call));
        TUTTI_TRY(note_agreed(group, schedule));
    }
    tutti__comm_mark(group->world, schedule);
    return TUTTI_OK;
}
