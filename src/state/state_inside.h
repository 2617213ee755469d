/* state_inside.h: the state's struct, shared by state.c and claim.c only. */
#ifndef TUTTI_STATE_STATE_INSIDE_H
#define TUTTI_STATE_STATE_INSIDE_H

#include "state/state.h"

#include <pthread.h>

struct tutti_state {
    pthread_mutex_t lock; /* guards everything here, every piece's value pointer, every claim */
    pthread_cond_t idle;  /* nobody commits any more, or claims were given up */
    bool committing;      /* one thread may begin a commit and another end it */
    tutti_map variables;  /* name → tutti_state_variable */
    tutti_map queues;     /* name → tutti_queue */
};

#endif
