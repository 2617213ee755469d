/* hold.c: keeps commits from beginning while the devices of a run take their values. */
#include "state/state_inside.h"

void tutti__state_hold(tutti_state *state)
{
    pthread_mutex_lock(&state->lock);
    while (state->committing || state->due > 0)
        pthread_cond_wait(&state->idle, &state->lock);
    state->holds++;
    pthread_mutex_unlock(&state->lock);
}

void tutti__state_unhold(tutti_state *state)
{
    pthread_mutex_lock(&state->lock);
    if (--state->holds == 0)
        pthread_cond_broadcast(&state->idle);
    pthread_mutex_unlock(&state->lock);
}
