/* worker.c: asynchronous calls. One thread for each group that has any: it runs queued collectives
 * in order, and between them moves messages that nobody waits for. Whoever waits for a call that
 * has not begun runs the queue himself up to there, which saves two changes of threads.
 *
 * Lock order: worker's lock before the fabric's. `running` is set while somebody runs the head of
 * the queue: collectives of a group are never run by two. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/world.h"
#include "comm/comm.h"

/* After work the thread looks for more by itself for a while, before it has to be woken; not where
 * messages go through the kernel, beside whose work waking is nothing. */
enum { NAP_NS = 50000, NAPS = 20, TIMER_SLACK_NS = 1000 };
static const int64_t slice_ns = 100000000;

struct tutti_request {
    tutti_request *next;
    tutti_comm *comm;
    tutti_collective collective;
    tutti_comm_call call;
    int64_t *counts;     /* a copy */
    tutti_comm_job *job; /* in place of `collective`; owned */
    bool is_message;
    tutti_message message;
    int64_t deadline_ns;
    atomic_bool done;
    tutti_error error;
};

typedef struct tutti_worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, changed; /* for the thread; for those who wait for calls */
    tutti_request *queue, **last, *running;
    tutti_request *messages; /* not complete yet, as far as the worker knows */
    uint64_t submitted;
    bool stop, asleep; /* asleep: `work` must be signalled */
} tutti_worker;

/* With the lock held: runs the head of the queue on this thread. */
static void run_head(tutti_worker *worker)
{
    tutti_request *request = worker->queue;
    worker->queue = request->next;
    if (!worker->queue)
        worker->last = &worker->queue;
    worker->running = request;
    pthread_mutex_unlock(&worker->lock);
    tutti_comm_job *job = request->job;
    tutti_status status = job ? job->run(request->comm, job)
                              : tutti__collective_run(&request->collective, &request->call);
    if (status != TUTTI_OK)
        tutti__error_capture(status, &request->error);
    pthread_mutex_lock(&worker->lock);
    worker->running = NULL;
    atomic_store_explicit(&request->done, true, memory_order_release);
    pthread_cond_broadcast(&worker->changed);
    if (worker->queue && worker->asleep)
        pthread_cond_signal(&worker->work);
}

/* Forgets messages that are complete; collects up to `most` of the others. */
static int open_messages(tutti_worker *worker, int *ret_peers, bool *ret_outgoing, int most)
{
    int count = 0;
    for (tutti_request **at = &worker->messages; *at;) {
        if (atomic_load_explicit(&(*at)->message.complete, memory_order_acquire)) {
            *at = (*at)->next;
            continue;
        }
        if (count < most) {
            ret_peers[count] = (*at)->message.peer;
            ret_outgoing[count++] = (*at)->message.outgoing;
        }
        at = &(*at)->next;
    }
    return count;
}

static void wait_on(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t ns)
{
    int64_t at = tutti__now_ns() + ns;
    struct timespec time = {.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000};
    pthread_cond_timedwait(condition, lock, &time);
}

static int naps_of(const tutti_comm *comm)
{
    return comm->fabric->kick >= 0 ? 0 : NAPS;
}

/* With the lock held: some messages are moved, or the thread rests. */
static void idle(tutti_comm *comm, tutti_worker *worker, int *naps)
{
    int peers[32];
    bool outgoing[32];
    uint64_t submitted = worker->submitted;
    int count = open_messages(worker, peers, outgoing, 32);
    if (count > 0) {
        pthread_mutex_unlock(&worker->lock);
        tutti__fabric_doze(comm->fabric, peers, outgoing, count, 20000000);
        pthread_mutex_lock(&worker->lock);
    } else if (*naps > 0) {
        wait_on(&worker->work, &worker->lock, NAP_NS);
        *naps = worker->submitted == submitted ? *naps - 1 : naps_of(comm);
    } else {
        worker->asleep = true;
        pthread_cond_wait(&worker->work, &worker->lock);
        worker->asleep = false;
        *naps = naps_of(comm);
    }
}

/* The thread runs beside kernels that want all CPUs, and works a little at a time, when bytes have
 * come. A short slice makes the scheduler let it in at once: else the wire stands still until the
 * kernels' slice, some milliseconds, is over. Linux before 6.12 ignores it. */
static void ask_for_short_slices(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns, deadline, period;
    } wanted = {.size = sizeof wanted, .runtime_ns = 100000};
    errno = 0;
    wanted.nice = getpriority(PRIO_PROCESS, 0);
    if (errno == 0 && sched_getscheduler(0) == SCHED_OTHER)
        (void)syscall(SYS_sched_setattr, 0, &wanted, 0);
}

