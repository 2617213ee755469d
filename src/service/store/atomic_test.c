/* atomic_test.c: pushes of several variables over several servers, applied on all or on none; and
 * closures, applied once wherever they run. */
#include <stdlib.h>

#include "service/store/testing.h"

static tutti_store_variable_spec spec_of(const char *name)
{
    return (tutti_store_variable_spec){
        .name = name, .type = tutti_type_make(TUTTI_F64, 1, (int64_t[]){1}), .rule = "plain"};
}

static void push_both(store_job *job, int worker, double a, double b)
{
    tutti_tensor *gradients[] = {store_vector(TUTTI_F64, 1, &a), store_vector(TUTTI_F64, 1, &b)};
    CHECK_OK(
        tutti__store_worker_push(job->worker[worker], 2, (int[]){0, 1}, gradients, true, NULL));
    tutti_tensor_release(gradients[0]);
    tutti_tensor_release(gradients[1]);
}

TUTTI_TEST(store_atomic_push_is_seen_whole)
{
    store_job job;
    tutti_store_variable_spec a = spec_of("a"), b = spec_of("b");
    tutti_tensor *values[2];
    store_job_open(&job, &(tutti_store_local_options){.servers = 2, .workers = 2});
    store_job_variable(&job, &a, NULL);
    store_job_variable(&job, &b, NULL);
    for (int i = 1; i <= 20; i++) {
        push_both(&job, i % 2, -1, 1);
        CHECK_OK(tutti__store_worker_pull(job.worker[0], 2, (int[]){0, 1}, true, values));
        CHECK(tutti_tensor_get(values[0], 0) == i);
        CHECK(tutti_tensor_get(values[1], 0) == -i);
        tutti_tensor_release(values[0]);
        tutti_tensor_release(values[1]);
    }
    store_job_close(&job);
}

/* ---- by messages ---- */

typedef struct asked {
    uint32_t type, reason;
    uint64_t version;
    double value;
    bool done;
} asked;

static void answered(void *context, const tutti_store_message *answer)
{
    asked *a = context;
    a->type = answer->type;
    a->reason = answer->reason;
    a->version = answer->version;
    a->done = true;
    if (answer->type == TUTTI_STORE_PULLED && answer->data.size == 8)
        memcpy(&a->value, answer->data.bytes, 8);
}

static asked ask(store_job *job, int worker, tutti_store_message m)
{
    asked a = {0};
    tutti_store_drive drive = tutti__store_local_drive(job->local);
    m.factor = m.learning_rate = 1;
    drive.enter(drive.context);
    CHECK_OK(tutti__store_client_call(tutti__store_local_client(job->local, worker), &m, answered,
                                      &a, drive.now(drive.context)));
    CHECK_OK(drive.wait(drive.context, &a.done));
    drive.leave(drive.context);
    return a;
}

static const uint8_t one[8] = {[6] = 0xf0, [7] = 0x3f}; /* 1.0 */

static tutti_store_message prepare_of(uint32_t shard, uint64_t txn)
{
    return (tutti_store_message){.type = TUTTI_STORE_PREPARE,
                                 .slot = shard,
                                 .shard = shard,
                                 .number = txn,
                                 .form = TUTTI_STORE_DENSE,
                                 .data = {one, 8}};
}

static tutti_store_message pull_of(uint32_t shard, uint64_t number)
{
    return (tutti_store_message){.type = TUTTI_STORE_PULL,
                                 .slot = shard,
                                 .shard = shard,
                                 .number = number,
                                 .form = TUTTI_STORE_DENSE};
}

TUTTI_TEST(store_reads_as_of_a_number_that_it_names)
{
    store_job job;
    tutti_store_variable_spec a = spec_of("a"), b = spec_of("b");
    store_job_open(&job, &(tutti_store_local_options){.servers = 2, .workers = 1});
    store_job_variable(&job, &a, NULL);
    store_job_variable(&job, &b, NULL);
    for (int i = 0; i < 12; i++)
        push_both(&job, 0, -1, 1);
    for (uint64_t number = 12; number >= 4; number--) {
        CHECK(ask(&job, 0, pull_of(0, number + 1)).value == (double)number);
        CHECK(ask(&job, 0, pull_of(1, number + 1)).value == -(double)number);
    }
    asked gone = ask(&job, 0, pull_of(0, 3 + 1));
    CHECK_INT(gone.type, TUTTI_STORE_REFUSED);
    CHECK_INT(gone.reason, TUTTI_STORE_GONE);
    store_job_close(&job);
}

