/* coordinator.c: a coordinator over servers and workers that are threads of this process: see
 * tutti/coordinator.h. The drive's lock guards the dispatcher, the executors and the journal. */
#include "service/coordinator/coordinator.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ops/build.h"

#define TIMEOUT 300.0
enum { OPEN_CLOSURES = 65536 };

struct tutti_future {
    tutti_coordinator *coordinator;
    uint64_t number;
};

/* ---- messages ---- */

static bool has_arrived(const tutti_coordinator *c)
{
    if (c->broken.status != TUTTI_OK)
        return true;
    if (c->awaited == 0)
        return c->dispatcher.open == 0 && c->finishing == 0;
    const tutti_closure_entry *e = tutti__dispatcher_find(&c->dispatcher, c->awaited);
    return !e || e->state == TUTTI_CLOSURE_DONE;
}

static void finish_keys(tutti_coordinator *c, int64_t now_ns);

static void keep_going(tutti_coordinator *c, tutti_status status, int64_t now_ns)
{
    if (status != TUTTI_OK && c->broken.status == TUTTI_OK)
        tutti__error_capture(status, &c->broken);
    finish_keys(c, now_ns);
    c->arrived = has_arrived(c);
}

static void finish_done(void *context, const tutti_store_message *answer)
{
    tutti_coordinator *c = context;
    tutti_status status = TUTTI_OK;
    int64_t now = c->drive.now(c->drive.context);
    if (answer->type == TUTTI_STORE_REFUSED)
        status = tutti_fail(TUTTI_CLOSED, "a server of the variables: %s", answer->text);
    if (--c->finishing == 0 && status == TUTTI_OK)
        tutti__dispatcher_finished(&c->dispatcher, c->finishing_key, now);
    keep_going(c, status, now);
}

/* Servers forget keys that never come again: at the end, or when a part of the window is done. */
static void finish_keys(tutti_coordinator *c, int64_t now_ns)
{
    const tutti_dispatcher *d = &c->dispatcher;
    uint64_t done = d->below_key - d->finished_key;
    if (c->finishing > 0 || done == 0 || c->broken.status != TUTTI_OK ||
        (d->open > 0 && done < TUTTI_STORE_CLOSURE_WINDOW / 4))
        return;
    c->finishing_key = d->below_key;
    for (size_t slot = 0; slot < c->client->view.slot_count; slot++) {
        tutti_store_message m = {
            .type = TUTTI_STORE_FINISH, .slot = (uint32_t)slot, .step = c->finishing_key};
        c->finishing++;
        tutti_status status = tutti__store_client_call(c->client, &m, finish_done, c, now_ns);
        if (status != TUTTI_OK) {
            c->finishing--;
            tutti__error_capture(status, &c->broken);
        }
    }
}

static void coordinator_receive(void *context, const tutti_store_message *m, int64_t now_ns)
{
    tutti_coordinator *c = context;
    keep_going(c, tutti__dispatcher_receive(&c->dispatcher, m, now_ns), now_ns);
}

static void coordinator_view(void *context, const tutti_store_view *view, int64_t now_ns)
{
    tutti_coordinator *c = context;
    keep_going(c, tutti__dispatcher_view(&c->dispatcher, view, now_ns), now_ns);
}

static void coordinator_tick(void *context, int64_t now_ns)
{
    tutti_coordinator *c = context;
    keep_going(c, tutti__dispatcher_tick(&c->dispatcher, now_ns), now_ns);
}

/* ---- opening and closing ---- */

static tutti_status copy_options(tutti_coordinator *c, const tutti_coordinator_options *options)
{
    RULE_OPTIONS(tutti_coordinator_options, own, options);
    const char **texts[] = {&own.consistency, &own.rate, &own.placement, &own.journal};
    static const char *const defaults[] = {"async", "", "", NULL};
    if (own.workers < 0 || own.servers < 0 || own.workers > 1024 || own.servers > 1024)
        return tutti_fail(TUTTI_INVALID, "a coordinator of %d workers and %d servers; 1 to 1024",
                          own.workers, own.servers);
    own.workers = own.workers ? own.workers : 2;
    own.servers = own.servers ? own.servers : 1;
    own.timeout = own.timeout > 0 ? own.timeout : TIMEOUT;
    for (size_t i = 0; i < TUTTI_COUNT(texts); i++) {
        const char *text = *texts[i] ? *texts[i] : defaults[i];
        c->texts[i] = text ? strdup(text) : NULL;
        if (text && !c->texts[i])
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a coordinator");
        *texts[i] = c->texts[i];
    }
    c->options = own;
    return TUTTI_OK;
}

