/* team_runs.c: runs that fail on one device or in one process. When a device fails, those of its
 * process that wait for it are let go at once, not at the deadline; their group does not work any
 * more then, and when nobody uses it they get another one, so that a step with bad data is followed
 * by good ones. Where processes meet, the job ends: what the others have done of the step is not
 * undone. */
#include "dist/team.h"

#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "base/world.h"
#include "comm/comm.h"

void tutti__team_runs_init(tutti_team *team)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&team->runs_lock, NULL);
    pthread_cond_init(&team->met, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* Under the lock; false when it is too late. */
static bool wait_for_others(tutti_team *team, int64_t deadline_ns)
{
    struct timespec until = {.tv_sec = (time_t)(deadline_ns / 1000000000),
                             .tv_nsec = (long)(deadline_ns % 1000000000)};
    int late = 0;
    while (team->meeting && !late)
        late = pthread_cond_timedwait(&team->met, &team->runs_lock, &until);
    return !team->meeting;
}

tutti_status tutti__team_enter(tutti_team *team, bool meets, int64_t deadline_ns)
{
    pthread_mutex_lock(&team->runs_lock);
    bool free = !meets || wait_for_others(team, deadline_ns);
    if (free && meets)
        team->meeting = true;
    if (free)
        team->runs++;
    pthread_mutex_unlock(&team->runs_lock);
    return free ? TUTTI_OK
                : tutti_fail(TUTTI_DEADLINE,
                             "another run of the same strategy had not ended before the deadline; "
                             "does it wait for this one?");
}

static bool is_agreed(tutti_team *team, uint64_t schedule)
{
    bool found = false;
    pthread_mutex_lock(&team->runs_lock);
    for (size_t i = team->agreed.count; !found && i-- > 0;)
        found = team->agreed.data[i] == schedule;
    pthread_mutex_unlock(&team->runs_lock);
    return found;
}

static tutti_status note_agreed(tutti_team *team, uint64_t schedule)
{
    pthread_mutex_lock(&team->runs_lock);
    bool ok = TUTTI_VEC_PUSH(&team->agreed, schedule);
    pthread_mutex_unlock(&team->runs_lock);
    return ok ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a schedule");
}

tutti_status tutti__team_agree(tutti_team *team, int64_t count, const char *const *texts,
                               int64_t deadline_ns)
{
    uint64_t schedule = (uint64_t)count;
    for (int64_t i = 0; i < count; i++)
        schedule = tutti__hash_mix(tutti__hash_string(schedule, texts[i]), (uint64_t)i);
    if (!is_agreed(team, schedule)) {
        double left = 1e-9 * (double)(deadline_ns - tutti__now_ns());
        tutti_comm_call call = {.struct_size = sizeof call, .timeout = fmax(left, 1e-3)};
        TUTTI_TRY(tutti_comm_agree(team->world, "program of the step", texts, count, 0, &call));
        TUTTI_TRY(note_agreed(team, schedule));
    }
    tutti__comm_mark(team->world, schedule);
    return TUTTI_OK;
}

void tutti__team_cancel(tutti_team *team, const char *why)
{
    pthread_mutex_lock(&team->runs_lock);
    if (!team->cancelled)
        tutti_comm_abort(team->inner[0], why);
    team->cancelled = true;
    pthread_mutex_unlock(&team->runs_lock);
}

/* Without memory for another group the old one stays and says why it ended. */
static void renew(tutti_team *team)
{
    tutti_comm **fresh = calloc((size_t)team->local, sizeof *fresh);
    if (fresh && tutti_comm_local(team->local, NULL, fresh) == TUTTI_OK) {
        for (int i = 0; i < team->local; i++) {
            tutti_comm_close(team->inner[i]);
            team->inner[i] = fresh[i];
        }
        team->cancelled = false;
    }
    free(fresh);
}

void tutti__team_leave(tutti_team *team, bool meets)
{
    tutti_error before;
    pthread_mutex_lock(&team->runs_lock);
    if (meets) {
        team->meeting = false;
        pthread_cond_signal(&team->met);
    }
    if (--team->runs == 0 && team->cancelled) {
        tutti__error_capture(TUTTI_OK, &before);
        renew(team);
        tutti__error_restore(&before);
    }
    pthread_mutex_unlock(&team->runs_lock);
}

/* Ends of queues, deadlines and what others failed with are no failures of this process: the first
 * two are to be tried again, and of the last all know. */
void tutti__team_fail(tutti_team *team, tutti_status status)
{
    tutti_error error;
    if (!team || !team->world || status == TUTTI_CLOSED || status == TUTTI_DEADLINE ||
        status == TUTTI_CANCELLED)
        return;
    tutti__error_capture(status, &error);
    tutti_comm_abort(team->world, error.message);
    tutti__error_restore(&error);
}