TUTTI_TEST(store_drops_what_a_dead_worker_had_prepared)
{
    store_job job;
    tutti_store_variable_spec a = spec_of("a"), b = spec_of("b");
    store_job_open(&job, &(tutti_store_local_options){.servers = 2, .workers = 2});
    store_job_variable(&job, &a, NULL);
    store_job_variable(&job, &b, NULL);
    CHECK_INT(ask(&job, 0, prepare_of(0, 9)).type, TUTTI_STORE_PREPARED);
    CHECK_INT(ask(&job, 0, prepare_of(1, 9)).type, TUTTI_STORE_PREPARED);
    tutti_store_shard *shard = tutti__store_slot_shard(
        tutti__store_server_slot(tutti__store_local_server(job.local, 1), 1), 1);
    CHECK_INT(shard->prepared.count, 1);
    CHECK(store_get(&job, 1, 1, 0) == 0);
    CHECK_OK(tutti__store_local_kill_worker(job.local, 0));
    CHECK_INT(shard->prepared.count, 0);
    push_both(&job, 1, 1, 1);
    CHECK(store_get(&job, 1, 0, 0) == -1);
    store_job_close(&job);
}

TUTTI_TEST(store_applies_a_closure_once_wherever_it_runs)
{
    store_job job;
    tutti_store_variable_spec a = spec_of("a"), clocked = spec_of("b");
    double x = 1;
    tutti_tensor *g = store_vector(TUTTI_F64, 1, &x);
    store_job_open(&job, &(tutti_store_local_options){.servers = 1, .workers = 2});
    int v = store_job_variable(&job, &a, NULL);
    clocked.consistency = "sync";
    int s = store_job_variable(&job, &clocked, NULL);
    for (int i = 0; i < 6; i++) /* closures 0, 1 and 2, each by both workers */
        CHECK_OK(tutti__store_worker_push_closure(job.worker[i % 2], (uint64_t)i / 2, 1, &v, &g));
    CHECK(store_get(&job, 0, v, 0) == -3);
    CHECK_INT(ask(&job, 0, (tutti_store_message){.type = TUTTI_STORE_FINISH, .step = 2}).type,
              TUTTI_STORE_FINISHED);
    CHECK_OK(tutti__store_worker_push_closure(job.worker[0], 1, 1, &v, &g)); /* long ago */
    CHECK_OK(tutti__store_worker_push_closure(job.worker[0], 3, 1, &v, &g));
    CHECK(store_get(&job, 0, v, 0) == -4);
    CHECK_STATUS(tutti__store_worker_push_closure(job.worker[0], 5000, 1, &v, &g),
                 TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "closure 5000 is more than 1024 ahead");
    CHECK_STATUS(tutti__store_worker_push_closure(job.worker[0], 4, 1, &s, &g), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "consistency sync goes by steps");
    tutti_tensor_release(g);
    store_job_close(&job);
}

TUTTI_TEST(store_refuses_a_doubled_push_and_one_from_the_future)
{
    store_job job;
    tutti_store_variable_spec a = spec_of("a");
    store_job_open(&job, &(tutti_store_local_options){.servers = 1, .workers = 1});
    store_job_variable(&job, &a, NULL);
    tutti_store_message push = prepare_of(0, 0);
    push.type = TUTTI_STORE_PUSH;
    for (int i = 0; i < 3; i++) {
        CHECK_INT(ask(&job, 0, push).type, TUTTI_STORE_PUSHED);
        CHECK(ask(&job, 0, pull_of(0, 0)).value == -1);
    }
    push.step = 1;
    push.version = 7;
    CHECK_INT(ask(&job, 0, push).reason, TUTTI_STORE_FUTURE);
    push.version = 1;
    push.data.size = 7;
    CHECK_INT(ask(&job, 0, push).reason, TUTTI_STORE_SHAPE);
    push.shard = 5;
    CHECK_INT(ask(&job, 0, push).reason, TUTTI_STORE_UNKNOWN);
    CHECK(ask(&job, 0, pull_of(0, 0)).value == -1);
    store_job_close(&job);
}
