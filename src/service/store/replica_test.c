/* replica_test.c: servers that are killed, workers that die and join, recorded orders. */
#include <pthread.h>
#include <stdlib.h>

#include "service/store/testing.h"

static tutti_store_variable_spec spec_of(const char *consistency)
{
    return (tutti_store_variable_spec){.name = "w",
                                       .type = tutti_type_make(TUTTI_F64, 1, (int64_t[]){1}),
                                       .consistency = consistency,
                                       .rule = "plain"};
}

TUTTI_TEST(store_goes_on_with_the_replica_of_a_killed_server)
{
    store_job job;
    tutti_store_variable_spec spec = spec_of("async"), more = spec_of("async");
    more.name = "v";
    store_job_open(&job,
                   &(tutti_store_local_options){.servers = 3, .workers = 1, .replicas = true});
    int w = store_job_variable(&job, &spec, NULL), v = store_job_variable(&job, &more, NULL);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(store_push(&job, 0, w, 1));
        CHECK_OK(store_push(&job, 0, v, 2));
    }
    CHECK_OK(tutti__store_local_kill_server(job.local, 0));
    CHECK(store_get(&job, 0, w, 0) == -5);
    CHECK_OK(store_push(&job, 0, w, 1));
    CHECK_OK(tutti__store_local_kill_server(job.local, 1));
    CHECK(store_get(&job, 0, w, 0) == -6);
    CHECK(store_get(&job, 0, v, 0) == -10);
    CHECK_OK(store_push(&job, 0, v, 2)); /* on the last one, without a replica */
    CHECK(store_get(&job, 0, v, 0) == -12);
    store_job_close(&job);
}

TUTTI_TEST(store_without_a_replica_says_that_a_slot_is_lost)
{
    store_job job;
    tutti_store_variable_spec spec = spec_of("async"), more = spec_of("async");
    more.name = "v";
    store_job_open(&job, &(tutti_store_local_options){.servers = 2, .workers = 1});
    int w = store_job_variable(&job, &spec, NULL), v = store_job_variable(&job, &more, NULL);
    CHECK_OK(store_push(&job, 0, w, 1));
    CHECK_OK(tutti__store_local_kill_server(job.local, 0));
    CHECK_STATUS(store_push(&job, 0, w, 1), TUTTI_CLOSED);
    CHECK_CONTAINS(tutti_error_message(), "variable 'w': slot 0 is lost: its server is gone, and "
                                          "nobody had a replica; start again from a checkpoint");
    CHECK_OK(store_push(&job, 0, v, 2)); /* others go on */
    CHECK(store_get(&job, 0, v, 0) == -2);
    store_job_close(&job);
}

/* A worker waits for the step of another when the server goes. */
typedef struct waiting {
    store_job *job;
    int variable;
    double value;
} waiting;

static void *pull_waits(void *context)
{
    waiting *w = context;
    w->value = store_get(w->job, 0, w->variable, 0);
    return NULL;
}

TUTTI_TEST(store_server_killed_in_the_middle_of_a_pull)
{
    store_job job;
    pthread_t thread;
    tutti_store_variable_spec spec = spec_of("sync");
    store_job_open(&job,
                   &(tutti_store_local_options){.servers = 2, .workers = 2, .replicas = true});
    waiting w = {&job, store_job_variable(&job, &spec, NULL), 0};
    CHECK_OK(store_push(&job, 0, w.variable, 1));
    CHECK_INT(pthread_create(&thread, NULL, pull_waits, &w), 0); /* for worker 1's gradient */
    CHECK_OK(tutti__store_local_kill_server(job.local, 0));
    CHECK_OK(store_push(&job, 1, w.variable, 3));
    pthread_join(thread, NULL);
    CHECK(w.value == -2);
    store_job_close(&job);
}

TUTTI_TEST(store_sync_forgets_a_dead_worker_and_a_new_one_joins)
{
    store_job job;
    tutti_store_variable_spec spec = spec_of("sync");
    const tutti_store_variable_spec *specs[] = {&spec};
    store_job_open(&job, &(tutti_store_local_options){.servers = 1, .workers = 3});
    int w = store_job_variable(&job, &spec, NULL);
    CHECK_OK(store_push(&job, 0, w, 1));
    CHECK_OK(store_push(&job, 2, w, 3));
    CHECK_OK(tutti__store_local_kill_worker(job.local, 2)); /* its gradient counts */
    CHECK_OK(store_push(&job, 1, w, 5));
    CHECK(store_get(&job, 0, w, 0) == -3);
    for (int n = 0; n < 2; n++) /* nobody waits for it any more */
        CHECK_OK(store_push(&job, n, w, 1));
    CHECK(store_get(&job, 0, w, 0) == -4);
    store_job_rejoin(&job, 2, 1, specs);
    for (int n = 0; n < 2; n++) /* nor for the new one before it has pushed */
        CHECK_OK(store_push(&job, n, w, 1));
    CHECK(store_get(&job, 2, w, 0) == -5);
    for (int n = 2; n >= 0; n--)
        CHECK_OK(store_push(&job, n, w, n));
    CHECK(store_get(&job, 0, w, 0) == -6);
    store_job_close(&job);
}

