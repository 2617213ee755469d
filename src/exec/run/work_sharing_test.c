/* work_sharing_test.c: devices that wait help the others: for a value, and in a collective. */
#include "base/work_sharing.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/params.h"
#include "base/pool.h"
#include "base/test.h"
#include "base/world.h"
#include "exec/run/rendezvous.h"
#include "tutti/tutti.h"

enum { WIDTH = 256, ROWS = 512, LAYERS = 8, PATIENCE_S = 30 };

static tutti_tensor *ramp(int64_t rows, int64_t columns)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){rows, columns}, &tensor));
    for (int64_t i = 0; i < rows * columns; i++)
        tutti_tensor_set(tensor, i, (double)(i % 17 - 8) / (4.0 * WIDTH));
    return tensor;
}

static tutti_sym layers(tutti_sym x, tutti_sym w)
{
    for (int i = 0; i < LAYERS; i++)
        x = tutti_tanh(tutti_matmul(x, w));
    return x;
}

static void split_in_two(void)
{
    if (tutti__cpu_count() < 2)
        SKIP("guests need a CPU of their own");
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    CHECK_OK(tutti__param_set("THREADS", "2"));
}

/* Runs until somebody has helped; every result equals the first, which had helpers or not. Ends
 * the session. */
static void check_helped(tutti_session *session, tutti_graph *graph, tutti_sym x, tutti_sym w,
                         tutti_sym result)
{
    tutti_tensor *rows = ramp(ROWS, WIDTH), *weights = ramp(WIDTH, WIDTH);
    int64_t until = tutti__now_ns() + PATIENCE_S * INT64_C(1000000000), before = tutti__helped();
    double first = 0;
    for (int run = 0; run == 0 || tutti__helped() == before; run++) {
        tutti_tensor *value;
        CHECK_OK(tutti_run(session, .feed = TUTTI_FEED({x, rows}, {w, weights}),
                           .fetch = TUTTI_FETCH({result, &value})));
        if (run == 0)
            first = tutti_tensor_get(value, 0);
        CHECK(tutti_tensor_get(value, 0) == first);
        tutti_tensor_release(value);
        CHECK(tutti__now_ns() < until);
    }
    while (tutti__helpers() > 0) { /* until the driver's thread sleeps */
        CHECK(tutti__now_ns() < until);
        sched_yield();
    }
    tutti_tensor_release(rows);
    tutti_tensor_release(weights);
    tutti_session_close(session);
    tutti_graph_destroy(graph);
}

/* cpu:1 has nothing to do until cpu:0 is done. */
TUTTI_TEST(a_device_that_waits_for_a_value_helps)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_sym x, w, y = TUTTI_NO_SYM;
    split_in_two();
    CHECK_OK(tutti_graph_create(&g));
    TUTTI_WITH_DEVICE(g, "cpu:0") {
        x = tutti_placeholder(g, TUTTI_F32, ROWS, WIDTH);
        w = tutti_placeholder(g, TUTTI_F32, WIDTH, WIDTH);
        y = layers(x, w);
    }
    TUTTI_WITH_DEVICE(g, "cpu:1") {
        y = tutti_mean(tutti_square(y));
    }
    CHECK_OK(tutti_session_open(&s, g));
    check_helped(s, g, x, w, y);
}

/* Replicas that meet for a mean, and nothing else. */
TUTTI_TEST(a_device_that_waits_in_a_collective_helps)
{
    tutti_graph *g;
    tutti_session *s;
    split_in_two();
    tutti_strategy *two = tutti_strategy_mirrored(.devices = "cpu:0,cpu:1");
    CHECK_OK(tutti_strategy_check(two));
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_split_batch(tutti_placeholder(g, TUTTI_F32, ROWS, WIDTH));
    tutti_sym w = tutti_placeholder(g, TUTTI_F32, WIDTH, WIDTH);
    tutti_sym y = tutti_mean(tutti_square(layers(x, w)));
    CHECK_OK(tutti_session_open(&s, g, .strategy = two));
    check_helped(s, g, x, w, y);
    CHECK_OK(tutti_strategy_close(two));
}

/* Somebody who always has work, until he is told to stop or has lost patience. */
enum { BUSY_PIECES = 30 };

typedef struct busy {
    tutti_pool *pool, *other;
    pthread_t thread, helper;
    _Atomic int64_t deadline; /* of the helper */
    int late;                 /* pieces that it began after it */
    atomic_bool stop, tired;
} busy;

static void short_piece(void *context, int64_t index)
{
    busy *b = context;
    int64_t start = tutti__now_ns();
    (void)index;
    if (start > b->deadline && pthread_equal(pthread_self(), b->helper))
        b->late++;
    while (tutti__now_ns() < start + 500)
        continue;
}

static void *be_busy(void *argument)
{
    busy *b = argument;
    int64_t until = tutti__now_ns() + PATIENCE_S * INT64_C(1000000000);
    while (!atomic_load(&b->stop)) {
        tutti__pool_run(b->pool, BUSY_PIECES, short_piece, b);
        if (tutti__now_ns() > until) {
            atomic_store(&b->tired, true);
            break;
        }
    }
    return NULL;
}

static void start_busy(busy *b)
{
    CHECK_OK(tutti__pool_create(1, -1, &b->pool));
    CHECK_OK(tutti__pool_create(1, -1, &b->other));
    tutti__pool_welcome(b->pool, 1);
    tutti__pool_welcome(b->other, 1);
    b->helper = pthread_self();
    b->deadline = INT64_MAX;
    CHECK_INT(pthread_create(&b->thread, NULL, be_busy, b), 0);
    tutti__helper_may(true);
}

static void stop_busy(busy *b)
{
    atomic_store(&b->stop, true);
    pthread_join(b->thread, NULL);
    CHECK(!b->tired);
    CHECK(b->late <= 2 * BUSY_PIECES); /* the job that it was in, and one that it had joined */
    tutti__pool_destroy(b->pool);
    tutti__pool_destroy(b->other);
}

TUTTI_TEST(a_device_that_helps_keeps_the_deadline_of_its_run)
{
    busy b = {0};
    tutti_rendezvous rendezvous;
    tutti_tensor *value;
    start_busy(&b);
    CHECK_OK(tutti__rendezvous_init(&rendezvous, 2));
    b.deadline = tutti__now_ns() + 100000000;
    tutti_run run = {.rendezvous = &rendezvous, .deadline = b.deadline};
    CHECK_STATUS(tutti__rendezvous_recv(&run, "nobody", "cpu:1", "x", &value), TUTTI_DEADLINE);
    CHECK(tutti__now_ns() >= run.deadline);
    tutti__rendezvous_end(&rendezvous);
    stop_busy(&b);
}

TUTTI_TEST(a_device_that_helps_keeps_the_deadline_of_a_collective)
{
    busy b = {0};
    tutti_comm *ranks[2];
    CHECK_OK(tutti_comm_local(2, NULL, ranks));
    start_busy(&b);
    tutti_comm_call soon = {.struct_size = sizeof soon, .timeout = 0.1};
    b.deadline = tutti__now_ns() + 110000000; /* the call looks at the clock later */
    CHECK_STATUS(tutti_comm_barrier(ranks[0], &soon), TUTTI_DEADLINE);
    stop_busy(&b);
    tutti_comm_close(ranks[0]);
    tutti_comm_close(ranks[1]);
}
