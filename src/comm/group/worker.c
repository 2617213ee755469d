/* worker.c: the thread that runs a group's asynchronous calls, and moves messages that nobody waits
 * for between them. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/denormals.h"
#include "base/world.h"
#include "comm/group/worker.h"

/* After work the thread looks for more by itself for a while, before it has to be woken; not where
 * messages go through the kernel, beside whose work waking is nothing. */
enum { NAP_NS = 50000, NAPS = 20, TIMER_SLACK_NS = 1000 };
static const int64_t slice_ns = 100000000;

void tutti__worker_run_head(tutti_worker *worker)
{
    tutti_request *request = worker->queue;
    worker->queue = request->next;
    if (!worker->queue)
        worker->last = &worker->queue;
    worker->running = request;
    pthread_mutex_unlock(&worker->lock);
    tutti_comm_job *job = request->job;
    uint64_t before = tutti__denormals_get();
    tutti__denormals_set(request->arithmetic);
    tutti_status status = job ? job->run(request->comm, job)
                              : tutti__collective_run(&request->collective, &request->call);
    if (status != TUTTI_OK)
        tutti__error_capture(status, &request->error);
    tutti__denormals_set(before);
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

void tutti__worker_watch(tutti_worker *worker, int64_t ns)
{
    wait_on(&worker->changed, &worker->lock, ns < slice_ns ? ns : slice_ns);
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

static void *work(void *arg)
{
    tutti_comm *comm = arg;
    tutti_worker *worker = atomic_load(&comm->worker);
    int naps = naps_of(comm);
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
    ask_for_short_slices();
    tutti__fabric_beside(true);
    pthread_mutex_lock(&worker->lock);
    while (!worker->stop || worker->queue) {
        if (worker->queue && !worker->running) {
            tutti__worker_run_head(worker);
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
    for (tutti_request *each = worker->held, *older; each; each = older) {
        older = each->older;
        tutti__request_free(each);
    }
    free(worker);
}

tutti_status tutti__worker_start(tutti_comm *comm)
{
    static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
    tutti_status status = TUTTI_OK;
    if (atomic_load_explicit(&comm->worker, memory_order_acquire))
        return TUTTI_OK;
    pthread_mutex_lock(&starting);
    tutti_worker *worker = atomic_load(&comm->worker) ? NULL : worker_new();
    if (worker) {
        worker->alone = comm->fabric->one_thread;
        atomic_store(&comm->worker, worker);
        if (!worker->alone && pthread_create(&worker->thread, NULL, work, comm) != 0) {
            atomic_store(&comm->worker, NULL);
            worker_free(worker);
        }
    }
    if (!atomic_load(&comm->worker))
        status = tutti_fail(TUTTI_NO_MEMORY, "no thread for asynchronous calls");
    pthread_mutex_unlock(&starting);
    return status;
}

void tutti__worker_submit(tutti_worker *worker, tutti_request *request)
{
    pthread_mutex_lock(&worker->lock);
    worker->submitted++;
    request->older = worker->held;
    if (request->older)
        request->older->newer = request;
    worker->held = request;
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

void tutti__worker_release(tutti_worker *worker, tutti_request *request)
{
    if (request->older)
        request->older->newer = request->newer;
    if (request->newer)
        request->newer->older = request->older;
    else
        worker->held = request->older;
}

/* The worker's collectives have deadlines of their own, so this ends. */
tutti_status tutti__worker_drain(tutti_comm *comm)
{
    tutti_worker *worker = comm->worker;
    pthread_mutex_lock(&worker->lock);
    while (worker->queue || worker->running) {
        if (!worker->running)
            tutti__worker_run_head(worker);
        else
            tutti__worker_watch(worker, INT64_MAX);
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
    if (worker->alone)
        (void)tutti__worker_drain(comm);
    else
        pthread_join(worker->thread, NULL);
    worker_free(worker);
    atomic_store(&comm->worker, NULL);
}
