/* replica_test.c: code of each replica's own, and copies of variables. */
#include <string.h>

#include "base/params.h"
#include "base/test.h"
#include "parallel/strategies/workers.h"
#include "tutti/tutti.h"

static tutti_status exchange(const tutti_replica *replica, void *context)
{
    tutti_tensor *value, *sum, *mean, *joined, *first;
    int64_t rows = replica->index; /* none on the first */
    _Atomic int *calls = context;
    ++*calls;
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){2}, &value));
    tutti_tensor_set(value, 0, 2 * replica->index + 2);
    tutti_tensor_set(value, 1, 2 * replica->index + 3);
    TUTTI_TRY(tutti_replica_reduce(replica, value, TUTTI_SUM, &sum));
    TUTTI_TRY(tutti_replica_reduce(replica, value, TUTTI_MEAN, &mean));
    TUTTI_TRY(tutti_replica_broadcast(replica, value, &first));
    CHECK_NEAR(tutti_tensor_get(sum, 0), 2 + 4 + 6, 0);
    CHECK_NEAR(tutti_tensor_get(mean, 1), (3 + 5 + 7) / 3.0, 1e-6);
    CHECK_NEAR(tutti_tensor_get(first, 1), 3, 0);
    tutti_tensor_release(value);
    TUTTI_TRY(tutti_tensor_create(TUTTI_I32, 2, (int64_t[]){rows, 2}, &value));
    for (int64_t i = 0; i < 2 * rows; i++)
        tutti_tensor_set(value, i, 10 * replica->index + (double)i);
    TUTTI_TRY(tutti_replica_gather(replica, value, &joined));
    CHECK_INT(tutti_tensor_dims(joined)[0], 3);
    static const int expected[] = {10, 11, 20, 21, 22, 23};
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(tutti_tensor_get(joined, i), expected[i], 0);
    tutti_tensor_release(value);
    tutti_tensor_release(sum);
    tutti_tensor_release(mean);
    tutti_tensor_release(first);
    tutti_tensor_release(joined);
    return TUTTI_OK;
}

TUTTI_TEST(replica_code_exchanges_tensors)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "3"));
    tutti_strategy *s = tutti_strategy_mirrored(.devices = "cpu:0,cpu:1,cpu:2");
    _Atomic int calls = 0;
    CHECK_OK(tutti_replica_run(s, exchange, &calls));
    CHECK_INT(calls, 3);
    CHECK_OK(tutti_strategy_close(s));
}

static tutti_status fail_on_second(const tutti_replica *replica, void *context)
{
    TUTTI_UNUSED(context);
    return replica->index == 1 ? tutti_fail(TUTTI_INVALID, "replica 1 will not") : TUTTI_OK;
}

TUTTI_TEST(replica_code_that_fails_says_so)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    tutti_strategy *s = tutti_strategy_mirrored(.devices = "cpu:0,cpu:1");
    CHECK_STATUS(tutti_replica_run(s, fail_on_second, NULL), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "replica 1 will not");
    CHECK_OK(tutti_strategy_close(s));
}

typedef struct misfit {
    const char *what, *expected; /* what the second replica does otherwise */
} misfit;

/* Replicas exchange; one of them differs. All others must hear of it, and soon. */
static tutti_status differ(const tutti_replica *replica, void *context)
{
    const misfit *m = context;
    bool odd = replica->index == 1, broadcasts = strcmp(m->what, "broadcast") == 0;
    tutti_tensor *value, *all = NULL;
    if (odd && strcmp(m->what, "fail") == 0)
        return tutti_fail(TUTTI_INVALID, "replica 1 will not");
    if (odd && strcmp(m->what, "leave") == 0)
        return TUTTI_OK;
    int64_t dims[] = {odd && strcmp(m->what, "rows") == 0 ? 3 : 2,
                      odd && (broadcasts || strcmp(m->what, "columns") == 0) ? 5 : 4};
    TUTTI_TRY(tutti_tensor_create(odd && strcmp(m->what, "type") == 0 ? TUTTI_I32 : TUTTI_F32, 2,
                                  dims, &value));
    tutti_reduction how = odd && strcmp(m->what, "reduction") == 0 ? TUTTI_MAX : TUTTI_SUM;
    tutti_status status = broadcasts ? tutti_replica_broadcast(replica, value, &all)
                          : strcmp(m->what, "columns") == 0 || (odd && strcmp(m->what, "call") == 0)
                              ? tutti_replica_gather(replica, value, &all)
                              : tutti_replica_reduce(replica, value, how, &all);
    tutti_tensor_release(value);
    tutti_tensor_release(all);
    return status;
}

