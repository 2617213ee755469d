/* request.c: an asynchronous call as its caller holds it: made, waited for, looked at. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/denormals.h"
#include "base/pause.h"
#include "base/recycle.h"
#include "base/require.h"
#include "base/world.h"
#include "comm/group/worker.h"

static tutti_request *new_request(tutti_comm *comm)
{
    tutti_request *request = tutti__recycle_take(sizeof *request);
    if (!request)
        (void)tutti_fail(TUTTI_NO_MEMORY, "no memory for a request");
    else
        *request = (tutti_request){.comm = comm, .arithmetic = tutti__denormals_get()};
    return request;
}

tutti_status tutti__worker_queue(tutti_comm *comm, const tutti_collective *collective,
                                 const tutti_comm_call *call, tutti_request **ret_request)
{
    TUTTI_TRY(tutti__worker_start(comm));
    tutti_request *request = new_request(comm);
    if (!request)
        return TUTTI_NO_MEMORY;
    request->collective = *collective;
    request->call = *call;
    request->collective.deadline_ns = tutti__comm_deadline(comm, call);
    if (collective->counts) {
        size_t bytes = (size_t)comm->size * sizeof *collective->counts;
        request->counts = tutti__recycle_zeros(1, bytes);
        if (!request->counts) {
            tutti__recycle_give(request, sizeof *request);
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a request");
        }
        memcpy(request->counts, collective->counts, bytes);
        request->collective.counts = request->counts;
    }
    tutti__worker_submit(comm->worker, request);
    *ret_request = request;
    return TUTTI_OK;
}

tutti_status tutti__worker_job(tutti_comm *comm, tutti_comm_job *job, tutti_request **ret_request)
{
    tutti_status status = tutti__worker_start(comm);
    tutti_request *request = status == TUTTI_OK ? new_request(comm) : NULL;
    if (!request) {
        free(job);
        return status == TUTTI_OK ? TUTTI_NO_MEMORY : status;
    }
    request->job = job;
    tutti__worker_submit(comm->worker, request);
    *ret_request = request;
    return TUTTI_OK;
}

tutti_status tutti__worker_message(tutti_comm *comm, const tutti_fabric_message *message,
                                   const char *name, int64_t deadline_ns,
                                   tutti_request **ret_request)
{
    TUTTI_TRY(tutti__worker_start(comm));
    tutti_request *request = new_request(comm);
    if (!request)
        return TUTTI_NO_MEMORY;
    request->is_message = true;
    request->name = name;
    request->deadline_ns = deadline_ns;
    request->message.peer = message->peer;
    request->message.context = message->context;
    request->message.tag = message->tag;
    request->message.data = message->data;
    request->message.size = message->size;
    if (message->outgoing)
        tutti__fabric_send(comm->fabric, &request->message);
    else
        tutti__fabric_recv(comm->fabric, &request->message);
    tutti__worker_submit(comm->worker, request);
    *ret_request = request;
    return TUTTI_OK;
}

/* One that is not complete, of those that go or of those that come; NULL: there is none. */
static tutti_request *find_open(tutti_worker *worker, bool outgoing)
{
    pthread_mutex_lock(&worker->lock);
    tutti_request *request = worker->messages;
    while (request && (request->message.outgoing != outgoing ||
                       atomic_load_explicit(&request->message.complete, memory_order_acquire)))
        request = request->next;
    pthread_mutex_unlock(&worker->lock);
    return request;
}

static void cancel_open(tutti_comm *comm, bool outgoing)
{
    tutti_request *request;
    while ((request = find_open(comm->worker, outgoing)))
        tutti__fabric_cancel(comm->fabric, &request->message);
}

void tutti__worker_end_receives(tutti_comm *comm)
{
    cancel_open(comm, false);
}

