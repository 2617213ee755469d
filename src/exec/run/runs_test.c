/* runs_test.c: what may be fed and fetched, the cache, devices, and runs from several threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/test.h"
#include "exec/run/engine_inside.h"
#include "tutti/tutti.h"

static tutti_tensor *vector(int64_t count, const float *values)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, &count, values, &tensor));
    return tensor;
}

static double take(tutti_tensor *tensor)
{
    double value = tutti_tensor_get(tensor, 0);
    tutti_tensor_release(tensor);
    return value;
}

TUTTI_TEST(runs_fetch_whatever_has_a_value)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g, .deadline_seconds = __builtin_inf()));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 2), c = tutti_scalar(g, TUTTI_F32, 4),
              v = tutti_variable(g, tutti_full(9, 1));
    tutti_sym middle = tutti_mul(x, 2), end = tutti_add(middle, c),
              view = tutti_reshape(middle, 1, 2);
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    tutti_tensor *in = vector(2, (float[]){1, 2}), *other = vector(2, (float[]){10, 20}), *out[8];
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, in}),
                       .fetch = TUTTI_FETCH({x, &out[0]}, {c, &out[1]}, {v, &out[2]},
                                            {end, &out[3]}, {end, &out[4]}, {middle, &out[5]},
                                            {view, &out[6]}, {view, &out[7]})));
    const double expected[] = {1, 4, 9, 6, 6, 2, 2, 2};
    for (int i = 0; i < 8; i++) {
        for (int k = 0; k < i; k++) /* each fetch is a tensor of its own */
            CHECK(tutti_tensor_data(out[i]) != tutti_tensor_data(out[k]));
        CHECK_INT(tutti_tensor_rank(out[i]), i == 1 ? 0 : i >= 6 ? 2 : 1);
    }
    for (int i = 0; i < 8; i++)
        CHECK_NEAR(take(out[i]), expected[i], 0);
    /* A value inside is fed; what it was made from is not needed. */
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({middle, other}),
                       .fetch = TUTTI_FETCH({end, &out[0]}, {middle, &out[1]})));
    CHECK_NEAR(take(out[0]), 14, 0);
    CHECK_NEAR(take(out[1]), 10, 0);
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, in}, {middle, other}),
                       .fetch = TUTTI_FETCH({end, &out[0]})));
    CHECK_NEAR(take(out[0]), 14, 0);
    CHECK_OK(tutti_run(s)); /* nothing asked, nothing done */
    CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({v, in}), .target = end), TUTTI_INVALID);
    CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, NULL}), .target = end), TUTTI_INVALID);
    tutti_tensor_release(in);
    tutti_tensor_release(other);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* On all threads, and the caller's own numbers stay as they were. */
TUTTI_TEST(runs_take_tiny_numbers_for_zero)
{
    enum { COUNT = 300000 };
    static float values[COUNT];
    volatile float tiny = 1e-30f, product;
    tutti_graph *g;
    tutti_session *s;
    for (int i = 0; i < COUNT; i++)
        values[i] = i % 2 ? 1e-30f : 1;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, COUNT), y = tutti_mul(x, 1e-10);
    tutti_tensor *in = vector(COUNT, values), *out;
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, in}), .fetch = TUTTI_FETCH({y, &out})));
    const float *made = tutti_tensor_data(out);
    for (int i = 0; i < COUNT; i++)
        if (made[i] != (i % 2 ? 0 : 1e-10f)) {
            CHECK_NEAR(made[i], i % 2 ? 0 : 1e-10, 0);
            break;
        }
    product = tiny * 1e-10f;
    CHECK(product > 0);
    tutti_tensor_release(in);
    tutti_tensor_release(out);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(runs_take_feeds_that_are_views)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 3), y = tutti_mul(x, 10);
    tutti_tensor *in = vector(6, (float[]){0, 1, 2, 3, 4, 5}), *odd, *out;
    CHECK_OK(tutti_tensor_slice(in, 0, 1, 3, 2, &odd));
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, odd}), .fetch = TUTTI_FETCH({y, &out})));
    CHECK_NEAR(tutti_tensor_get(out, 1), 30, 0);
    CHECK_NEAR(tutti_tensor_get(out, 2), 50, 0);
    tutti_tensor_release(out);
    tutti_tensor_release(odd);
    tutti_tensor_release(in);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(runs_keep_few_programs)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_session_info info;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g, .cache_limit = 3));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY), y = tutti_sum(x);
    tutti_tensor *whole = vector(8, (float[8]){1}), *part = vector(5, (float[5]){1}), *out;
    for (int epoch = 0; epoch < 3; epoch++) /* full batches and a partial last one: two programs */
        for (int i = 0; i < 4; i++) {
            CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, i < 3 ? whole : part}),
                               .fetch = TUTTI_FETCH({y, &out})));
            tutti_tensor_release(out);
        }
    tutti_session_describe(s, &info);
    CHECK_INT(info.compiles, 2);
    for (int64_t n = 1; n < 20; n++) {
        tutti_tensor *value;
        CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, &n, &value));
        CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, value}), .fetch = TUTTI_FETCH({y, &out})));
        tutti_tensor_release(out);
        CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, whole}),
                           .fetch = TUTTI_FETCH({y, &out}))); /* used often: it stays */
        tutti_tensor_release(out);
        tutti_tensor_release(value);
    }
    tutti_session_describe(s, &info);
    CHECK_INT(info.cached_programs, 3);
    CHECK_INT(info.compiles, 2 + 18); /* 8 elements were compiled before */
    tutti_tensor_release(whole);
    tutti_tensor_release(part);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* Logical devices and test devices by scope; colocation; a control edge between devices. */