/* The servers' slots at the last mark, one behind the other; *ret_saved from malloc or NULL. */
static tutti_status saved_slots(const tutti_coordinator *c, tutti_packed_data **ret_saved)
{
    saved_reader in = {c->journal.state, c->journal.state + c->journal.state_bytes, false};
    *ret_saved = NULL;
    if (c->journal.state_bytes == 0)
        return TUTTI_OK;
    uint64_t servers = saved_get(&in);
    if (servers != (uint64_t)c->options.servers)
        return tutti_fail(TUTTI_INVALID,
                          "%s is of a run with %" PRIu64 " servers, this one has %d; go on with "
                          "as many, or name another journal",
                          c->options.journal, servers, c->options.servers);
    tutti_packed_data *saved = calloc(servers, sizeof *saved);
    if (!saved)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a coordinator");
    for (uint64_t i = 0; i < servers; i++)
        saved[i] = saved_get_bytes(&in);
    *ret_saved = saved;
    return TUTTI_OK;
}

static tutti_status open_local(tutti_coordinator *c)
{
    tutti_packed_data *saved;
    TUTTI_TRY(saved_slots(c, &saved));
    tutti_status status = tutti__store_local_open(
        &(tutti_store_local_options){
            .servers = c->options.servers,
            .workers = c->options.workers,
            .observers = 1,
            .replicas = c->options.replicas,
            .limit = c->options.server_limit,
            .deadline_ns = (int64_t)(c->options.timeout * 1e9),
            .saved = saved,
        },
        &c->local);
    free(saved);
    TUTTI_TRY(status);
    c->drive = tutti__store_local_drive(c->local);
    c->client = tutti__store_local_client(c->local, c->options.workers);
    c->here = c->options.workers;
    return TUTTI_OK;
}

/* Rank 0 coordinates, the workers behind it run closures, the rest serves. */
static tutti_status open_job(tutti_coordinator *c)
{
    int workers = tutti_cluster_count(c->cluster, TUTTI_ROLE_CHIEF) +
                  tutti_cluster_count(c->cluster, TUTTI_ROLE_WORKER);
    c->options.workers = workers - 1;
    c->options.servers = tutti_cluster_count(c->cluster, TUTTI_ROLE_PS);
    if (workers < 2 || c->options.servers < 1)
        return tutti_fail(TUTTI_INVALID,
                          "rank 0 coordinates, others run closures, others serve: this job has %d "
                          "workers and %d servers; start it with tutti run -n 3 --ps 1, or more",
                          workers, c->options.servers);
    TUTTI_TRY(tutti__store_processes_open(
        &(tutti_store_processes_options){.cluster = c->cluster,
                                         .replicas = c->options.replicas,
                                         .coordinated = true,
                                         .limit = c->options.server_limit,
                                         .deadline_ns = (int64_t)(c->options.timeout * 1e9),
                                         .join_ns = INT64_C(60000000000)},
        &c->processes));
    if (tutti__store_processes_serves(c->processes)) {
        c->role = TUTTI_COORDINATOR_SERVED;
        return tutti__store_processes_serve(c->processes);
    }
    c->role =
        tutti_cluster_rank(c->cluster) == 0 ? TUTTI_COORDINATOR_CHIEF : TUTTI_COORDINATOR_WORKER;
    c->here = c->role == TUTTI_COORDINATOR_WORKER;
    c->drive = tutti__store_processes_drive(c->processes);
    c->client = tutti__store_processes_client(c->processes);
    return TUTTI_OK;
}

static tutti_status open_workers(tutti_coordinator *c)
{
    int first = c->role == TUTTI_COORDINATOR_WORKER ? tutti_cluster_rank(c->cluster) - 1 : 0;
    c->workers = calloc((size_t)c->here + 1, sizeof *c->workers);
    if (!c->workers)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a coordinator");
    c->self = (tutti_coordinator_worker){.coordinator = c, .number = -1};
    if (c->role != TUTTI_COORDINATOR_WORKER)
        TUTTI_TRY(tutti__coordinator_join_store(c, &c->self, c->client));
    for (int i = 0; i < c->here; i++) {
        c->workers[i] =
            (tutti_coordinator_worker){.coordinator = c, .number = first + i, .index = i};
        TUTTI_TRY(tutti__coordinator_join_store(
            c, &c->workers[i], c->local ? tutti__store_local_client(c->local, i) : c->client));
    }
    return TUTTI_OK;
}