TUTTI_TEST(store_refuses_a_process_whose_place_was_taken)
{
    store_job job;
    tutti_store_variable_spec spec = spec_of("async");
    store_job_open(&job, &(tutti_store_local_options){.servers = 1, .workers = 2});
    int w = store_job_variable(&job, &spec, NULL);
    tutti__store_local_client(job.local, 1)->options.incarnation = 0; /* an earlier process */
    CHECK_STATUS(store_push(&job, 1, w, 1), TUTTI_CLOSED);
    CHECK_CONTAINS(tutti_error_message(), "another process has taken its place");
    CHECK(store_get(&job, 0, w, 0) == 0);
    store_job_close(&job);
}

static void drop(void *context, uint32_t to, uint8_t *frame, size_t size)
{
    TUTTI_UNUSED(context);
    TUTTI_UNUSED(to);
    TUTTI_UNUSED(size);
    free(frame);
}

TUTTI_TEST(store_server_begins_with_a_slot_that_was_saved)
{
    static const tutti_store_process process = {0, 1, 0}, worker = {1, 1, 0};
    static const tutti_store_place place = {0, TUTTI_STORE_NOBODY, false};
    const tutti_store_view view = {1, 1, 1, 1, &process, &worker, &place};
    store_job job;
    tutti_store_variable_spec spec = spec_of("sync");
    tutti_store_server *server = NULL;
    tutti_text saved = {0};
    uint32_t verdict;
    store_job_open(&job, &(tutti_store_local_options){.servers = 1, .workers = 2});
    int w = store_job_variable(&job, &spec, NULL);
    for (int n = 0; n < 3; n++) /* one step, and a half */
        CHECK_OK(store_push(&job, n % 2, w, 1));
    CHECK_OK(tutti__store_slot_save(
        tutti__store_server_slot(tutti__store_local_server(job.local, 0), 0), &saved));
    store_job_close(&job);
    CHECK_OK(tutti__store_server_create(
        &(tutti_store_server_options){
            .incarnation = 1, .transport = {NULL, drop}, .find = tutti__store_testing_rule},
        &server));
    CHECK_STATUS(tutti__store_server_restore(server, 0, saved.data, saved.size - 1), TUTTI_CORRUPT);
    CHECK_STATUS(tutti__store_server_restore(server, 1, saved.data, saved.size), TUTTI_INVALID);
    CHECK_OK(tutti__store_server_restore(server, 0, saved.data, saved.size));
    CHECK_OK(tutti__store_server_view(server, &view, 0));
    tutti_store_shard *shard = tutti__store_slot_shard(tutti__store_server_slot(server, 0), 0);
    CHECK_INT(shard->policy.version, 2); /* worker 1 is not there any more: its step is whole */
    CHECK(tutti__store_shard_knows(shard, 1, 0, &verdict));
    CHECK_INT(verdict, TUTTI_STORE_HELD);
    tutti__text_free(&saved);
    tutti__store_server_free(server);
}

/* ---- recorded and replayed ---- */

enum { STEPS = 40, WORKERS = 3 };

typedef struct runner {
    store_job *job;
    int worker, variable;
} runner;

static void *run_worker(void *context)
{
    runner *r = context;
    for (int i = 0; i < STEPS; i++) {
        double x = store_get(r->job, r->worker, r->variable, 0);
        CHECK_OK(store_push(r->job, r->worker, r->variable, 0.1 * (x - r->worker) + 0.01));
    }
    return NULL;
}

/* Threads at their own pace; the value in the end. */
static double run_async(tutti_store_order *order)
{
    store_job job;
    tutti_store_variable_spec spec = spec_of("async");
    double one = 1;
    tutti_tensor *first = store_vector(TUTTI_F64, 1, &one);
    pthread_t threads[WORKERS];
    runner runners[WORKERS];
    store_job_open(&job,
                   &(tutti_store_local_options){.servers = 1, .workers = WORKERS, .order = order});
    int v = store_job_variable(&job, &spec, first);
    for (int n = 0; n < WORKERS; n++) {
        runners[n] = (runner){&job, n, v};
        CHECK_INT(pthread_create(&threads[n], NULL, run_worker, &runners[n]), 0);
    }
    for (int n = 0; n < WORKERS; n++)
        pthread_join(threads[n], NULL);
    double end = store_get(&job, 0, v, 0);
    tutti_tensor_release(first);
    store_job_close(&job);
    return end;
}

TUTTI_TEST(store_replays_a_recorded_order_to_the_bit)
{
    tutti_store_order recorded = {0}, read = {0}, replay = {0};
    tutti_text saved = {0};
    double end = run_async(&recorded);
    CHECK_INT(recorded.events.count, 2 * STEPS * WORKERS + 1);
    tutti__store_order_save(&recorded, &saved);
    CHECK_OK(tutti__store_order_load(saved.data, saved.size, &read));
    for (int again = 0; again < 3; again++) {
        CHECK_OK(tutti__store_order_replay(&read, &replay));
        CHECK(run_async(&replay) == end);
        tutti__store_order_free(&replay);
    }
    CHECK_STATUS(tutti__store_order_load(saved.data, saved.size - 1, &read), TUTTI_CORRUPT);
    tutti__text_free(&saved);
    tutti__store_order_free(&recorded);
    tutti__store_order_free(&read);
}