static void *work(void *given)
{
    tutti_comm *comm = given;
    tutti_worker *worker = atomic_load(&comm->worker);
    int naps = naps_of(comm);
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
    ask_for_short_slices();
    tutti__fabric_beside(true);
    pthread_mutex_lock(&worker->lock);
    while (!worker->stop || worker->queue) {
        if (worker->queue && !worker->running) {
            run_head(worker);
            naps = naps_of(comm);
        } else {
            idle(comm, worker, &naps);
        }
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

static tutti_worker *worker_new(void)
{
    tutti_worker *worker = calloc(1, sizeof *worker);
    if (!worker)
        return NULL;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&worker->changed, &attributes);
    pthread_cond_init(&worker->work, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&worker->lock, NULL);
    worker->last = &worker->queue;
    return worker;
}

static void worker_free(tutti_worker *worker)
{
    pthread_cond_destroy(&worker->changed);
    pthread_cond_destroy(&worker->work);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
}

/* Several threads may start the first call at once. */
static tutti_status worker_start(tutti_comm *comm)
{
    static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
    tutti_status status = TUTTI_OK;
    if (atomic_load_explicit(&comm->worker, memory_order_acquire))
        return TUTTI_OK;
    pthread_mutex_lock(&starting);
    tutti_worker *worker = atomic_load(&comm->worker) ? NULL : worker_new();
    if (worker) {
        atomic_store(&comm->worker, worker);
        if (pthread_create(&worker->thread, NULL, work, comm) != 0) {
            atomic_store(&comm->worker, NULL);
            worker_free(worker);
        }
    }
    if (!atomic_load(&comm->worker))
        status = tutti_fail(TUTTI_NO_MEMORY, "no thread for asynchronous calls");
    pthread_mutex_unlock(&starting);
    return status;
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
    worker->submitted++;
    if (request->is_message) {
        request->next = worker->messages;
        worker->messages = request;
    } else {
        request->next = NULL;
        *worker->last = request;
        worker->last = &request->next;
    }
    if (worker->asleep)
        pthread_cond_signal(&worker->work);
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

tutti_status tutti__worker_job(tutti_comm *comm, tutti_comm_job *job, tutti_request **ret_request)
{
    tutti_status status = worker_start(comm);
    tutti_request *request = status == TUTTI_OK ? new_request(comm) : NULL;
    if (!request) {
        free(job);
        return status == TUTTI_OK ? TUTTI_NO_MEMORY : status;
    }
    request->job = job;
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

/* The worker's collectives have deadlines of their own, so this ends. */
tutti_status tutti__worker_drain(tutti_comm *comm)
{
    tutti_worker *worker = comm->worker;
    pthread_mutex_lock(&worker->lock);
    while (worker->queue || worker->running) {
        if (!worker->running)
            run_head(worker);
        else
            wait_on(&worker->changed, &worker->lock, slice_ns);
    }
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
    pthread_cond_signal(&worker->work);
    pthread_mutex_unlock(&worker->lock);
    tutti__fabric_kick(comm->fabric);
    pthread_join(worker->thread, NULL);
    worker_free(worker);
    atomic_store(&comm->worker, NULL);
}

static tutti_status finish(tutti_request *request)
{
    tutti_status status = request->error.status ? tutti__error_restore(&request->error) : TUTTI_OK;
    free(request->counts);
    free(request->job);
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

static bool done(const tutti_request *request)
{
    return atomic_load_explicit(&request->done, memory_order_acquire);
}

/* Short calls of another thread end while one looks. */
static void spin_for(const tutti_request *request)
{
    const tutti_fabric *fabric = request->comm->fabric;
    for (int i = 0; i < fabric->spin / 4 && !done(request); i++)
        TUTTI_PAUSE();
}

tutti_status tutti_comm_wait(tutti_request *request)
{
    if (request->is_message)
        return wait_message(request);
    tutti_worker *worker = request->comm->worker;
    pthread_mutex_lock(&worker->lock);
    while (!done(request)) {
        if (!worker->running) {
            run_head(worker); /* this one, or one before it */
            continue;
        }
        pthread_mutex_unlock(&worker->lock);
        spin_for(request);
        pthread_mutex_lock(&worker->lock);
        if (!done(request) && worker->running)
            wait_on(&worker->changed, &worker->lock, slice_ns);
    }
    pthread_mutex_unlock(&worker->lock);
    return finish(request);
}

tutti_status tutti_comm_wait_for(tutti_request *request, double seconds)
{
    int64_t until = tutti__now_ns() + (int64_t)(fmin(fmax(seconds, 0), 1e9) * 1e9), left;
    tutti_worker *worker = request->comm->worker;
    while (!tutti_comm_test(request)) {
        if ((left = until - tutti__now_ns()) <= 0)
            return tutti_fail(TUTTI_DEADLINE, "a call of rank %d is not done after %g s",
                              request->comm->rank, seconds);
        left = request->is_message && left > 1000000 ? 1000000 : left; /* the worker moves it */
        pthread_mutex_lock(&worker->lock);
        if (request->is_message || !done(request))
            wait_on(&worker->changed, &worker->lock, left < slice_ns ? left : slice_ns);
        pthread_mutex_unlock(&worker->lock);
    }
    return tutti_comm_wait(request);
}

bool tutti_comm_test(tutti_request *request)
{
    if (!request->is_message)
        return done(request);
    if (!atomic_load(&request->message.complete))
        tutti__fabric_progress(request->comm->fabric);
    return atomic_load_explicit(&request->message.complete, memory_order_acquire) ||
           atomic_load(&request->comm->fabric->broken) || tutti__now_ns() >= request->deadline_ns;
}
