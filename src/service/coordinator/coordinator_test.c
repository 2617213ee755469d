/* coordinator_test.c: the coordinator as programs use it, in one process. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "service/coordinator/coordinator.h"
#include "tutti/ops_state.h"
#include "tutti/optimizer.h"

static tutti_tensor *number(double x)
{
    tutti_tensor *t = NULL;
    CHECK_OK(tutti_tensor_from(TUTTI_F64, 0, NULL, &x, &t));
    return t;
}

static double value_of(tutti_coordinator *c, const char *name)
{
    tutti_tensor *t = NULL;
    CHECK_OK(tutti_coordinator_get(c, name, &t));
    double x = tutti_tensor_get(t, 0);
    tutti_tensor_release(t);
    return x;
}

static void add_variable(tutti_coordinator *c, const char *name)
{
    tutti_tensor *zero = number(0);
    tutti_coordinator_variable(c, name, zero, .learning_rate = 1);
    tutti_tensor_release(zero);
}

/* Pushes -1 to "sum" and twice the argument to "twice"; dies now and then. */
static tutti_status count_up(tutti_closure *closure, void *user)
{
    tutti_tensor *argument = tutti_closure_argument(closure, 0), *one = number(-1);
    static const char *const names[] = {"sum", "other"};
    tutti_tensor *gradients[] = {one, one};
    int *deaths = user;
    tutti_status status = tutti_closure_push(closure, deaths ? 1 : 2, names, gradients);
    if (deaths && __atomic_fetch_add(deaths, 1, __ATOMIC_SEQ_CST) % 5 == 0) {
        tutti__closure_dies(closure); /* the first variable was pushed, the second was not */
    } else if (deaths) {
        /* The second push of a closure has a key of its own. */
        status = status == TUTTI_OK ? tutti_closure_push(closure, 1, names + 1, gradients) : status;
    }
    if (status == TUTTI_OK) {
        tutti_tensor *twice = number(2 * tutti_tensor_get(argument, 0));
        status = tutti_closure_result(closure, twice);
        tutti_tensor_release(twice);
    }
    tutti_tensor_release(one);
    return status;
}

static void run_closures(int workers, int servers, bool deadly, int closures)
{
    int deaths = 0;
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_coordinator *c = tutti_coordinator_open(job, .workers = workers, .servers = servers);
    tutti_future **futures = calloc((size_t)closures, sizeof *futures);
    add_variable(c, "sum");
    add_variable(c, "other");
    tutti_coordinator_function(c, "count_up", count_up, deadly ? &deaths : NULL);
    CHECK(!tutti_coordinator_serve(c));
    for (int i = 0; i < closures; i++) {
        tutti_tensor *x = number(i);
        futures[i] =
            tutti_coordinator_schedule(c, "count_up", .arguments = TUTTI_TENSORS(x), .pushes = 2);
        tutti_tensor_release(x);
    }
    for (int i = closures - 1; i >= 0; i--) {
        tutti_tensor *twice = NULL;
        CHECK_OK(tutti_coordinator_fetch(c, futures[i], 1, &twice));
        CHECK(tutti_tensor_get(twice, 0) == 2 * i);
        tutti_tensor_release(twice);
        tutti_future_release(futures[i]);
    }
    CHECK_OK(tutti_coordinator_join(c));
    CHECK(tutti_coordinator_done(c));
    CHECK(value_of(c, "sum") == closures); /* each once */
    CHECK(value_of(c, "other") == closures);
    tutti_coordinator_report report;
    tutti_coordinator_tell(c, &report);
    CHECK_INT(report.closures, closures);
    CHECK((report.retried > 0) == deadly);
    CHECK_INT(report.gradients, 2 * closures);
    free(futures);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(coordinator_runs_closures_on_workers)
{
    run_closures(3, 2, false, 50);
    run_closures(1, 1, false, 3);
}

TUTTI_TEST(coordinator_retries_what_lost_workers_had)
{
    run_closures(3, 2, true, 60);
}

TUTTI_TEST(coordinator_goes_beyond_a_window_of_keys)
{
    run_closures(2, 1, false, 1500); /* 3000 keys */
}

static tutti_status fails(tutti_closure *closure, void *user)
{
    TUTTI_UNUSED(user);
    return tutti_closure_number(closure) == 3 ? tutti_fail(TUTTI_INVALID, "no such luck")
                                              : TUTTI_OK;
}

TUTTI_TEST(coordinator_join_says_the_first_failure_and_goes_on)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_coordinator *c = tutti_coordinator_open(job, .workers = 2);
    tutti_coordinator_function(c, "fails", fails, NULL);
    for (int i = 0; i < 20; i++)
        tutti_future_release(tutti_coordinator_schedule(c, "fails"));
    CHECK_STATUS(tutti_coordinator_join(c), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "closure 3 'fails': no such luck");
    tutti_close(job);
}

TUTTI_TEST(coordinator_refuses_in_words)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_coordinator *c = tutti_coordinator_open(job, .workers = 1);
    CHECK(!tutti_coordinator_schedule(c, "nothing"));
    CHECK_STATUS(tutti_job_check(job), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "there is no function 'nothing'");
    tutti_close(job);
}

