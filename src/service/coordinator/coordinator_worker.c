/* coordinator_worker.c: workers that are threads of this process, and what a closure's function
 * may ask for. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "service/coordinator/coordinator.h"

/* ---- the store, and messages ---- */

static void worker_receive(void *context, const tutti_store_message *message, int64_t now_ns)
{
    tutti_coordinator_worker *w = context;
    TUTTI_UNUSED(now_ns);
    if (message->type == TUTTI_STORE_RUN && message->text[0] == '\0')
        w->coordinator->ends = true; /* no function has this name: there is no more work */
    else
        tutti__executor_receive(&w->executor, message);
    w->wake = true;
}

/* In a job: whether rank 0 is there. */
static void worker_view(void *context, const tutti_store_view *view, int64_t now_ns)
{
    tutti_coordinator_worker *w = context;
    bool there =
        w->coordinator->role != TUTTI_COORDINATOR_WORKER || tutti__store_view_find(view, 0) != NULL;
    if (there)
        w->coordinator->left_ns = 0;
    else if (w->coordinator->left_ns == 0)
        w->coordinator->left_ns = now_ns > 0 ? now_ns : 1;
}

tutti_status tutti__coordinator_join_store(tutti_coordinator *c, tutti_coordinator_worker *w,
                                           tutti_store_client *client)
{
    w->client = client;
    TUTTI_TRY(tutti__store_placement_create(c->options.placement, c->place, c->place_user,
                                            c->options.servers, &w->placement));
    return tutti__store_worker_open(client, &c->drive, &w->placement, &w->store);
}

void tutti__coordinator_leave_store(tutti_coordinator_worker *w)
{
    tutti__store_worker_close(w->store);
    tutti__store_placement_free(&w->placement);
    w->store = NULL;
}

static tutti_status listen_to_coordinator(tutti_coordinator_worker *w)
{
    const tutti_store_client_options *o = &w->client->options;
    tutti__executor_init(&w->executor, o->node, o->incarnation, &o->transport);
    return tutti__store_client_attach(
        w->client,
        &(tutti_store_guest){.context = w, .receive = worker_receive, .view = worker_view},
        w->coordinator->drive.now(w->coordinator->drive.context));
}

/* ---- running ---- */

static tutti_closure_function *find_function(const tutti_coordinator *c, const char *name)
{
    for (size_t i = 0; i < c->functions.count; i++)
        if (strcmp(c->functions.data[i].name, name) == 0)
            return &c->functions.data[i];
    tutti_fail(TUTTI_NOT_FOUND, "this worker has no function '%s'; register it in all processes",
               name);
    return NULL;
}

static void forget_ranges(tutti_coordinator_worker *w)
{
    for (size_t i = 0; i < w->coordinator->datasets.count; i++) {
        tutti_closure_dataset *d = &w->coordinator->datasets.data[i];
        tutti_iterator_close(d->ranges[w->index]);
        d->ranges[w->index] = NULL;
    }
}

static tutti_status call_function(tutti_closure *closure)
{
    const tutti_closure_function *f =
        find_function(closure->worker->coordinator, closure->run->function);
    if (!f)
        return TUTTI_NOT_FOUND;
    TUTTI_TRY(tutti__tensor_list_read(closure->run->arguments, closure->run->argument_bytes,
                                      &closure->argument_count, closure->arguments));
    tutti__store_worker_begin_closure(closure->worker->store, closure->run->first_key,
                                      closure->run->keys);
    tutti__error_forget();
    tutti_status status = tutti__error_say(f->fn(closure, f->user), f->name);
    tutti__store_worker_end_closure(closure->worker->store);
    return status;
}

/* *ret_dies: a test wants this worker to be lost with the closure. */
static void run_closure(tutti_coordinator_worker *w, const tutti_closure_run *run,
                        tutti_closure_outcome *ret_outcome, bool *ret_dies)
{
    tutti_closure closure = {.worker = w, .run = run};
    tutti_status status = call_function(&closure);
    if (tutti__closure_outcome_make(status, status == TUTTI_OK ? "" : tutti_error_message(),
                                    closure.results.data, closure.results.size,
                                    ret_outcome) != TUTTI_OK)
        *ret_outcome = (tutti_closure_outcome){.status = TUTTI_NO_MEMORY};
    for (int i = 0; i < closure.argument_count; i++)
        tutti_tensor_release(closure.arguments[i]);
    tutti__text_free(&closure.results);
    forget_ranges(w);
    *ret_dies = closure.dies;
}

