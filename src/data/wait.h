/* wait.h: waiting between the threads of a pipeline. */
#ifndef TUTTI_DATA_WAIT_H
#define TUTTI_DATA_WAIT_H

#include <pthread.h>

#include "data/dataset.h"

/* A condition on the monotonic clock. */
void tutti__wait_init(pthread_cond_t *condition);
/* When a wait that begins now has lasted too long: TUTTI_DATA_DEADLINE seconds (600). */
int64_t tutti__wait_deadline(void);
/* Waits for a signal, for TUTTI_DATA_POLL_NS at most; the mutex is held. Fails when the iterator is
 * cancelled or `deadline` has passed. */
tutti_status tutti__wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t deadline,
                         const tutti_iterator *iterator);

#endif
