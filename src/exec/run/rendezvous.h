/* rendezvous.h: where the partitions of one run meet: sends with recvs, and all
 * of them at the commit point. */
#ifndef TUTTI_EXEC_RUN_RENDEZVOUS_H
#define TUTTI_EXEC_RUN_RENDEZVOUS_H

#include <pthread.h>

#include "program/target.h"

typedef struct tutti_rendezvous {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct tutti_rendezvous_slot *slots[64]; /* by a hash of the channel */
    _Atomic unsigned changes; /* counts what others may wait for; changed under the lock */
    int partitions;           /* of the run */
    int arrived;              /* at the commit point */
    int left;                 /* it */
    tutti_error error;        /* the first */
    bool advances;            /* the counter that the run has a ticket for */
    bool writes;              /* some variable: the commit is a version */
    int update_count;         /* variables that must be nobody's claim when the commit begins */
    tutti_state_variable *const *updates;
} tutti_rendezvous;

tutti_status tutti__rendezvous_init(tutti_rendezvous *r, int partitions);
void tutti__rendezvous_end(tutti_rendezvous *r);

/* Leaves a value (retained) for one receiver. */
tutti_status tutti__rendezvous_send(tutti_run *run, const char *channel, tutti_tensor *value);
/* Waits for it until the run's deadline; the caller's to release. `from` and `name` are for
 * messages. */
tutti_status tutti__rendezvous_recv(tutti_run *run, const char *channel, const char *from,
                                    const char *name, tutti_tensor **ret);
/* Ends all waiting with the first error. */
void tutti__rendezvous_fail(tutti_run *run, tutti_status status);

tutti_status tutti__commit_begin(tutti_run *run, tutti_status status);
void tutti__commit_end(tutti_run *run);

#endif