/* As if its process had been killed, and another started. */
static tutti_status die_and_come_back(tutti_coordinator_worker *w)
{
    tutti_coordinator *c = w->coordinator;
    c->drive.enter(c->drive.context);
    tutti__store_client_detach(w->client, w);
    tutti__executor_free(&w->executor);
    c->drive.leave(c->drive.context);
    tutti__coordinator_leave_store(w);
    TUTTI_TRY(tutti__store_local_kill_worker(c->local, w->number));
    TUTTI_TRY(tutti__store_local_join_worker(c->local, w->number));
    TUTTI_TRY(tutti__coordinator_join_store(c, w, tutti__store_local_client(c->local, w->number)));
    TUTTI_TRY(tutti__coordinator_make_variables(c, w));
    c->drive.enter(c->drive.context);
    tutti_status status = listen_to_coordinator(w);
    c->drive.leave(c->drive.context);
    return status;
}

/* The coordinator may come back; for ever nobody waits for it. */
static bool is_abandoned(const tutti_coordinator *c)
{
    int64_t now = c->drive.now(c->drive.context);
    return c->left_ns > 0 && (double)(now - c->left_ns) / 1e9 > c->options.timeout;
}

/* The next closure, or NULL at the end. */
static const tutti_closure_run *await_closure(tutti_coordinator_worker *w)
{
    tutti_coordinator *c = w->coordinator;
    const tutti_closure_run *run = NULL;
    c->drive.enter(c->drive.context);
    while (!c->ends && !is_abandoned(c) && !(run = tutti__executor_take(&w->executor))) {
        w->wake = false;
        c->drive.wait(c->drive.context, &w->wake); /* a deadline that passes changes nothing */
    }
    c->drive.leave(c->drive.context);
    return run;
}

/* Until the end, or until a test's worker cannot come back. */
static tutti_status work_on(tutti_coordinator_worker *w)
{
    tutti_coordinator *c = w->coordinator;
    const tutti_closure_run *run;
    tutti_status status = TUTTI_OK;
    while (status == TUTTI_OK && (run = await_closure(w))) {
        tutti_closure_outcome outcome;
        bool dies;
        run_closure(w, run, &outcome, &dies);
        if (dies) {
            tutti__closure_outcome_free(&outcome);
            status = die_and_come_back(w);
            continue;
        }
        c->drive.enter(c->drive.context);
        tutti__executor_finish(&w->executor, &outcome);
        c->drive.leave(c->drive.context);
    }
    return status;
}

tutti_status tutti__coordinator_work(tutti_coordinator_worker *w)
{
    tutti_coordinator *c = w->coordinator;
    c->drive.enter(c->drive.context);
    tutti_status status = listen_to_coordinator(w);
    c->drive.leave(c->drive.context);
    TUTTI_TRY(status);
    TUTTI_TRY(work_on(w));
    return c->ends ? TUTTI_OK
                   : tutti_fail(TUTTI_DEADLINE,
                                "the coordinator (rank 0) has been gone for %.0f s; this worker "
                                "waits no longer",
                                c->options.timeout);
}

static void *work(void *context)
{
    tutti_coordinator_worker *w = context;
    tutti_coordinator *c = w->coordinator;
    tutti_status status = work_on(w);
    if (status != TUTTI_OK) {
        c->drive.enter(c->drive.context);
        tutti__error_capture(status, &c->broken);
        c->arrived = true;
        c->drive.leave(c->drive.context);
    }
    return NULL;
}

tutti_status tutti__coordinator_start_worker(tutti_coordinator_worker *w)
{
    tutti_coordinator *c = w->coordinator;
    c->drive.enter(c->drive.context);
    tutti_status status = listen_to_coordinator(w);
    c->drive.leave(c->drive.context);
    TUTTI_TRY(status);
    if (pthread_create(&w->thread, NULL, work, w) != 0)
        return tutti_fail(TUTTI_NO_MEMORY, "worker %d: no thread", w->number);
    w->started = true;
    return TUTTI_OK;
}

void tutti__coordinator_stop_worker(tutti_coordinator_worker *w)
{
    if (w->started)
        pthread_join(w->thread, NULL);
    w->started = false;
    tutti__executor_free(&w->executor);
}

/* ---- in a closure ---- */

int tutti_closure_worker(const tutti_closure *closure)
{
    return closure->worker->number;
}

int tutti_closure_workers(const tutti_closure *closure)
{
    return closure->worker->coordinator->options.workers;
}

uint64_t tutti_closure_number(const tutti_closure *closure)
{
    return closure->run->number;
}

tutti_tensor *tutti_closure_argument(const tutti_closure *closure, int index)
{
    return index >= 0 && index < closure->argument_count ? closure->arguments[index] : NULL;
}

tutti_status tutti_closure_result(tutti_closure *closure, tutti_tensor *result)
{
    return tutti__tensor_list_add(&closure->results, result);
}

void tutti__closure_dies(tutti_closure *closure)
{
    closure->dies = true;
}