static tutti_status count_all(const tutti_replica *replica, void *context)
{
    TUTTI_UNUSED(context);
    tutti_tensor *one, *sum;
    TUTTI_TRY(tutti_tensor_from(TUTTI_F32, 0, NULL, (float[]){1}, &one));
    tutti_status status = tutti_replica_reduce(replica, one, TUTTI_SUM, &sum);
    tutti_tensor_release(one);
    TUTTI_TRY(status);
    bool all = tutti_tensor_get(sum, 0) == replica->count;
    tutti_tensor_release(sum);
    return all ? TUTTI_OK : tutti_fail(TUTTI_CHECK_FAILED, "not all %d", replica->count);
}

static const misfit misfits[] = {
    {"fail", "replica 1 will not"},
    {"leave", "replica 1 is at its end, replica 0 at its reduce"},
    {"rows", "reduce: replica 1 gives f32[3,4], replica 0 f32[2,4]"},
    {"columns", "gather: replica 1 gives f32[2,5], replica 0 f32[2,4]"},
    {"broadcast", "broadcast: replica 1 gives f32[2,5], replica 0 f32[2,4]"},
    {"type", "replica 1 gives i32[2,4], replica 0 f32[2,4]"},
    {"reduction", "replica 1 is at its reduce, replica 0 at another reduce"},
    {"call", "replica 1 is at its gather, replica 0 at its reduce"},
};

/* Every process hears it, and the strategy is as good as before. */
static tutti_status all_misfits(tutti_strategy *strategy, void *context)
{
    TUTTI_UNUSED(context);
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; i++) {
        misfit m = misfits[i];
        if (tutti_replica_run(strategy, differ, &m) == TUTTI_OK)
            return tutti_fail(TUTTI_CHECK_FAILED, "'%s' was not heard", m.what);
        if (!strstr(tutti_error_message(), m.expected))
            return tutti_fail(TUTTI_CHECK_FAILED, "'%s': %s", m.what, tutti_error_message());
        TUTTI_TRY(tutti_replica_run(strategy, count_all, NULL));
    }
    return TUTTI_OK;
}

TUTTI_TEST(replicas_that_differ_are_heard_by_all)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "3"));
    tutti_strategy *s = tutti_strategy_mirrored(.devices = "cpu:0,cpu:1,cpu:2", .timeout = 5);
    CHECK_OK(all_misfits(s, NULL));
    CHECK_OK(tutti_strategy_close(s));
}

TUTTI_TEST(replicas_that_differ_are_heard_by_all_processes)
{
    tutti__test_workers(3, TUTTI_OPTIONS(tutti_strategy_options, .timeout = 5), all_misfits, NULL);
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    tutti__test_workers(
        2, TUTTI_OPTIONS(tutti_strategy_options, .devices = "cpu:0,cpu:1", .timeout = 5),
        all_misfits, NULL);
}

/* Replica losses [2, 3] and [4, 5]: each share is its sum / 4; their sum is 3.5. */
TUTTI_TEST(replica_losses_are_those_of_the_batch)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    tutti_strategy *strategy = tutti_strategy_mirrored(.devices = "cpu:0,cpu:1");
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g, .strategy = strategy));
    tutti_sym x = tutti_split_batch(tutti_placeholder(g, TUTTI_F32, TUTTI_ANY));
    tutti_sym mean = tutti_mean(x), share = tutti_compute_average_loss(x, 4);
    tutti_sym seen = tutti_variable(g, tutti_zeros(), .name = "seen");
    tutti_sym count = tutti_assign_add(seen, tutti_sum(x));
    tutti_tensor *in, *a, *b, *copy;
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){4}, (float[]){2, 3, 4, 5}, &in));
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, in}),
                       .fetch = TUTTI_FETCH({mean, &a}, {share, &b}), .target = count));
    CHECK_NEAR(tutti_tensor_get(a, 0), 3.5, 1e-6);
    CHECK_NEAR(tutti_tensor_get(b, 0), 3.5, 1e-6);
    CHECK_INT(tutti_mirrored_count(s, seen), 2);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(tutti_mirrored_get(s, seen, i, &copy));
        CHECK_NEAR(tutti_tensor_get(copy, 0), 14, 1e-6);
        tutti_tensor_release(copy);
    }
    tutti_tensor_release(in);
    tutti_tensor_release(a);
    tutti_tensor_release(b);
    tutti_session_close(s);
    tutti_graph_destroy(g);
    CHECK_OK(tutti_strategy_close(strategy));
}