tutti_status tutti__worker_end_messages(tutti_comm *comm, bool patient)
{
    tutti_worker *worker = comm->worker;
    tutti_status status = TUTTI_OK, ended;
    tutti_request *request;
    while (patient && (request = find_open(worker, true))) {
        ended = tutti__comm_await(comm, &request->message, request->name, request->deadline_ns);
        status = status == TUTTI_OK ? ended : status;
    }
    cancel_open(comm, false);
    cancel_open(comm, true);
    return status;
}

void tutti__request_free(tutti_request *request)
{
    tutti__recycle_free(request->counts);
    free(request->job);
    tutti__recycle_give(request, sizeof *request);
}

static tutti_status request_finish(tutti_request *request)
{
    tutti_status status = request->error.status ? tutti__error_restore(&request->error) : TUTTI_OK;
    tutti__request_free(request);
    return status;
}

static tutti_status wait_message(tutti_request *request)
{
    tutti_worker *worker = request->comm->worker;
    tutti_status status =
        tutti__comm_await(request->comm, &request->message, request->name, request->deadline_ns);
    if (status != TUTTI_OK)
        tutti__error_capture(status, &request->error);
    pthread_mutex_lock(&worker->lock);
    for (tutti_request **at = &worker->messages; *at; at = &(*at)->next)
        if (*at == request) {
            *at = request->next;
            break;
        }
    tutti__worker_release(worker, request);
    pthread_mutex_unlock(&worker->lock);
    return request_finish(request);
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
        tutti__pause();
}

tutti_status tutti_comm_wait(tutti_request *request)
{
    TUTTI_REQUIRE(request);
    if (request->is_message)
        return wait_message(request);
    tutti_worker *worker = request->comm->worker;
    pthread_mutex_lock(&worker->lock);
    while (!done(request)) {
        if (!worker->running) {
            tutti__worker_run_head(worker); /* this one, or one before it */
            continue;
        }
        pthread_mutex_unlock(&worker->lock);
        spin_for(request);
        pthread_mutex_lock(&worker->lock);
        if (!done(request) && worker->running)
            tutti__worker_watch(worker, INT64_MAX);
    }
    tutti__worker_release(worker, request);
    pthread_mutex_unlock(&worker->lock);
    return request_finish(request);
}

tutti_status tutti_comm_wait_for(tutti_request *request, double seconds)
{
    TUTTI_REQUIRE(request);
    int64_t until = tutti__now_ns() + (int64_t)(fmin(fmax(seconds, 0), 1e9) * 1e9), left;
    tutti_worker *worker = request->comm->worker;
    while (!tutti_comm_test(request)) {
        if ((left = until - tutti__now_ns()) <= 0)
            return tutti_fail(TUTTI_DEADLINE, "a call of rank %d is not done after %g s",
                              request->comm->rank, seconds);
        left = request->is_message && left > 1000000 ? 1000000 : left; /* the worker moves it */
        pthread_mutex_lock(&worker->lock);
        if (request->is_message || !done(request))
            tutti__worker_watch(worker, left);
        pthread_mutex_unlock(&worker->lock);
    }
    tutti_status status = tutti_comm_wait(request);
    return status == TUTTI_DEADLINE ? TUTTI_CANCELLED : status; /* the handle is gone */
}

/* Where nobody else runs calls, who looks at one does. */
static void run_alone(const tutti_request *request)
{
    tutti_worker *worker = request->comm->worker;
    if (!worker->alone)
        return;
    pthread_mutex_lock(&worker->lock);
    while (!done(request) && !worker->running)
        tutti__worker_run_head(worker);
    pthread_mutex_unlock(&worker->lock);
}

bool tutti_comm_test(tutti_request *request)
{
    if (!request)
        return true;
    if (!request->is_message) {
        run_alone(request);
        return done(request);
    }
    if (!atomic_load(&request->message.complete))
        tutti__fabric_progress(request->comm->fabric);
    return atomic_load_explicit(&request->message.complete, memory_order_acquire) ||
           atomic_load(&request->comm->fabric->broken) || tutti__now_ns() >= request->deadline_ns;
}