static tutti_closure_dataset *find_dataset(const tutti_closure *closure, const char *name)
{
    tutti_coordinator *c = closure->worker->coordinator;
    for (size_t i = 0; i < c->datasets.count; i++)
        if (strcmp(c->datasets.data[i].name, name) == 0)
            return &c->datasets.data[i];
    tutti_fail(TUTTI_NOT_FOUND,
               "workers have no dataset '%s'; make it with "
               "tutti_coordinator_dataset",
               name);
    return NULL;
}

tutti_status tutti_closure_next(tutti_closure *closure, const char *name,
                                tutti_element *ret_element)
{
    tutti_closure_dataset *d = find_dataset(closure, name);
    int n = closure->worker->index;
    *ret_element = (tutti_element){0};
    if (!d)
        return TUTTI_NOT_FOUND;
    for (int fresh = 0; fresh < 2; fresh++) {
        if (!d->at[n])
            d->at[n] = tutti_iterate(d->of[n], d->epochs[n]++);
        if (!d->at[n])
            return tutti_job_check(closure->worker->coordinator->job);
        TUTTI_TRY(tutti_next_element(d->at[n], ret_element));
        if (ret_element->count > 0)
            return TUTTI_OK;
        tutti_iterator_close(d->at[n]);
        d->at[n] = NULL;
    }
    return tutti_fail(TUTTI_INVALID, "dataset '%s' of worker %d has no elements", name, n);
}

tutti_status tutti_closure_range(const tutti_closure *closure, int64_t *ret_first,
                                 int64_t *ret_count)
{
    tutti_tensor *range = tutti_closure_argument(closure, 0);
    if (!range || tutti_tensor_dtype(range) != TUTTI_I64 || tutti_tensor_count(range) != 2)
        return tutti_fail(TUTTI_INVALID,
                          "closure '%s' has no range; tutti_coordinator_evaluate gives it one",
                          closure->run->function);
    *ret_first = tutti_tensor_get_int(range, 0);
    *ret_count = tutti_tensor_get_int(range, 1);
    return TUTTI_OK;
}

tutti_status tutti_closure_range_next(tutti_closure *closure, const char *name,
                                      tutti_element *ret_element)
{
    tutti_closure_dataset *d = find_dataset(closure, name);
    int n = closure->worker->index;
    int64_t first, count;
    tutti_position at;
    *ret_element = (tutti_element){0};
    if (!d)
        return TUTTI_NOT_FOUND;
    TUTTI_TRY(tutti_closure_range(closure, &first, &count));
    if (!d->ranges[n]) {
        d->ranges[n] = tutti_iterate(d->of[n], 0);
        if (!d->ranges[n])
            return tutti_job_check(closure->worker->coordinator->job);
        TUTTI_TRY(tutti_iterator_skip(d->ranges[n], first));
    }
    tutti_iterator_save(d->ranges[n], &at);
    return at.delivered < first + count ? tutti_next_element(d->ranges[n], ret_element) : TUTTI_OK;
}

enum { MOST_VARIABLES = 1024 };

static tutti_status find_variables(const tutti_closure *closure, int count,
                                   const char *const *names, int *ret)
{
    if (count < 1 || count > MOST_VARIABLES)
        return tutti_fail(TUTTI_OUT_OF_RANGE, "%d variables at once; 1 to %d are possible", count,
                          MOST_VARIABLES);
    for (int i = 0; i < count; i++) {
        ret[i] = tutti__coordinator_variable(closure->worker->coordinator, names[i]);
        if (ret[i] < 0)
            return TUTTI_NOT_FOUND;
    }
    return TUTTI_OK;
}

tutti_status tutti_closure_pull(tutti_closure *closure, int count, const char *const *variables,
                                tutti_tensor **ret_values)
{
    int numbers[MOST_VARIABLES];
    TUTTI_TRY(find_variables(closure, count, variables, numbers));
    return tutti__store_worker_pull(closure->worker->store, count, numbers, false, ret_values);
}

tutti_status tutti_closure_push(tutti_closure *closure, int count, const char *const *variables,
                                tutti_tensor *const *gradients)
{
    int numbers[MOST_VARIABLES];
    TUTTI_TRY(find_variables(closure, count, variables, numbers));
    return tutti__store_worker_push(closure->worker->store, count, numbers, gradients, false, NULL);
}

tutti_status tutti_closure_pull_rows(tutti_closure *closure, const char *variable,
                                     tutti_tensor *rows, tutti_tensor **ret_values)
{
    int number;
    TUTTI_TRY(find_variables(closure, 1, &variable, &number));
    return tutti__store_worker_pull_rows(closure->worker->store, number, rows, ret_values);
}

tutti_status tutti_closure_push_rows(tutti_closure *closure, const char *variable,
                                     tutti_tensor *rows, tutti_tensor *gradient)
{
    int number;
    TUTTI_TRY(find_variables(closure, 1, &variable, &number));
    return tutti__store_worker_push_rows(closure->worker->store, number, rows, gradient);
}
