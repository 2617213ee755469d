/* allocations_test.c: a steady step asks nothing of the allocator, under any strategy. */
#include "exec/run/allocations_test.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/params.h"
#include "parallel/strategies/workers.h"
#include "tutti/tutti.h"

/* What is kept grows as long as more is on its way at once than ever before, which others' haste
 * decides: the best of some windows counts. What a step asks for shows in all of them. */
enum { WARM = 20, COUNTED = 20, WINDOWS = 4, ROWS = 8 };

typedef struct steady_net {
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym x, y, loss, step;
} steady_net;

static tutti_status steady_open(tutti_strategy *s, steady_net *n)
{
    TUTTI_TRY(tutti_graph_create(&n->graph));
    TUTTI_TRY(tutti_session_open(&n->session, n->graph, .strategy = s, .deadline_seconds = 20));
    n->x = tutti_split_batch(tutti_placeholder(n->graph, TUTTI_F32, TUTTI_ANY, 6));
    n->y = tutti_split_batch(tutti_placeholder(n->graph, TUTTI_F32, TUTTI_ANY, 2));
    tutti_sym w = tutti_variable(n->graph, tutti_full(0.1, 6, 40), .name = "w");
    tutti_sym b = tutti_variable(n->graph, tutti_full(0.2, 40), .name = "b");
    tutti_sym v = tutti_variable(n->graph, tutti_full(0.3, 40, 2), .name = "v");
    tutti_sym h = tutti_nn_dropout(tutti_relu(tutti_add(tutti_matmul(n->x, w), b)), 0.3);
    tutti_sym e = tutti_sub(tutti_matmul(h, v), n->y);
    n->loss = tutti_mean(tutti_mul(e, e));
    n->step = tutti_minimize(tutti_adam(0.01), n->loss);
    return tutti_run(n->session, .target = tutti_initialize_variables(n->graph));
}

static tutti_status steady_step(const steady_net *n, tutti_tensor *x, tutti_tensor *y)
{
    tutti_tensor *loss;
    TUTTI_TRY(tutti_run(n->session, .feed = TUTTI_FEED({n->x, x}, {n->y, y}),
                        .fetch = TUTTI_FETCH({n->loss, &loss}), .target = n->step));
    tutti_tensor_release(loss);
    return TUTTI_OK;
}

static tutti_status steady_values(int64_t columns, tutti_tensor **ret)
{
    int64_t dims[2] = {ROWS, columns};
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 2, dims, ret));
    for (int64_t i = 0; i < ROWS * columns; i++)
        tutti_tensor_set(*ret, i, (double)(i * 7 % 11) / 11);
    return TUTTI_OK;
}

static tutti_status count_steps(tutti_strategy *s, void *context)
{
    steady_net n = {0};
    tutti_tensor *x, *y;
    tutti_status status = TUTTI_OK;
    TUTTI_TRY(steady_open(s, &n));
    TUTTI_TRY(steady_values(6, &x));
    TUTTI_TRY(steady_values(2, &y));
    for (int i = 0; status == TUTTI_OK && i < WARM; i++)
        status = steady_step(&n, x, y);
    int64_t made = INT64_MAX;
    for (int w = 0; w < WINDOWS; w++) {
        tutti__allocations_begin();
        for (int i = 0; status == TUTTI_OK && i < COUNTED; i++)
            status = steady_step(&n, x, y);
        int64_t now = tutti__allocations_end();
        made = now < made ? now : made;
    }
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti_session_close(n.session);
    tutti_graph_destroy(n.graph);
    if (status == TUTTI_OK && made > 0 && tutti__allocations_counted())
        status = tutti_fail(TUTTI_CHECK_FAILED, "%s: %" PRId64 " allocations in %d steps",
                            (const char *)context, made, COUNTED);
    return status;
}

static void count_devices(const char *strategy, const char *devices)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    CHECK_OK(tutti__param_set("THREADS", "2"));
    tutti_strategy *s =
        tutti_strategy_create(strategy, TUTTI_OPTIONS(tutti_strategy_options, .devices = devices));
    CHECK_OK(tutti_strategy_check(s));
    CHECK_OK(count_steps(s, (void *)(uintptr_t)strategy));
    CHECK_OK(tutti_strategy_close(s));
}

TUTTI_TEST(a_steady_step_allocates_nothing_on_one_device)
{
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0")); /* test devices allocate as they like */
    count_devices("one_device", "cpu:0");
}

TUTTI_TEST(a_steady_step_allocates_nothing_where_devices_meet)
{
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0")); /* test devices allocate as they like */
    count_devices("mirrored", "cpu:0,cpu:1");
}