static tutti_status push_too_often(tutti_closure *closure, void *user)
{
    static const char *const name = "sum";
    tutti_tensor *one = number(1);
    TUTTI_UNUSED(user);
    tutti_status status = tutti_closure_push(closure, 1, &name, &one);
    if (status == TUTTI_OK)
        status = tutti_closure_push(closure, 1, &name, &one);
    tutti_tensor_release(one);
    return status;
}

TUTTI_TEST(coordinator_counts_a_closures_pushes)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_coordinator *c = tutti_coordinator_open(job, .workers = 1);
    add_variable(c, "sum");
    tutti_coordinator_function(c, "twice", push_too_often, NULL);
    tutti_future_release(tutti_coordinator_schedule(c, "twice"));
    CHECK_STATUS(tutti_coordinator_join(c), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), ".pushes");
    tutti_close(job);
}

/* ---- data and evaluation ---- */

static tutti_dataset *part_of_range(tutti_job *job, int worker, int workers, void *user)
{
    TUTTI_UNUSED(user);
    return tutti_range_dataset(job, worker, 100, workers);
}

static tutti_dataset *whole_range(tutti_job *job, int worker, int workers, void *user)
{
    TUTTI_UNUSED(worker);
    TUTTI_UNUSED(workers);
    TUTTI_UNUSED(user);
    return tutti_range_dataset(job, 0, 103, 1);
}

static tutti_status next_is_mine(tutti_closure *closure, void *user)
{
    tutti_element element;
    TUTTI_UNUSED(user);
    TUTTI_TRY(tutti_closure_next(closure, "train", &element));
    int64_t x = tutti_tensor_get_int(element.tensors[0], 0);
    tutti_element_release(&element);
    return x % tutti_closure_workers(closure) == tutti_closure_worker(closure)
               ? TUTTI_OK
               : tutti_fail(TUTTI_INVALID, "element %d is another worker's", (int)x);
}

static tutti_status sum_range(tutti_closure *closure, void *user)
{
    int *deaths = user;
    int64_t sums[2] = {0};
    for (;;) {
        tutti_element element;
        TUTTI_TRY(tutti_closure_range_next(closure, "test", &element));
        if (element.count == 0)
            break;
        sums[0] += tutti_tensor_get_int(element.tensors[0], 0);
        sums[1]++;
        tutti_element_release(&element);
    }
    if (__atomic_fetch_add(deaths, 1, __ATOMIC_SEQ_CST) % 4 == 0)
        tutti__closure_dies(closure);
    tutti_tensor *result = NULL;
    TUTTI_TRY(tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){2}, sums, &result));
    tutti_status status = tutti_closure_result(closure, result);
    tutti_tensor_release(result);
    return status;
}

TUTTI_TEST(coordinator_evaluation_counts_every_example_once)
{
    int deaths = 0;
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_coordinator *c = tutti_coordinator_open(job, .workers = 3);
    tutti_tensor *sums = NULL;
    tutti_coordinator_dataset(c, "train", part_of_range, NULL);
    tutti_coordinator_dataset(c, "test", whole_range, NULL);
    tutti_coordinator_function(c, "next", next_is_mine, NULL);
    tutti_coordinator_function(c, "sum", sum_range, &deaths);
    for (int i = 0; i < 150; i++) /* more than an epoch */
        tutti_future_release(tutti_coordinator_schedule(c, "next"));
    CHECK_OK(tutti_coordinator_join(c));
    CHECK_OK(tutti_coordinator_evaluate(c, "sum", 103, 10, 1, &sums));
    CHECK_INT(tutti_tensor_get_int(sums, 0), 103 * 102 / 2);
    CHECK_INT(tutti_tensor_get_int(sums, 1), 103);
    tutti_tensor_release(sums);
    CHECK_INT(tutti_close(job), 0);
}

/* ---- tables ---- */

static tutti_sym adagrad(tutti_sym value, const tutti_grad *gradient, void *user)
{
    TUTTI_UNUSED(user);
    return tutti_apply_gradients(tutti_adagrad(1), 1, &value, gradient);
}

static const int64_t far_rows[] = {7, INT64_C(999999999999999), 7, INT64_C(123456789012345)};

static tutti_status push_far(tutti_closure *closure, void *user)
{
    const char *name = user;
    tutti_tensor *rows = NULL, *gradient = NULL, *values = NULL;
    float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    TUTTI_TRY(tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){4}, far_rows, &rows));
    TUTTI_TRY(tutti_tensor_from(TUTTI_F32, 2, (int64_t[]){4, 2}, ones, &gradient));
    tutti_status status = tutti_closure_pull_rows(closure, name, rows, &values);
    tutti_tensor_release(values);
    if (status == TUTTI_OK)
        status = tutti_closure_push_rows(closure, name, rows, gradient);
    tutti_tensor_release(rows);
    tutti_tensor_release(gradient);
    return status;
}