TUTTI_TEST(runs_cross_devices)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g, .deadline_seconds = 10));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 2), a = TUTTI_NO_SYM, b = TUTTI_NO_SYM,
              v = TUTTI_NO_SYM, count, late = TUTTI_NO_SYM;
    TUTTI_WITH_DEVICE(g, "/cpu:1")
        a = tutti_mul(x, 3);
    TUTTI_WITH_DEVICE(g, "/job:worker/task:0/device:far:2") {
        v = tutti_variable(g, tutti_zeros(), .name = "v");
        b = tutti_add(a, x);
        count = tutti_assign_add(v, tutti_scalar(g, TUTTI_F32, 1));
    }
    TUTTI_WITH_DEVICE(g, "cpu:0")
        TUTTI_WITH_CONTROL(g, count)
            late = tutti_mul(b, 2);
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    tutti_tensor *in = vector(2, (float[]){1, 2}), *out[3];
    for (int i = 1; i < 4; i++) {
        CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, in}),
                           .fetch = TUTTI_FETCH({late, &out[0]}, {a, &out[1]}, {v, &out[2]})));
        CHECK_NEAR(take(out[0]), 8, 0);
        CHECK_NEAR(take(out[1]), 3, 0);
        CHECK_NEAR(take(out[2]), i - 1, 0);
    }
    CHECK_OK(tutti_session_get(s, v, &out[0]));
    CHECK_NEAR(take(out[0]), 3, 0);
    char *text;
    CHECK_OK(tutti_session_print(s, &text));
    CHECK_CONTAINS(text, "program on cpu:1");
    CHECK_CONTAINS(text, "program on far:2");
    free(text);
    TUTTI_WITH_DEVICE(g, "cpu:7")
        a = tutti_mul(x, 5);
    CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, in}), .fetch = TUTTI_FETCH({a, &out[0]})),
                 TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "cpu:7");
    CHECK_CONTAINS(tutti_error_message(), "runs_test.c");
    tutti_tensor_release(in);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

typedef struct worker {
    tutti_session *session;
    tutti_sym x, step, loss, v, pair[2];
    int number;
    tutti_status status;
} worker;

static tutti_status train(worker *w)
{
    int64_t n = 1 + w->number % 3;
    tutti_tensor *in, *loss = NULL;
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 1, &n, &in));
    tutti_status status = tutti_run(w->session, .feed = TUTTI_FEED({w->x, in}),
                                    .fetch = TUTTI_FETCH({w->loss, &loss}), .target = w->step);
    tutti_tensor_release(loss);
    tutti_tensor_release(in);
    return status;
}

/* Both variables are updated in one step: nobody may see one without the other. */
static tutti_status watch(worker *w)
{
    tutti_tensor *a = NULL, *b = NULL, *copy = NULL;
    TUTTI_TRY(tutti_run(w->session,
                        .fetch = TUTTI_FETCH({w->pair[0], &a}, {w->pair[1], &b}, {w->v, &copy})));
    tutti_status status = TUTTI_OK;
    if (tutti_tensor_get(a, 0) != tutti_tensor_get(b, 99))
        status = tutti_fail(TUTTI_INTERNAL, "half a step: %g and %g", tutti_tensor_get(a, 0),
                            tutti_tensor_get(b, 99));
    tutti_tensor_release(a);
    tutti_tensor_release(b);
    tutti_tensor_release(copy);
    if (status == TUTTI_OK)
        status = tutti_session_get(w->session, w->v, &copy);
    if (status == TUTTI_OK)
        tutti_tensor_release(copy);
    return status;
}

