/* lookup.c: the system's resolver knows no deadline, so it runs in a thread that may outlive the
 * question. */
#include "cluster/lookup.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Belongs to asker and thread; the last one frees it. */
typedef struct question {
    pthread_mutex_t lock;
    pthread_cond_t answered;
    int holders;
    bool done;
    char host[256];
    int port;
    tutti_address addresses[TUTTI_LOOKUP_MOST];
    size_t count;
    tutti_error error; /* its status says how it went */
} question;

/* Unlocks. */
static void release(question *q)
{
    bool last = --q->holders == 0;
    pthread_mutex_unlock(&q->lock);
    if (!last)
        return;
    pthread_cond_destroy(&q->answered);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

static void *ask(void *context)
{
    question *q = context;
    const tutti_world *world = tutti__world();
    tutti_address addresses[TUTTI_LOOKUP_MOST];
    size_t count = 0;
    tutti_status status =
        world->resolve(world->self, q->host, q->port, TUTTI_LOOKUP_MOST, addresses, &count);
    pthread_mutex_lock(&q->lock);
    tutti__error_capture(status, &q->error);
    memcpy(q->addresses, addresses, count * sizeof *addresses);
    q->count = count;
    q->done = true;
    pthread_cond_signal(&q->answered);
    release(q);
    return NULL;
}

static question *lookup_begin(const char *host, int port)
{
    question *q = calloc(1, sizeof *q);
    pthread_condattr_t monotonic;
    pthread_attr_t detached;
    pthread_t thread;
    if (q == NULL)
        return NULL;
    q->holders = 2;
    q->port = port;
    snprintf(q->host, sizeof q->host, "%s", host);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&q->answered, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&q->lock, NULL);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    int error = pthread_create(&thread, &detached, ask, q);
    pthread_attr_destroy(&detached);
    if (error == 0)
        return q;
    free(q);
    return NULL;
}

tutti_status tutti__lookup(const char *host, int port, int64_t deadline_ns,
                           tutti_address ret_addresses[TUTTI_LOOKUP_MOST], size_t *ret_count)
{
    const tutti_world *world = tutti__world();
    bool numeric = strchr(host, ':') != NULL || strspn(host, "0123456789.") == strlen(host);
    if (numeric || deadline_ns == TUTTI_NO_DEADLINE)
        return world->resolve(world->self, host, port, TUTTI_LOOKUP_MOST, ret_addresses, ret_count);
    question *q = lookup_begin(host, port);
    if (q == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory or thread to look up '%s'", host);
    struct timespec until = {.tv_sec = deadline_ns / 1000000000,
                             .tv_nsec = deadline_ns % 1000000000};
    pthread_mutex_lock(&q->lock);
    while (!q->done && pthread_cond_timedwait(&q->answered, &q->lock, &until) != ETIMEDOUT)
        ;
    tutti_status status = q->done ? q->error.status : TUTTI_DEADLINE;
    if (q->done && status == TUTTI_OK) {
        memcpy(ret_addresses, q->addresses, q->count * sizeof *ret_addresses);
        *ret_count = q->count;
    } else if (q->done)
        tutti__error_restore(&q->error);
    release(q);
    if (status == TUTTI_DEADLINE)
        return tutti_fail(TUTTI_DEADLINE,
                          "nobody says in time what address '%s' has; is the name "
                          "server reachable?",
                          host);
    return status;
}