TUTTI_TEST(coordinator_tables_exist_where_they_are_touched)
{
    static const char *const names[] = {"table", "keys"};
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_coordinator *c = tutti_coordinator_open(job, .workers = 2, .servers = 3);
    float zero[2] = {0};
    tutti_tensor *row = NULL, *rows = NULL, *values = NULL;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 2, (int64_t[]){1, 2}, zero, &row));
    tutti_coordinator_variable(c, "table", row, .rows = INT64_C(1000000000000000),
                               .partitioner = "fixed_size(6)", .update = adagrad,
                               .initial = "constant:0.5");
    tutti_coordinator_variable(c, "keys", row, .rows = TUTTI_ANY, .pieces = 4, .update = adagrad);
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){4}, far_rows, &rows));
    for (int i = 0; i < 2; i++) {
        tutti_coordinator_function(c, names[i], push_far, (void *)names[i]);
        CHECK_OK(tutti_job_check(job));
    }
    for (int i = 0; i < 2; i++) {
        tutti_future_release(tutti_coordinator_schedule(c, names[i]));
        CHECK_OK(tutti_coordinator_join(c));
        CHECK_OK(tutti_coordinator_get_rows(c, names[i], rows, &values));
        /* Adagrad from 0.1: duplicates are summed to 2 before it squares them. */
        double begin = i == 0 ? 0.5 : 0;
        CHECK_NEAR(tutti_tensor_get(values, 0), begin - 2 / 2.0248457, 1e-5);
        CHECK_NEAR(tutti_tensor_get(values, 2), begin - 1 / 1.0488088, 1e-5);
        tutti_tensor_release(values);
    }
    tutti_tensor_release(row);
    tutti_tensor_release(rows);
    CHECK_INT(tutti_close(job), 0);
}

static int last_server(const char *shard, int64_t bytes, int servers, void *user)
{
    TUTTI_UNUSED(shard);
    *(int64_t *)user += bytes;
    return servers - 1;
}

TUTTI_TEST(coordinator_places_variables)
{
    char loads[200];
    int64_t bytes = 0;
    tutti_tensor *big = NULL, *part = NULL;
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_coordinator *c =
        tutti_coordinator_open(job, .workers = 1, .servers = 2, .placement = "least_loaded");
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){1024, 256}, &big));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){1024, 128}, &part));
    tutti_coordinator_variable(c, "big", big);
    tutti_coordinator_variable(c, "a", part);
    tutti_coordinator_variable(c, "b", part);
    tutti_coordinator_loads(c, loads, sizeof loads);
    CHECK_STR(loads, "ps 0: 1 shards, 1.0 MiB   ps 1: 2 shards, 1.0 MiB");
    tutti_coordinator_place(c, last_server, &bytes);
    tutti_coordinator_variable(c, "cut", big, .partitioner = "max_size(524288)");
    tutti_coordinator_loads(c, loads, sizeof loads);
    CHECK_STR(loads, "ps 0: 1 shards, 1.0 MiB   ps 1: 4 shards, 2.0 MiB");
    CHECK_INT(bytes, 2 * 1024 * 1024); /* by the coordinator and its worker */
    tutti_tensor_release(big);
    tutti_tensor_release(part);
    CHECK_INT(tutti_close(job), 0);
}

/* ---- killed, it resumes ---- */

/* Epochs of ten closures with momentum; ends without a word in the middle of `die_in`. */
static double run_epochs(const char *journal, int die_in)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_coordinator *c =
        tutti_coordinator_open(job, .workers = 2, .servers = 2, .journal = journal);
    tutti_tensor *zero = number(0), *x = number(1);
    tutti_coordinator_variable(c, "sum", zero, .learning_rate = 1);
    tutti_coordinator_variable(c, "other", zero, .learning_rate = 1);
    tutti_coordinator_function(c, "count_up", count_up, NULL);
    for (int64_t epoch = tutti_coordinator_position(c); epoch < 5; epoch++) {
        for (int i = 0; i < 10; i++) {
            tutti_future *f =
                tutti_coordinator_schedule(c, "count_up", .arguments = TUTTI_TENSORS(x));
            tutti_future_release(f);
            if (epoch == die_in && i == 5) {
                while (value_of(c, "sum") < 10 * (double)epoch + 3)
                    ;
                _exit(0);
            }
        }
        CHECK_OK(tutti_coordinator_mark(c, epoch + 1));
    }
    double sum = value_of(c, "sum");
    tutti_tensor_release(zero);
    tutti_tensor_release(x);
    CHECK_INT(tutti_close(job), 0);
    return sum;
}

TUTTI_TEST_ALONE(coordinator_killed_goes_on_from_its_mark)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/tutti-journal-%d", (int)getpid());
    static const int kills[] = {0, 3, 3, 4};
    for (size_t i = 0; i < TUTTI_COUNT(kills); i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            run_epochs(path, kills[i]);
            _exit(1);
        }
        CHECK(waitpid(child, &status, 0) == child);
        CHECK_INT(status, 0);
    }
    CHECK(run_epochs(path, -1) == 50);
    unlink(path);
}