/* Servers have a number of their own, drawn by whoever came first: a coordinator that comes back
 * knows by it whether what closures did is still there. */
static tutti_status know_store(tutti_coordinator *c)
{
    double drawn = (double)((uint64_t)tutti__now_ns() >> 12), known = drawn;
    tutti_tensor *mine = NULL, *theirs = NULL;
    if (c->role != TUTTI_COORDINATOR_ALONE) {
        TUTTI_TRY(tutti_tensor_from(TUTTI_F64, 0, NULL, &drawn, &mine));
        tutti_coordinator_variable(c, "tutti/servers", mine);
        tutti_tensor_release(mine);
        TUTTI_TRY(tutti_job_check(c->job));
    }
    if (c->role == TUTTI_COORDINATOR_CHIEF) {
        TUTTI_TRY(tutti_coordinator_get(c, "tutti/servers", &theirs));
        known = tutti_tensor_get(theirs, 0);
        tutti_tensor_release(theirs);
    }
    return c->role == TUTTI_COORDINATOR_WORKER
               ? TUTTI_OK
               : tutti__journal_of_store(&c->journal, (uint64_t)known | 1);
}

static tutti_status open_all(tutti_coordinator *c, const tutti_coordinator_options *options)
{
    TUTTI_TRY(copy_options(c, options));
    TUTTI_TRY(tutti_cluster_resolve(NULL, &c->cluster));
    bool alone = tutti_cluster_size(c->cluster) == 1;
    if (alone || tutti_cluster_rank(c->cluster) == 0)
        TUTTI_TRY(tutti__journal_open(c->options.journal, &c->journal));
    TUTTI_TRY(alone ? open_local(c) : open_job(c));
    if (c->role == TUTTI_COORDINATOR_SERVED)
        return TUTTI_OK;
    TUTTI_TRY(open_workers(c));
    TUTTI_TRY(know_store(c));
    return tutti__dispatcher_init(
        &c->dispatcher, &(tutti_dispatcher_options){.node = c->client->options.node,
                                                    .incarnation = c->client->options.incarnation,
                                                    .transport = c->client->options.transport,
                                                    .attempts = c->options.attempts,
                                                    .journal = &c->journal});
}

static void free_names(tutti_coordinator *c)
{
    for (size_t i = 0; i < c->functions.count; i++)
        free(c->functions.data[i].name);
    for (size_t i = 0; i < c->datasets.count; i++) {
        tutti_closure_dataset *d = &c->datasets.data[i];
        free(d->name);
        free(d->of);
        free(d->at);
        free(d->ranges);
        free(d->epochs);
    }
    TUTTI_VEC_FREE(&c->functions);
    TUTTI_VEC_FREE(&c->datasets);
}

/* There is no more work. A worker that does not hear it sees that the coordinator has left. */
static void send_end(tutti_coordinator *c)
{
    const tutti_store_view *view = &c->client->view;
    c->drive.enter(c->drive.context);
    for (size_t i = 0; i < view->worker_count; i++) {
        tutti_store_message m = {.type = TUTTI_STORE_RUN,
                                 .view = view->number,
                                 .node = c->client->options.node,
                                 .incarnation = c->client->options.incarnation};
        if (view->workers[i].node != m.node)
            tutti__store_send(&c->client->options.transport, view->workers[i].node, &m);
    }
    c->drive.leave(c->drive.context);
    (void)tutti__store_processes_flush(c->processes);
    c->begun = false;
}

/* Owned by the job from the first closure on, so that workers end before the datasets do. */
static void coordinator_end(void *object)
{
    tutti_coordinator *c = object;
    if (c->role == TUTTI_COORDINATOR_CHIEF && c->begun)
        send_end(c);
    if (c->local) {
        c->drive.enter(c->drive.context);
        c->ends = true;
        for (int i = 0; c->workers && i < c->here; i++)
            c->workers[i].wake = true;
        c->drive.leave(c->drive.context);
    }
    for (int i = 0; c->workers && i < c->here; i++)
        tutti__coordinator_stop_worker(&c->workers[i]);
}

