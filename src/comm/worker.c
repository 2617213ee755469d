/* worker.c: asynchronous calls. One thread for each group that has any: it runs queued collectives
 * in order, and between them moves messages that nobody waits for.
 *
 * Lock order: worker's lock before the fabric's. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/world.h"
#include "comm/comm.h"

struct tutti_request {
    tutti_request *next;
    tutti_comm *comm;
    tutti_collective collective;
    tutti_comm_call call;
    int64_t *counts; /* a copy */
    bool is_message;
    tutti_message message;
    int64_t deadline_ns;
    atomic_bool done;
    tutti_error error;
};

typedef struct tutti_worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    tutti_request *queue, **last, *running;
    tutti_request *messages; /* not complete yet, as far as the worker knows */
    bool stop;
} tutti_worker;

static void run_one(tutti_request *request)
{
    tutti_status status = tutti__collective_run(&request->collective, &request->call);
    if (status != TUTTI_OK)
        tutti__error_capture(status, &request->error);
}

/* Forgets messages that are complete; collects up to `most` of the others. */
static int open_messages(tutti_worker *worker, tutti_message **ret_messages, int most)
{
    int count = 0;
    for (tutti_request **at = &worker->messages; *at;) {
        if (atomic_load_explicit(&(*at)->message.complete, memory_order_acquire)) {
            *at = (*at)->next;
            continue;
        }
        if (count < most)
            ret_messages[count++] = &(*at)->message;
        at = &(*at)->next;
    }
    return count;
}