static void *work(void *argument)
{
    worker *w = argument;
    for (int i = 0; i < 100 && w->status == TUTTI_OK; i++)
        w->status = w->number % 2 ? watch(w) : train(w);
    return NULL;
}

/* Each device sends what it makes first and uses what comes from the other in an element-wise chain
 * with it: neither may fuse the two and wait before it sends. */
static void exchange(const char *one, const char *other, bool after_update)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g, .deadline_seconds = 5));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 2), a = TUTTI_NO_SYM, b = TUTTI_NO_SYM, c = a,
              d = a;
    TUTTI_WITH_DEVICE(g, one)
        a = tutti_mul(after_update ? tutti_assign_add(tutti_variable(g, tutti_zeros(2)), x) : x, 3);
    TUTTI_WITH_DEVICE(g, other)
        b = tutti_mul(after_update ? tutti_assign_add(tutti_variable(g, tutti_zeros(2)), x) : x, 5);
    TUTTI_WITH_DEVICE(g, one)
        c = tutti_add(a, tutti_square(b));
    TUTTI_WITH_DEVICE(g, other)
        d = tutti_add(b, tutti_square(a));
    tutti_tensor *in = vector(2, (float[]){1, 2}), *out[2];
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, in}),
                       .fetch = TUTTI_FETCH({c, &out[0]}, {d, &out[1]})));
    CHECK_NEAR(take(out[0]), 28, 0);
    CHECK_NEAR(take(out[1]), 14, 0);
    tutti_tensor_release(in);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(runs_do_not_wait_for_each_other_in_a_circle)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    for (int after_update = 0; after_update < 2; after_update++) {
        exchange("cpu:0", "cpu:1", after_update);
        exchange("far:0", "far:1", after_update);
        exchange("cpu:0", "far:0", after_update);
    }
}

TUTTI_TEST(runs_of_several_threads_train_and_read)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g, .deadline_seconds = 60));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY),
              w = tutti_variable(g, tutti_zeros(), .name = "w");
    tutti_sym pair[] = {tutti_variable(g, tutti_zeros(100), .name = "a", .not_trainable = true),
                        tutti_variable(g, tutti_zeros(100), .name = "b", .not_trainable = true)};
    tutti_sym loss =
        tutti_mean(tutti_square(tutti_sub(tutti_add(x, w), tutti_scalar(g, TUTTI_F32, 1))));
    tutti_tensor *ones = vector(100, (float[100]){0});
    for (int i = 0; i < 100; i++)
        tutti_tensor_set(ones, i, 1);
    tutti_sym one = tutti_constant(g, ones),
              step = tutti_group(g, tutti_minimize(tutti_sgd(0.01), loss),
                                 tutti_assign_add(pair[0], one), tutti_assign_add(pair[1], one));
    tutti_tensor_release(ones);
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    worker workers[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        workers[i] = (worker){s, x, step, loss, w, {pair[0], pair[1]}, i, TUTTI_OK};
        CHECK_INT(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        CHECK_OK(workers[i].status);
    }
    tutti_tensor *value;
    CHECK_OK(tutti_session_get(s, pair[1], &value));
    CHECK_NEAR(take(value), 200, 0);
    CHECK_OK(tutti_session_get(s, w, &value));
    CHECK(take(value) > 0.5);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(a_session_computes_on_its_strategys_device)
{
    tutti_strategy *far = tutti_strategy_one_device(.devices = "far:0", .deterministic = true);
    CHECK_OK(tutti_strategy_check(far));
    static const char *const named[] = {NULL, "cpu:0"}, *const expected[] = {"far:0", "cpu:0"};
    for (int i = 0; i < 2; i++) {
        tutti_engine_options options = {.device = named[i], .strategy = far};
        tutti_engine *engine;
        CHECK_OK(tutti__engine_create(&options, &engine));
        CHECK_STR(engine->device, expected[i]);
        CHECK(engine->options.deterministic);
        tutti__engine_destroy(engine);
    }
    tutti_strategy_close(far);
}
