/* axis_group_runs.c: runs that fail on one device or in one process. When a device fails, those of
 * its process that wait for it are let go at once, not at the deadline; their group does not work
 * any more then, and when nobody uses it they get another one, so that a step with bad data is
 * followed by good ones. Where processes meet, the job ends: what the others have done of the step
 * is not undone. */
#include "parallel/collectives/axis_group.h"

#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "base/world.h"
#include "comm/comm.h"

void tutti__axis_group_runs_init(tutti_axis_group *axis_group)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&axis_group->runs_lock, NULL);
    pthread_cond_init(&axis_group->met, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* Under the lock; false when it is too late. */
static bool wait_for_others(tutti_axis_group *axis_group, int64_t deadline_ns)
{
    struct timespec until = {.tv_sec = (time_t)(deadline_ns / 1000000000),
                             .tv_nsec = (long)(deadline_ns % 1000000000)};
    int late = 0;
    while (axis_group->meeting && !late)
        late = pthread_cond_timedwait(&axis_group->met, &axis_group->runs_lock, &until);
    return !axis_group->meeting;
}

tutti_status tutti__axis_group_enter(tutti_axis_group *axis_group, bool meets, int64_t deadline_ns)
{
    pthread_mutex_lock(&axis_group->runs_lock);
    bool free = !meets || wait_for_others(axis_group, deadline_ns);
    if (free && meets)
        axis_group->meeting = true;
    if (free)
        axis_group->runs++;
    pthread_mutex_unlock(&axis_group->runs_lock);
    return free ? TUTTI_OK
                : tutti_fail(TUTTI_DEADLINE,
                             "another run of the same strategy had not ended before the deadline; "
                             "does it wait for this one?");
}

static bool is_agreed(tutti_axis_group *axis_group, uint64_t schedule)
{
    bool found = false;
    pthread_mutex_lock(&axis_group->runs_lock);
    for (size_t i = axis_group->agreed.count; !found && i-- > 0;)
        found = axis_group->agreed.data[i] == schedule;
    pthread_mutex_unlock(&axis_group->runs_lock);
    return found;
}

static tutti_status note_agreed(tutti_axis_group *axis_group, uint64_t schedule)
{
    pthread_mutex_lock(&axis_group->runs_lock);
    bool ok = TUTTI_VEC_PUSH(&axis_group->agreed, schedule);
    pthread_mutex_unlock(&axis_group->runs_lock);
    return ok ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a schedule");
}

tutti_status tutti__team_agree(tutti_axis_group *axis_group, int64_t count,
                               const char *const *texts, int64_t deadline_ns)
{
    uint64_t schedule = (uint64_t)count;
    for (int64_t i = 0; i < count; i++)
        schedule = tutti__hash_mix(tutti__hash_string(schedule, texts[i]), (uint64_t)i);
    if (!is_agreed(axis_group, schedule)) {
        double left = 1e-9 * (double)(deadline_ns - tutti__now_ns());
        tutti_comm_call call = {.struct_size = sizeof call, .timeout = fmax(left, 1e-3)};
        TUTTI_TRY(
            tutti_comm_agree(axis_group->world, "program of the step", texts, count, 0, &call));
        TUTTI_TRY(note_agreed(axis_group, schedule));
    }
    tutti__comm_mark(axis_group->world, schedule);
    return TUTTI_OK;
}

void tutti__axis_group_cancel(tutti_axis_group *axis_group, const char *why)
{
    pthread_mutex_lock(&axis_group->runs_lock);
    if (!axis_group->cancelled)
        tutti_comm_abort(axis_group->inner[0], why);
    axis_group->cancelled = true;
    pthread_mutex_unlock(&axis_group->runs_lock);
}

/* Without memory for another group the old one stays and says why it ended. */
static void renew(tutti_axis_group *axis_group)
{
    tutti_comm **fresh = calloc((size_t)axis_group->local, sizeof *fresh);
    if (fresh && tutti_comm_local(axis_group->local, NULL, fresh) == TUTTI_OK) {
        for (int i = 0; i < axis_group->local; i++) {
            tutti_comm_close(axis_group->inner[i]);
            axis_group->inner[i] = fresh[i];
        }
        axis_group->cancelled = false;
    }
    free(fresh);
}

void tutti__axis_group_leave(tutti_axis_group *axis_group, bool meets)
{
    tutti_error before;
    pthread_mutex_lock(&axis_group->runs_lock);
    if (meets) {
        axis_group->meeting = false;
        pthread_cond_signal(&axis_group->met);
    }
    if (--axis_group->runs == 0 && axis_group->cancelled) {
        tutti__error_capture(TUTTI_OK, &before);
        renew(axis_group);
        tutti__error_restore(&before);
    }
    pthread_mutex_unlock(&axis_group->runs_lock);
}

/* Ends of queues, deadlines and what others failed with are no failures of this process: the first
 * two are to be tried again, and of the last all know. */
void tutti__axis_group_fail(tutti_axis_group *axis_group, tutti_status status)
{
    tutti_error error;
    if (!axis_group || !axis_group->world || status == TUTTI_CLOSED || status == TUTTI_DEADLINE ||
        status == TUTTI_CANCELLED)
        return;
    tutti__error_capture(status, &error);
    tutti_comm_abort(axis_group->world, error.message);
    tutti__error_restore(&error);
}
