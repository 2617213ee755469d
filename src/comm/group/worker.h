/* worker.h: asynchronous calls. One thread for each group that has any: it runs queued collectives
 * in order, and between them moves messages that nobody waits for. Whoever waits for a call that
 * has not begun runs the queue himself up to there, which saves two changes of threads. Where only
 * the program's thread may call what carries messages (`alone`), that is all that runs them.
 *
 * Lock order: worker's lock before the fabric's. `running` is set while somebody runs the head of
 * the queue: collectives of a group are never run by two. */
#ifndef TUTTI_COMM_GROUP_WORKER_H
#define TUTTI_COMM_GROUP_WORKER_H

#include "comm/comm.h"

struct tutti_request {
    tutti_request *next;
    tutti_request *older, *newer; /* of those that their callers have not waited for */
    tutti_comm *comm;
    tutti_collective collective;
    tutti_comm_call call;
    int64_t *counts;     /* a copy */
    tutti_comm_job *job; /* in place of `collective`; owned */
    bool is_message;
    const char *name; /* of a message: "send", "recv", with the caller's label; for good */
    tutti_fabric_message message;
    int64_t deadline_ns;
    uint64_t arithmetic; /* the caller's (base/denormals.h), whoever runs it: bits are the same */
    atomic_bool done;
    tutti_error error;
};

typedef struct tutti_worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, changed; /* for the thread; for those who wait for calls */
    tutti_request *queue, **last, *running;
    tutti_request *messages; /* not complete yet, as far as the worker knows */
    tutti_request *held;     /* the newest that its caller has not waited for */
    uint64_t submitted;
    bool stop, asleep; /* asleep: `work` must be signalled */
    bool alone;        /* there is no thread */
} tutti_worker;

/* Starts the group's worker, if it has none; several threads may make the first call at once. */
tutti_status tutti__worker_start(tutti_comm *comm);

/* Gives the worker a request: a message, or the new tail of the queue. */
void tutti__worker_submit(tutti_worker *worker, tutti_request *request);

/* With the lock held: its caller lets it go. */
void tutti__worker_release(tutti_worker *worker, tutti_request *request);
void tutti__request_free(tutti_request *request);

/* With the lock held: runs the head of the queue on this thread. */
void tutti__worker_run_head(tutti_worker *worker);

/* With the lock held: sleeps until a call has ended, `ns` or a tenth of a second have passed. */
void tutti__worker_watch(tutti_worker *worker, int64_t ns);

#endif