static void coordinator_close(void *object)
{
    tutti_coordinator *c = object;
    coordinator_end(c);
    for (int i = 0; c->workers && i < c->here; i++)
        tutti__coordinator_leave_store(&c->workers[i]);
    tutti__coordinator_leave_store(&c->self);
    tutti__dispatcher_free(&c->dispatcher);
    tutti__store_local_close(c->local);
    if (c->processes)
        (void)tutti__store_processes_close(c->processes, tutti_job_check(c->job) == TUTTI_OK);
    tutti_cluster_free(c->cluster);
    tutti__journal_close(&c->journal);
    tutti__coordinator_free_variables(c);
    free_names(c);
    for (size_t i = 0; i < TUTTI_COUNT(c->texts); i++)
        free(c->texts[i]);
    free(c->workers);
    free(c);
}

tutti_coordinator *tutti_coordinator_open_with(tutti_job *job,
                                               const tutti_coordinator_options *options)
{
    if (tutti_job_check(job) != TUTTI_OK)
        return NULL;
    tutti_coordinator *c = calloc(1, sizeof *c);
    if (!c) {
        tutti_job_fail(job, tutti_fail(TUTTI_NO_MEMORY, "no memory for a coordinator"));
        return NULL;
    }
    c->job = job;
    tutti_status status = open_all(c, options);
    if (status != TUTTI_OK) {
        tutti_job_fail(job, tutti__error_prefix(status, "coordinator"));
        coordinator_close(c);
        return NULL;
    }
    return tutti_job_own(job, c, coordinator_close) ? c : NULL;
}

/* ---- functions and data ---- */

static bool is_usable(const tutti_coordinator *c)
{
    return c && c->role != TUTTI_COORDINATOR_SERVED && tutti_job_check(c->job) == TUTTI_OK;
}

void tutti_coordinator_function(tutti_coordinator *c, const char *name, tutti_closure_fn *function,
                                void *user)
{
    if (!is_usable(c))
        return;
    tutti_closure_function made = {strdup(name), function, user};
    if (c->begun || !made.name || !TUTTI_VEC_PUSH(&c->functions, made)) {
        free(made.name);
        tutti_job_fail(c->job, tutti_fail(TUTTI_INVALID,
                                          "function '%s': it is registered before the first "
                                          "closure",
                                          name));
    }
}

void tutti_coordinator_dataset(tutti_coordinator *c, const char *name, tutti_closure_data_fn *fn,
                               void *user)
{
    if (!is_usable(c))
        return;
    size_t count = (size_t)c->here + 1;
    tutti_closure_dataset d = {strdup(name), calloc(count, sizeof *d.of),
                               calloc(count, sizeof *d.at), calloc(count, sizeof *d.ranges),
                               calloc(count, sizeof *d.epochs)};
    bool good = !c->begun && d.name && d.of && d.at && d.ranges && d.epochs;
    for (int i = 0; good && i < c->here; i++) {
        d.of[i] = fn(c->job, c->workers[i].number, c->options.workers, user);
        good = d.of[i] != NULL;
    }
    if (good && TUTTI_VEC_PUSH(&c->datasets, d))
        return;
    tutti_job_fail(c->job, tutti_fail(TUTTI_INVALID,
                                      "dataset '%s': it is made before the first closure, and its "
                                      "function gives one for each worker",
                                      name));
    free(d.name);
    free(d.of);
    free(d.at);
    free(d.ranges);
    free(d.epochs);
}

static tutti_status begin(tutti_coordinator *c)
{
    if (c->begun)
        return TUTTI_OK;
    c->begun = true;
    if (!tutti_job_own(c->job, c, coordinator_end))
        return TUTTI_NO_MEMORY;
    for (int i = 0; i < c->here; i++)
        TUTTI_TRY(tutti__coordinator_start_worker(&c->workers[i]));
    c->drive.enter(c->drive.context);
    tutti_status status = tutti__store_client_attach(
        c->client, &(tutti_store_guest){c, coordinator_receive, coordinator_view, coordinator_tick},
        c->drive.now(c->drive.context));
    c->drive.leave(c->drive.context);
    return status;
}

bool tutti_coordinator_serve(tutti_coordinator *c)
{
    if (c && c->role == TUTTI_COORDINATOR_SERVED)
        return true;
    if (is_usable(c))
        tutti_job_fail(c->job, c->role == TUTTI_COORDINATOR_WORKER
                                   ? tutti__coordinator_work(&c->workers[0])
                                   : begin(c));
    return c && c->role == TUTTI_COORDINATOR_WORKER;
}