static void *work(void *given)
{
    tutti_comm *comm = given;
    tutti_worker *worker = comm->worker;
    pthread_mutex_lock(&worker->lock);
    for (;;) {
        tutti_request *request = worker->queue;
        if (request) {
            worker->queue = request->next;
            if (!worker->queue)
                worker->last = &worker->queue;
            worker->running = request;
            pthread_mutex_unlock(&worker->lock);
            run_one(request);
            pthread_mutex_lock(&worker->lock);
            worker->running = NULL;
            atomic_store_explicit(&request->done, true, memory_order_release);
            pthread_cond_broadcast(&worker->changed);
            continue;
        }
        if (worker->stop)
            break;
        tutti_message *open[32];
        int count = open_messages(worker, open, 32);
        if (count == 0) {
            pthread_cond_wait(&worker->changed, &worker->lock);
            continue;
        }
        /* The messages cannot go while the lock is held: their owners take them out under it. */
        int peers[32];
        bool outgoing[32];
        for (int i = 0; i < count; i++)
            peers[i] = open[i]->peer, outgoing[i] = open[i]->outgoing;
        pthread_mutex_unlock(&worker->lock);
        tutti__fabric_doze(comm->fabric, peers, outgoing, count, 20000000);
        pthread_mutex_lock(&worker->lock);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

static tutti_status worker_start(tutti_comm *comm)
{
    if (comm->worker)
        return TUTTI_OK;
    tutti_worker *worker = calloc(1, sizeof *worker);
    if (!worker)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a thread of the group");
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&worker->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&worker->lock, NULL);
    worker->last = &worker->queue;
    comm->worker = worker;
    if (pthread_create(&worker->thread, NULL, work, comm) != 0) {
        comm->worker = NULL;
        pthread_cond_destroy(&worker->changed);
        pthread_mutex_destroy(&worker->lock);
        free(worker);
        return tutti_fail(TUTTI_NO_MEMORY, "no thread for asynchronous calls");
    }
    return TUTTI_OK;
}

static tutti_request *new_request(tutti_comm *comm)
{
    tutti_request *request = calloc(1, sizeof *request);
    if (!request)
        (void)tutti_fail(TUTTI_NO_MEMORY, "no memory for a request");
    else
        request->comm = comm;
    return request;
}

static void submit(tutti_worker *worker, tutti_request *request)
{
    pthread_mutex_lock(&worker->lock);
    if (request->is_message) {
        request->next = worker->messages;
        worker->messages = request;
    } else {
        request->next = NULL;
        *worker->last = request;
        worker->last = &request->next;
    }
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
    tutti__fabric_kick(request->comm->fabric);
}

tutti_status tutti__worker_queue(tutti_comm *comm, const tutti_collective *collective,
                                 const tutti_comm_call *call, tutti_request **ret_request)
{
    TUTTI_TRY(worker_start(comm));
    tutti_request *request = new_request(comm);
    if (!request)
        return TUTTI_NO_MEMORY;
    request->collective = *collective;
    request->call = *call;
    request->collective.deadline_ns = tutti__comm_deadline(comm, call);
    if (collective->counts) {
        size_t bytes = (size_t)comm->size * sizeof *collective->counts;
        request->counts = malloc(bytes);
        if (!request->counts) {
            free(request);
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a request");
        }
        memcpy(request->counts, collective->counts, bytes);
        request->collective.counts = request->counts;
    }
    submit(comm->worker, request);
    *ret_request = request;
    return TUTTI_OK;
}

tutti_status tutti__worker_message(tutti_comm *comm, const tutti_message *message, double timeout,
                                   tutti_request **ret_request)
{
    TUTTI_TRY(worker_start(comm));
    tutti_request *request = new_request(comm);
    if (!request)
        return TUTTI_NO_MEMORY;
    request->is_message = true;
    request->deadline_ns = tutti__comm_deadline(comm, TUTTI_CALL(.timeout = timeout));
    request->message.peer = message->peer;
    request->message.context = message->context;
    request->message.tag = message->tag;
    request->message.data = message->data;
    request->message.size = message->size;
    if (message->outgoing)
        tutti__fabric_send(comm->fabric, &request->message);
    else
        tutti__fabric_recv(comm->fabric, &request->message);
    submit(comm->worker, request);
    *ret_request = request;
    return TUTTI_OK;
}

static void until(tutti_worker *worker, int64_t ns)
{
    int64_t at = tutti__now_ns() + ns;
    struct timespec time = {.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000};
    pthread_cond_timedwait(&worker->changed, &worker->lock, &time);
}

/* The worker's collectives have deadlines of their own, so this ends. */
tutti_status tutti__worker_drain(tutti_comm *comm)
{
    tutti_worker *worker = comm->worker;
    pthread_mutex_lock(&worker->lock);
    while (worker->queue || worker->running)
        until(worker, 100000000);
    pthread_mutex_unlock(&worker->lock);
    return TUTTI_OK;
}

void tutti__worker_stop(tutti_comm *comm)
{
    tutti_worker *worker = comm->worker;
    if (!worker)
        return;
    pthread_mutex_lock(&worker->lock);
    worker->stop = true;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
    tutti__fabric_kick(comm->fabric);
    pthread_join(worker->thread, NULL);
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
    comm->worker = NULL;
}

static tutti_status finish(tutti_request *request)
{
    tutti_status status = request->error.status ? tutti__error_restore(&request->error) : TUTTI_OK;
    free(request->counts);
    free(request);
    return status;
}

static tutti_status wait_message(tutti_request *request)
{
    tutti_message *message = &request->message;
    tutti_worker *worker = request->comm->worker;
    tutti_status status =
        tutti__fabric_wait(request->comm->fabric, &message, 1, request->deadline_ns);
    if (status != TUTTI_OK)
        tutti__error_capture(status, &request->error);
    pthread_mutex_lock(&worker->lock);
    for (tutti_request **at = &worker->messages; *at; at = &(*at)->next)
        if (*at == request) {
            *at = request->next;
            break;
        }
    pthread_mutex_unlock(&worker->lock);
    return finish(request);
}

tutti_status tutti_comm_wait(tutti_request *request)
{
    if (request->is_message)
        return wait_message(request);
    tutti_worker *worker = request->comm->worker;
    for (int i = 0; i < 1000; i++) {
        if (atomic_load_explicit(&request->done, memory_order_acquire))
            break;
        TUTTI_PAUSE();
    }
    pthread_mutex_lock(&worker->lock);
    while (!atomic_load_explicit(&request->done, memory_order_acquire))
        until(worker, 100000000);
    pthread_mutex_unlock(&worker->lock);
    return finish(request);
}

bool tutti_comm_test(tutti_request *request)
{
    if (!request->is_message)
        return atomic_load_explicit(&request->done, memory_order_acquire);
    if (!atomic_load(&request->message.complete))
        tutti__fabric_progress(request->comm->fabric);
    return atomic_load_explicit(&request->message.complete, memory_order_acquire) ||
           atomic_load(&request->comm->fabric->broken) || tutti__now_ns() >= request->deadline_ns;
}
