/* claim.c: variables that a run has for itself from reading them to its commit. */
#include "state/state_inside.h"

#include "base/world.h"

/* Under the lock: one of them that somebody claims, or NULL. */
static const tutti_state_variable *find_claimed(int count, tutti_state_variable *const *variables)
{
    for (int i = 0; i < count; i++)
        if (variables[i]->claimed)
            return variables[i];
    return NULL;
}

/* Under the lock: a commit could begin but for runs whose devices take their values. */
static void wait_for_holds(tutti_state *state)
{
    state->due++;
    pthread_cond_wait(&state->idle, &state->lock);
    if (--state->due == 0)
        pthread_cond_broadcast(&state->idle); /* for those who want to hold */
}

/* Under the lock: waits until nobody commits or holds (when `commit`) and none of the variables is
 * claimed. */
static tutti_status wait_until_free(tutti_state *state, bool commit, int count,
                                    tutti_state_variable *const *variables, int64_t deadline)
{
    const tutti_state_variable *claimed;
    while ((claimed = find_claimed(count, variables)) != NULL ||
           (commit && (state->committing || state->holds > 0))) {
        if (!claimed && !state->committing) {
            wait_for_holds(state);
            continue;
        }
        if (deadline == TUTTI_NO_DEADLINE || !claimed) { /* a commit never waits for others */
            pthread_cond_wait(&state->idle, &state->lock);
            continue;
        }
        struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000),
                                 .tv_nsec = (long)(deadline % 1000000000)};
        if (pthread_cond_timedwait(&state->idle, &state->lock, &until) != 0 &&
            (claimed = find_claimed(count, variables)) != NULL)
            return tutti_fail(TUTTI_DEADLINE,
                              "variable '%s' is updated by another run, which had not ended before "
                              "the deadline; does it wait for this one?",
                              claimed->name);
    }
    return TUTTI_OK;
}

tutti_status tutti__state_claim(tutti_state *state, int count,
                                tutti_state_variable *const *variables, int64_t deadline)
{
    pthread_mutex_lock(&state->lock);
    tutti_status status = wait_until_free(state, false, count, variables, deadline);
    for (int i = 0; status == TUTTI_OK && i < count; i++)
        variables[i]->claimed = true;
    pthread_mutex_unlock(&state->lock);
    return status;
}

void tutti__state_unclaim(tutti_state *state, int count, tutti_state_variable *const *variables)
{
    pthread_mutex_lock(&state->lock);
    for (int i = 0; i < count; i++)
        variables[i]->claimed = false;
    pthread_cond_broadcast(&state->idle);
    pthread_mutex_unlock(&state->lock);
}

tutti_status tutti__state_commit_begin_on(tutti_state *state, int count,
                                          tutti_state_variable *const *variables, int64_t deadline)
{
    pthread_mutex_lock(&state->lock);
    tutti_status status = wait_until_free(state, true, count, variables, deadline);
    if (status == TUTTI_OK)
        state->committing = true;
    if (status == TUTTI_OK && state->gathered)
        tutti__state_drop_gathered(state);
    pthread_mutex_unlock(&state->lock);
    return status;
}