/* ---- waiting; under the lock ---- */

/* For a closure, or for all (0). */
static tutti_status await(tutti_coordinator *c, uint64_t number)
{
    c->awaited = number;
    keep_going(c, TUTTI_OK, c->drive.now(c->drive.context));
    if (!c->arrived)
        TUTTI_TRY(c->drive.wait(c->drive.context, &c->arrived));
    return c->broken.status == TUTTI_OK ? TUTTI_OK : tutti__error_restore(&c->broken);
}

/* ---- closures ---- */

/* A queue without end would only hide that workers are too slow. */
static tutti_status await_room(tutti_coordinator *c)
{
    while (c->dispatcher.open >= OPEN_CLOSURES)
        TUTTI_TRY(await(c, c->dispatcher.below));
    return TUTTI_OK;
}

static tutti_future *schedule(tutti_coordinator *c, const char *function, const tutti_text *list,
                              uint64_t keys)
{
    tutti_future *future = calloc(1, sizeof *future);
    tutti_status status =
        future ? begin(c) : tutti_fail(TUTTI_NO_MEMORY, "no memory for a closure");
    if (status == TUTTI_OK) {
        c->drive.enter(c->drive.context);
        status = c->dispatcher.failure.status == TUTTI_OK
                     ? await_room(c)
                     : tutti__error_restore(&c->dispatcher.failure);
        bool joinable = c->dispatcher.failure.status != TUTTI_OK;
        if (status == TUTTI_OK)
            status =
                tutti__dispatcher_schedule(&c->dispatcher, function, list->data, list->size, keys,
                                           &future->number, c->drive.now(c->drive.context));
        c->drive.leave(c->drive.context);
        if (joinable) { /* join says it */
            free(future);
            return NULL;
        }
    }
    if (status != TUTTI_OK) {
        free(future);
        tutti_job_fail(c->job, status);
        return NULL;
    }
    future->coordinator = c;
    c->closures++;
    return future;
}

tutti_future *tutti_coordinator_schedule_with(tutti_coordinator *c, const char *function,
                                              const tutti_schedule_closure_options *options)
{
    RULE_OPTIONS(tutti_schedule_closure_options, own, options);
    tutti_text list = {0};
    tutti_status status = TUTTI_OK;
    bool known = false;
    if (!is_usable(c))
        return NULL;
    for (size_t i = 0; i < c->functions.count; i++)
        known = known || strcmp(c->functions.data[i].name, function) == 0;
    if (!known)
        status = tutti_fail(TUTTI_NOT_FOUND,
                            "there is no function '%s'; register it with "
                            "tutti_coordinator_function",
                            function);
    for (int i = 0; status == TUTTI_OK && i < own.arguments.count; i++)
        status = own.arguments.list[i]
                     ? tutti__tensor_list_add(&list, own.arguments.list[i])
                     : tutti_fail(TUTTI_INVALID, "closure '%s': argument %d is NULL", function, i);
    tutti_future *future =
        status == TUTTI_OK ? schedule(c, function, &list, own.pushes > 0 ? (uint64_t)own.pushes : 1)
                           : NULL;
    if (status != TUTTI_OK)
        tutti_job_fail(c->job, status);
    tutti__text_free(&list);
    return future;
}

/* All are done; under the lock. */
static tutti_status join_all(tutti_coordinator *c)
{
    tutti_status status = TUTTI_OK;
    if (c->dispatcher.failure.status == TUTTI_OK)
        status = await(c, 0);
    if (status == TUTTI_OK && c->dispatcher.failure.status != TUTTI_OK) {
        tutti__dispatcher_cancel(&c->dispatcher);
        status = await(c, 0);
        if (status == TUTTI_OK)
            status = tutti__error_restore(&c->dispatcher.failure);
        c->dispatcher.failure = (tutti_error){0};
    }
    return status;
}

tutti_status tutti_coordinator_join(tutti_coordinator *c)
{
    if (!c)
        return TUTTI_INVALID;
    TUTTI_TRY(tutti_job_check(c->job));
    tutti_status status = begin(c);
    c->drive.enter(c->drive.context);
    if (status == TUTTI_OK)
        status = join_all(c);
    c->drive.leave(c->drive.context);
    return tutti_job_fail(c->job, status);
}

bool tutti_coordinator_done(tutti_coordinator *c)
{
    if (!is_usable(c))
        return true;
    c->drive.enter(c->drive.context);
    bool done = c->dispatcher.open == 0;
    c->drive.leave(c->drive.context);
    return done;
}

