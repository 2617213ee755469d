/* one_step_test.c: a run over several devices sees the values of one step, whatever other threads
 * commit meanwhile. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/test.h"
#include "tutti/tutti.h"

enum { STEPS = TUTTI_TEST_SANITIZED ? 200 : 3000, ROWS = 8 };

typedef struct writer {
    tutti_session *session;
    tutti_sym step;
    int steps, failed;
    _Atomic bool done;
} writer;

static void *write_often(void *argument)
{
    writer *w = argument;
    for (int i = 0; i < w->steps; i++)
        w->failed += tutti_run(w->session, .target = w->step) != TUTTI_OK;
    w->done = true;
    return NULL;
}

static double number_of(tutti_tensor *tensor, int64_t index)
{
    double number = tutti_tensor_get(tensor, index);
    tutti_tensor_release(tensor);
    return number;
}

/* A step adds one to two variables on two devices: whoever reads both finds them equal. */
static void check_pair(const char *first, const char *second, int steps)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_sym a, b;
    CHECK_OK(tutti_graph_create(&g));
    TUTTI_WITH_DEVICE(g, first)
        a = tutti_variable(g, tutti_zeros(), .name = "a", .dtype = TUTTI_I64);
    TUTTI_WITH_DEVICE(g, second)
        b = tutti_variable(g, tutti_zeros(), .name = "b", .dtype = TUTTI_I64);
    tutti_sym one = tutti_scalar(g, TUTTI_I64, 1);
    tutti_sym both = tutti_group(g, tutti_assign_add(a, one), tutti_assign_add(b, one));
    tutti_sym difference = tutti_sub(a, b);
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    writer other = {.session = s, .step = both, .steps = steps};
    pthread_t thread;
    CHECK_INT(pthread_create(&thread, NULL, write_often, &other), 0);
    int torn = 0, reads = 0;
    for (bool done = false; !done; reads++) {
        tutti_tensor *x, *y, *d;
        done = other.done;
        CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({a, &x}, {b, &y})));
        CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({difference, &d})));
        torn += number_of(x, 0) != number_of(y, 0);
        torn += number_of(d, 0) != 0;
    }
    pthread_join(thread, NULL);
    CHECK_INT(other.failed, 0);
    CHECK_INT(torn, 0);
    CHECK(reads > 1);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(runs_over_two_devices_see_one_step)
{
    check_pair("far:0", "far:1", STEPS / 20);
    check_pair("cpu:0", "far:0", STEPS / 20);
    check_pair("whole:0", "cpu:0", STEPS / 4);
}

/* Rows of one batch on two devices are multiplied by the same weight. */
static void check_rows(const char *devices, int steps)
{
    tutti_strategy *strategy = tutti_strategy_create(
        "mirrored", &(tutti_strategy_options){.struct_size = sizeof(tutti_strategy_options),
                                              .devices = devices});
    CHECK(strategy != NULL);
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *ones;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym w = tutti_variable(g, tutti_zeros(), .name = "w"),
              x = tutti_split_batch(tutti_placeholder(g, TUTTI_F32, TUTTI_ANY)),
              y = tutti_mul(x, w), step = tutti_assign_add(w, tutti_scalar(g, TUTTI_F32, 1));
    CHECK_OK(tutti_session_open(&s, g, .strategy = strategy));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){ROWS},
                               (float[ROWS]){1, 1, 1, 1, 1, 1, 1, 1}, &ones));
    writer other = {.session = s, .step = step, .steps = steps};
    pthread_t thread;
    CHECK_INT(pthread_create(&thread, NULL, write_often, &other), 0);
    int torn = 0;
    for (bool done = false; !done;) {
        tutti_tensor *rows;
        done = other.done;
        CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, ones}), .fetch = TUTTI_FETCH({y, &rows})));
        double first = tutti_tensor_get(rows, 0);
        torn += first != number_of(rows, ROWS - 1);
    }
    pthread_join(thread, NULL);
    CHECK_INT(other.failed, 0);
    CHECK_INT(torn, 0);
    tutti_tensor_release(ones);
    tutti_session_close(s);
    tutti_graph_destroy(g);
    tutti_strategy_close(strategy);
}

TUTTI_TEST(replicas_see_one_step)
{
    check_rows("cpu:0,cpu:1", STEPS);
    check_rows("far:0,far:1", STEPS / 20);
}

typedef struct reader {
    tutti_session *session;
    tutti_sym x, mean;
    float fill;
    int wrong;
    pthread_t thread;
} reader;

static void *read_mean(void *argument)
{
    reader *r = argument;
    float rows[ROWS];
    tutti_tensor *fed, *mean;
    for (int i = 0; i < ROWS; i++)
        rows[i] = r->fill;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){ROWS}, rows, &fed));
    for (int i = 0; i < STEPS / 10; i++) {
        tutti_status status = tutti_run(r->session, .feed = TUTTI_FEED({r->x, fed}),
                                        .fetch = TUTTI_FETCH({r->mean, &mean}));
        r->wrong += status != TUTTI_OK || number_of(mean, 0) != r->fill;
    }
    tutti_tensor_release(fed);
    return NULL;
}

/* What devices exchange in one run is not taken for that of another. */
TUTTI_TEST(runs_of_several_threads_under_one_strategy_are_apart)
{
    static const char *const devices[] = {"cpu:0,cpu:1", "far:0,far:1"};
    for (int d = 0; d < 2; d++) {
        tutti_strategy *strategy = tutti_strategy_create(
            "mirrored", &(tutti_strategy_options){.struct_size = sizeof(tutti_strategy_options),
                                                  .devices = devices[d]});
        tutti_graph *g;
        tutti_session *s;
        CHECK_OK(tutti_graph_create(&g));
        tutti_sym x = tutti_split_batch(tutti_placeholder(g, TUTTI_F32, TUTTI_ANY)),
                  mean = tutti_mean(x);
        CHECK_OK(tutti_session_open(&s, g, .strategy = strategy));
        reader readers[] = {{.session = s, .x = x, .mean = mean, .fill = 1},
                            {.session = s, .x = x, .mean = mean, .fill = 100}};
        for (int i = 0; i < 2; i++)
            CHECK_INT(pthread_create(&readers[i].thread, NULL, read_mean, &readers[i]), 0);
        for (int i = 0; i < 2; i++) {
            pthread_join(readers[i].thread, NULL);
            CHECK_INT(readers[i].wrong, 0);
        }
        tutti_session_close(s);
        tutti_graph_destroy(g);
        tutti_strategy_close(strategy);
    }
}