TUTTI_TEST(a_steady_step_allocates_nothing_with_central_storage)
{
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0")); /* test devices allocate as they like */
    count_devices("central_storage", "cpu:0,cpu:1");
}

TUTTI_TEST(a_steady_step_allocates_nothing_where_processes_meet)
{
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0")); /* test devices allocate as they like */
    tutti__test_workers(2, TUTTI_OPTIONS(tutti_strategy_options, .engine = "shm"), count_steps,
                        (void *)(uintptr_t) "two processes over shared memory");
    tutti__test_workers(2, TUTTI_OPTIONS(tutti_strategy_options, .engine = "tcp"), count_steps,
                        (void *)(uintptr_t) "two processes over sockets");
    tutti__test_workers(3,
                        TUTTI_OPTIONS(tutti_strategy_options, .engine = "tcp", .reduction = "ring"),
                        count_steps, (void *)(uintptr_t) "three processes in a ring");
    tutti__test_workers(
        3, TUTTI_OPTIONS(tutti_strategy_options, .engine = "shm", .deterministic = true),
        count_steps, (void *)(uintptr_t) "three processes, deterministic");
}

TUTTI_TEST(a_steady_step_allocates_nothing_where_devices_and_processes_meet)
{
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0")); /* test devices allocate as they like */
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    tutti__test_workers(
        2, TUTTI_OPTIONS(tutti_strategy_options, .engine = "shm", .devices = "cpu:0,cpu:1"),
        count_steps, (void *)(uintptr_t) "two processes of two devices");
}

/* ---- fit ---- */

enum { FIT_WARM = 130, FIT_COUNTED = 20, FIT_STEPS = 160 };

static void fit_batch_end(void *context, tutti_event *event)
{
    int64_t *made = context;
    if (event->step == FIT_WARM)
        tutti__allocations_begin();
    if (event->step == FIT_WARM + FIT_COUNTED)
        *made = tutti__allocations_end();
}

/* The inner step: a batch, the run, callbacks. */
static tutti_status count_fit(tutti_strategy *s, void *context)
{
    int64_t made = -1;
    tutti_tensor *x, *y;
    tutti_job *job = tutti_open(NULL, NULL);
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){FIT_STEPS * ROWS, 6}, &x));
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){FIT_STEPS * ROWS, 1}, &y));
    tutti_model *m = NULL;
    TUTTI_WITH_STRATEGY(s)
    {
        m = tutti_sequential(job, tutti_dense(20, .activation = TUTTI_RELU), tutti_dropout(0.2),
                             tutti_dense(1));
        tutti_compile(m, .optimizer = tutti_adam(), .loss = tutti_mse());
    }
    tutti_fit(m, tutti_batch(tutti_from_tensor_slices(job, x, y), ROWS), .epochs = 1, .quiet = true,
              .callbacks =
                  TUTTI_LIST(tutti_lambda_callback(.batch_end = fit_batch_end, .context = &made)));
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    if (tutti_close(job) != 0)
        return tutti_fail(TUTTI_CHECK_FAILED, "the training failed");
    return made == 0 || (made > 0 && !tutti__allocations_counted())
               ? TUTTI_OK
               : tutti_fail(TUTTI_CHECK_FAILED, "fit, %s: %" PRId64 " allocations in %d steps",
                            (const char *)context, made, FIT_COUNTED);
}

static void count_fit_devices(const char *strategy, const char *devices)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    CHECK_OK(tutti__param_set("THREADS", "2"));
    tutti_strategy *s =
        tutti_strategy_create(strategy, TUTTI_OPTIONS(tutti_strategy_options, .devices = devices));
    CHECK_OK(tutti_strategy_check(s));
    CHECK_OK(count_fit(s, (void *)(uintptr_t)strategy));
    CHECK_OK(tutti_strategy_close(s));
}

TUTTI_TEST(a_steady_step_of_fit_allocates_nothing)
{
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0")); /* test devices allocate as they like */
    count_fit_devices("one_device", "cpu:0");
}

TUTTI_TEST(a_steady_step_of_fit_allocates_nothing_where_devices_meet)
{
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0")); /* test devices allocate as they like */
    count_fit_devices("mirrored", "cpu:0,cpu:1");
}

TUTTI_TEST(a_steady_step_of_fit_allocates_nothing_where_processes_meet)
{
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0")); /* test devices allocate as they like */
    tutti__test_workers(2, TUTTI_OPTIONS(tutti_strategy_options, .engine = "shm"), count_fit,
                        (void *)(uintptr_t) "two processes over shared memory");
}