static tutti_status take_results(const tutti_closure_entry *e, int count, tutti_tensor **ret)
{
    tutti_tensor *all[TUTTI_CLOSURE_TENSORS];
    int there = 0;
    if (e->outcome.status != TUTTI_OK)
        return tutti_fail(e->outcome.status, "closure %" PRIu64 " '%s': %s", e->number, e->function,
                          e->outcome.text);
    TUTTI_TRY(tutti__tensor_list_read(e->outcome.results, e->outcome.size, &there, all));
    for (int i = 0; i < there; i++)
        if (there != count)
            tutti_tensor_release(all[i]);
    if (there != count)
        return tutti_fail(TUTTI_INVALID,
                          "closure %" PRIu64 " '%s' has %d results, %d are asked for", e->number,
                          e->function, there, count);
    memcpy(ret, all, (size_t)count * sizeof *ret);
    return TUTTI_OK;
}

static tutti_status fetch(tutti_coordinator *c, const tutti_future *future, int count,
                          tutti_tensor **ret)
{
    c->drive.enter(c->drive.context);
    tutti_status status = await(c, future->number);
    const tutti_closure_entry *e = tutti__dispatcher_find(&c->dispatcher, future->number);
    if (status == TUTTI_OK)
        status =
            e ? take_results(e, count, ret)
              : tutti_fail(TUTTI_NOT_FOUND, "closure %" PRIu64 " is forgotten", future->number);
    c->drive.leave(c->drive.context);
    return status;
}

tutti_status tutti_coordinator_fetch(tutti_coordinator *c, tutti_future *future, int count,
                                     tutti_tensor **ret_results)
{
    if (!c)
        return TUTTI_INVALID;
    TUTTI_TRY(tutti_job_check(c->job));
    if (!future)
        return tutti_fail(TUTTI_INVALID, "nothing was scheduled that could be fetched: another "
                                         "closure had failed; tutti_coordinator_join says which");
    return fetch(c, future, count, ret_results);
}

void tutti_future_release(tutti_future *future)
{
    if (!future)
        return;
    tutti_coordinator *c = future->coordinator;
    c->drive.enter(c->drive.context);
    tutti__dispatcher_release(&c->dispatcher, future->number);
    c->drive.leave(c->drive.context);
    free(future);
}

/* ---- evaluation ---- */

static tutti_status add_to(tutti_tensor *sum, tutti_tensor *part)
{
    if (!tutti_type_equal(tutti_tensor_type(sum), tutti_tensor_type(part)))
        return tutti_fail(TUTTI_INVALID, "the closures of an evaluation give results of different "
                                         "shapes");
    for (int64_t i = 0; i < tutti_tensor_count(sum); i++)
        if (tutti_dtype_is_int(tutti_tensor_dtype(sum)))
            tutti_tensor_set_int(sum, i,
                                 tutti_tensor_get_int(sum, i) + tutti_tensor_get_int(part, i));
        else
            tutti_tensor_set(sum, i, tutti_tensor_get(sum, i) + tutti_tensor_get(part, i));
    return TUTTI_OK;
}

/* Results are added in the order of the elements, so that the sums have the same bits every time.
 */
static tutti_status sum_results(tutti_coordinator *c, tutti_future **futures, int64_t parts,
                                int count, tutti_tensor **sums)
{
    for (int64_t p = 0; p < parts; p++) {
        tutti_tensor *part[TUTTI_CLOSURE_TENSORS];
        tutti_status status = TUTTI_OK;
        TUTTI_TRY(tutti_coordinator_fetch(c, futures[p], count, p == 0 ? sums : part));
        for (int i = 0; p > 0 && i < count; i++) {
            status = status == TUTTI_OK ? add_to(sums[i], part[i]) : status;
            tutti_tensor_release(part[i]);
        }
        TUTTI_TRY(status);
    }
    return TUTTI_OK;
}

static tutti_future *schedule_range(tutti_coordinator *c, const char *function, int64_t first,
                                    int64_t count)
{
    tutti_tensor *range = NULL;
    int64_t numbers[] = {first, count};
    if (tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){2}, numbers, &range) != TUTTI_OK)
        return NULL;
    tutti_future *future =
        tutti_coordinator_schedule(c, function, .arguments = TUTTI_TENSORS(range));
    tutti_tensor_release(range);
    return future;
}