TUTTI_TEST(strategies_say_what_is_wrong)
{
    tutti_strategy *s = tutti_strategy_create("mirored", NULL);
    CHECK_STATUS(tutti_strategy_check(s), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "multi_worker_mirrored");
    tutti_strategy_close(s);
    s = tutti_strategy_create("mirrored", &(tutti_strategy_options){.devices = "cpu:0"});
    CHECK_STATUS(tutti_strategy_check(s), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "struct_size of 0");
    tutti_strategy_close(s);
    s = tutti_strategy_mirrored(.devices = "cpu:0,cpu:0");
    CHECK_STATUS(tutti_strategy_check(s), TUTTI_INVALID);
    tutti_eager *eager; /* nobody trains alone because the others cannot be reached */
    CHECK_STATUS(tutti_eager_open(&eager, .strategy = s), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "cpu:0");
    tutti_graph *graph;
    tutti_session *session;
    CHECK_OK(tutti_graph_create(&graph));
    CHECK_STATUS(tutti_session_open(&session, graph, .strategy = s), TUTTI_INVALID);
    tutti_graph_destroy(graph);
    tutti_strategy_close(s);
    s = tutti_strategy_mirrored(.devices = "cpu:0,", .reduction = "spiral");
    CHECK(tutti_strategy_check(s) != TUTTI_OK);
    tutti_strategy_close(s);
    s = tutti_strategy_one_device(.devices = "cpu:0,far:0");
    CHECK_STATUS(tutti_strategy_check(s), TUTTI_INVALID);
    tutti_strategy_close(s);
}

/* ---- memory ---- */

static tutti_status run_large(tutti_strategy *strategy, int64_t rows)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *in, *out;
    CHECK_OK(tutti_strategy_check(strategy));
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g, .strategy = strategy));
    tutti_sym x = tutti_split_batch(tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 128));
    tutti_sym w = tutti_variable(g, tutti_zeros(128, 128), .name = "weights");
    tutti_sym y = tutti_sum(tutti_matmul(tutti_tanh(tutti_matmul(x, w)), w));
    tutti_status status = tutti_run(s, .target = tutti_initialize_variables(g));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){rows, 128}, &in));
    for (int64_t i = 0; i < rows * 128; i++)
        tutti_tensor_set(in, i, 0);
    if (status == TUTTI_OK)
        status = tutti_run(s, .feed = TUTTI_FEED({x, in}), .fetch = TUTTI_FETCH({y, &out}));
    if (status == TUTTI_OK)
        tutti_tensor_release(out);
    tutti_tensor_release(in);
    tutti_session_close(s);
    tutti_graph_destroy(g);
    CHECK_OK(tutti_strategy_close(strategy));
    return status;
}

/* 64 KiB of weights; 512 bytes a row and value. */
TUTTI_TEST(devices_take_no_more_memory_than_they_are_granted)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    CHECK_OK(run_large(tutti_strategy_mirrored(.devices = "cpu:0=2MiB,cpu:1=2MiB"), 64));
    CHECK_OK(run_large(tutti_strategy_mirrored(.devices = "cpu:0,cpu:1"), 40000));
    CHECK_STATUS(run_large(tutti_strategy_mirrored(.devices = "cpu:0=2MiB,cpu:1=2MiB"), 40000),
                 TUTTI_TOO_LARGE);
    CHECK_CONTAINS(tutti_error_message(), "device cpu:0 may take 2 MiB and needs ");
    CHECK_CONTAINS(tutti_error_message(), "64 KiB for 1 variables (the largest is 'weights'");
    CHECK_CONTAINS(tutti_error_message(), "--devices cpu:0=");
    CHECK_STATUS(run_large(tutti_strategy_mirrored(.devices = "cpu:0,cpu:1=1KiB"), 64),
                 TUTTI_TOO_LARGE);
    CHECK_CONTAINS(tutti_error_message(), "device cpu:1 may take 1 KiB");
    CHECK_STATUS(run_large(tutti_strategy_one_device(.devices = "cpu:0", .memory_limit = 1000), 64),
                 TUTTI_TOO_LARGE);
    CHECK_CONTAINS(tutti_error_message(), "may take 1000 bytes");
    tutti_strategy *wrong = tutti_strategy_mirrored(.devices = "cpu:0=much,cpu:1");
    CHECK_STATUS(tutti_strategy_check(wrong), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "'much' is no amount of memory");
    tutti_strategy_close(wrong);
}