tutti_status tutti_coordinator_evaluate(tutti_coordinator *c, const char *function, int64_t total,
                                        int64_t each, int count, tutti_tensor **ret_sums)
{
    tutti_tensor *sums[TUTTI_CLOSURE_TENSORS] = {0};
    if (!c)
        return TUTTI_INVALID;
    TUTTI_TRY(tutti_job_check(c->job));
    if (total < 1 || each < 1 || count < 1 || count > TUTTI_CLOSURE_TENSORS)
        return tutti_job_fail(c->job, tutti_fail(TUTTI_INVALID,
                                                 "an evaluation of %" PRId64 " elements, %" PRId64
                                                 " at a time, of %d sums",
                                                 total, each, count));
    int64_t parts = (total + each - 1) / each;
    tutti_future **futures = calloc((size_t)parts, sizeof *futures);
    if (!futures)
        return tutti_job_fail(c->job, tutti_fail(TUTTI_NO_MEMORY, "no memory for an evaluation"));
    for (int64_t p = 0; p < parts; p++)
        futures[p] = schedule_range(c, function, p * each, p + 1 < parts ? each : total - p * each);
    tutti_status status = tutti_coordinator_join(c);
    if (status == TUTTI_OK)
        status = sum_results(c, futures, parts, count, sums);
    for (int64_t p = 0; p < parts; p++)
        tutti_future_release(futures[p]);
    free(futures);
    for (int i = 0; i < count; i++)
        if (status == TUTTI_OK)
            ret_sums[i] = sums[i];
        else
            tutti_tensor_release(sums[i]);
    return tutti_job_fail(c->job, status);
}

/* ---- marks ---- */

/* What servers of this process hold: nobody pushes. */
static tutti_status save_slots(tutti_coordinator *c, tutti_text *out)
{
    saved_put(out, (uint64_t)c->options.servers);
    for (int s = 0; s < c->options.servers; s++) {
        tutti_text slot = {0};
        tutti_status status = TUTTI_NOT_FOUND;
        for (int host = 0; host < c->options.servers && status != TUTTI_OK; host++) {
            tutti_store_server *server = tutti__store_local_server(c->local, host);
            if (server && tutti__store_server_complete(server, (uint32_t)s))
                status =
                    tutti__store_slot_save(tutti__store_server_slot(server, (uint32_t)s), &slot);
        }
        saved_put_bytes(out, slot.data, slot.size);
        tutti__text_free(&slot);
        TUTTI_TRY(status);
    }
    return out->failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory for a mark") : TUTTI_OK;
}

tutti_status tutti_coordinator_mark(tutti_coordinator *c, int64_t position)
{
    tutti_text state = {0};
    TUTTI_TRY(tutti_coordinator_join(c));
    c->drive.enter(c->drive.context);
    tutti_status status = c->journal.path && c->local ? save_slots(c, &state) : TUTTI_OK;
    if (status == TUTTI_OK)
        status = tutti__journal_mark(&c->journal, position, c->dispatcher.next,
                                     c->dispatcher.next_key, state.data, state.size);
    c->drive.leave(c->drive.context);
    tutti__text_free(&state);
    return tutti_job_fail(c->job, status);
}

int64_t tutti_coordinator_position(const tutti_coordinator *c)
{
    return c ? c->journal.position : 0;
}

void tutti_coordinator_tell(tutti_coordinator *c, tutti_coordinator_report *ret_report)
{
    tutti_store_staleness all = {0};
    tutti_text lines = {0};
    *ret_report = (tutti_coordinator_report){0};
    if (!c || c->role == TUTTI_COORDINATOR_SERVED)
        return;
    if (c->processes)
        (void)tutti__store_processes_report(c->processes, &all, &lines);
    c->drive.enter(c->drive.context);
    for (int s = 0; c->local && s < c->options.servers; s++) {
        tutti_store_staleness one;
        tutti_store_server *server = tutti__store_local_server(c->local, s);
        if (!server)
            continue;
        tutti__store_server_staleness(server, &one);
        tutti__store_staleness_join(&all, &one);
    }
    *ret_report = (tutti_coordinator_report){.closures = c->closures,
                                             .retried = c->dispatcher.retried,
                                             .gradients = all.gradients,
                                             .staleness = tutti__store_staleness_mean(&all),
                                             .largest = all.largest};
    c->drive.leave(c->drive.context);
    tutti__text_free(&lines);
}
