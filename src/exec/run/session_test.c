/* session_test.c: feeds, fetches, variables, caching, errors. */
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/test.h"
#include "tutti/tutti.h"

static tutti_tensor *vector(int64_t count, const float *values)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, &count, values, &tensor));
    return tensor;
}

TUTTI_TEST(session_adds_what_is_fed)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY),
              y = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY);
    tutti_sym sum = tutti_add(x, y);
    CHECK_OK(tutti_session_open(&s, g));
    for (int64_t n = 1; n < 4; n++) {
        tutti_tensor *a = vector(n, (float[]){1, 2, 3}), *b = vector(n, (float[]){10, 20, 30}),
                     *out = NULL;
        for (int again = 0; again < 2; again++) {
            CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, a}, {y, b}),
                               .fetch = TUTTI_FETCH({sum, &out})));
            CHECK_INT(tutti_tensor_count(out), n);
            CHECK_NEAR(tutti_tensor_get(out, n - 1), 11.0 * (double)n, 0);
            tutti_tensor_release(out);
        }
        tutti_tensor_release(a);
        tutti_tensor_release(b);
    }
    tutti_session_info info;
    tutti_session_describe(s, &info);
    CHECK_INT(info.runs, 6);
    CHECK_INT(info.compiles, 3);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* Settings are read where the device opens, which is once, and where the graph is compiled. */
static tutti_status open_and_run(tutti_graph *g, tutti_sym y)
{
    tutti_session *s;
    TUTTI_TRY(tutti_session_open(&s, g));
    tutti_tensor *out = NULL;
    tutti_status status = tutti_run(s, .fetch = TUTTI_FETCH({y, &out}));
    tutti_tensor_release(out);
    tutti_session_close(s);
    return status;
}

TUTTI_TEST_ALONE(settings_that_mean_nothing_are_refused)
{
    static const char *const names[] = {
        "THREADS", "PIN", "HELP", "WINOGRAD", "FUSE", "TUNE", "DYNAMIC_BYTES", "TRACE_RING", "ISA"};
    tutti_graph *g;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym y = tutti_tanh(tutti_neg(tutti_fill(g, TUTTI_F32, 0.5, 3)));
    for (size_t i = 0; i < TUTTI_COUNT(names); i++) {
        char text[64];
        snprintf(text, sizeof text, "TUTTI_%s is 'maybe', needs", names[i]);
        CHECK_OK(tutti__param_set(names[i], "maybe"));
        CHECK_STATUS(open_and_run(g, y), TUTTI_INVALID);
        CHECK_CONTAINS(tutti_error_message(), text);
        CHECK_OK(tutti__param_set(names[i], NULL));
    }
    CHECK_OK(open_and_run(g, y));
    tutti_graph_destroy(g);
}

TUTTI_TEST(session_trains_a_line)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY),
              y = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY);
    tutti_sym w = tutti_variable(g, tutti_zeros(), .name = "w"),
              b = tutti_variable(g, tutti_zeros(), .name = "b");
    tutti_sym loss = tutti_mean(tutti_square(tutti_sub(tutti_add(tutti_mul(x, w), b), y)));
    tutti_sym step = tutti_minimize(tutti_sgd(0.1), loss);
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    tutti_tensor *xs = vector(4, (float[]){0, 1, 2, 3}), *ys = vector(4, (float[]){1, 3, 5, 7}),
                 *value;
    for (int i = 0; i < 500; i++)
        CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, xs}, {y, ys}), .target = step));
    CHECK_OK(tutti_session_get(s, w, &value));
    CHECK_NEAR(tutti_tensor_get(value, 0), 2, 1e-3);
    tutti_tensor_release(value);
    CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({b, &value})));
    CHECK_NEAR(tutti_tensor_get(value, 0), 1, 1e-3);
    tutti_tensor_release(value);
    tutti_tensor_release(xs);
    tutti_tensor_release(ys);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(session_reads_old_values_and_follows_updates)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym v = tutti_variable(g, tutti_full(5), .name = "v");
    tutti_sym before = tutti_mul(v, 3);
    tutti_sym add = tutti_assign_add(v, tutti_scalar(g, TUTTI_F32, 2));
    tutti_sym after = TUTTI_NO_SYM;
    TUTTI_WITH_CONTROL(g, add)
        after = tutti_mul(tutti_read(v), 10);
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    tutti_tensor *out[4];
    CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({before, &out[0]}, {add, &out[1]}, {after, &out[2]},
                                               {v, &out[3]})));
    CHECK_NEAR(tutti_tensor_get(out[0], 0), 15, 0);
    CHECK_NEAR(tutti_tensor_get(out[1], 0), 7, 0);
    CHECK_NEAR(tutti_tensor_get(out[2], 0), 70, 0);
    CHECK_NEAR(tutti_tensor_get(out[3], 0), 5, 0);
    for (int i = 0; i < 4; i++)
        tutti_tensor_release(out[i]);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(session_changes_nothing_when_a_step_fails)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32);
    tutti_sym v = tutti_variable(g, tutti_zeros(), .name = "v");
    tutti_sym add = tutti_assign_add(v, x);
    tutti_sym checked =
        tutti_check_numerics(add, "the new value"); /* follows the update, and may fail */
    tutti_sym other = tutti_check_numerics(x, "x");
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    tutti_tensor *good, *bad, *value;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, &(float){3}, &good));
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, &(float){__builtin_inff()}, &bad));
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, good}), .target = checked));
    CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, bad}), .target = checked), TUTTI_CHECK_FAILED);
    CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, bad}), .targets = TUTTI_TARGETS(add, other)),
                 TUTTI_CHECK_FAILED);
    CHECK_OK(tutti_session_get(s, v, &value));
    CHECK_NEAR(tutti_tensor_get(value, 0), 3, 0);
    tutti_tensor_release(value);
    tutti_tensor_release(good);
    tutti_tensor_release(bad);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* A placeholder that is fed is done: as a target, and where something waits for it. */
TUTTI_TEST(session_runs_targets_that_are_fed)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 3), y = TUTTI_NO_SYM;
    TUTTI_WITH_CONTROL(g, x)
        y = tutti_fill(g, TUTTI_F32, 7);
    tutti_tensor *a = vector(3, (float[]){1, 2, 3}), *out;
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, a}), .target = x));
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, a}), .target = tutti_group(g, x, y)));
    CHECK_OK(
        tutti_run(s, .feed = TUTTI_FEED({x, a}), .target = x, .fetch = TUTTI_FETCH({y, &out})));
    CHECK_NEAR(tutti_tensor_get(out, 0), 7, 0);
    tutti_tensor_release(out);
    tutti_tensor_release(a);
    CHECK_STATUS(tutti_run(s, .target = x), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "must be fed");
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(session_names_what_is_wrong)
{
    tutti_graph *g, *other;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_graph_create(&other));
    tutti_sym x = tutti_placeholder_named(g, "images", TUTTI_F32, TUTTI_ANY, 3),
              y = tutti_mul(x, 2);
    tutti_sym v = tutti_variable(g, tutti_zeros(3), .name = "weights");
    tutti_sym foreign = tutti_placeholder(other, TUTTI_F32);
    CHECK_OK(tutti_session_open(&s, g));
    tutti_tensor *a = vector(3, (float[]){1, 2, 3}), *out;
    CHECK_STATUS(tutti_run(s, .fetch = TUTTI_FETCH({y, &out})), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "images");
    CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, a}), .fetch = TUTTI_FETCH({y, &out})),
                 TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "f32[?,3]");
    CHECK_CONTAINS(tutti_error_message(), "session_test.c");
    CHECK_STATUS(tutti_run(s, .fetch = TUTTI_FETCH({foreign, &out})), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "another graph");
    CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, a}, {x, a}), .fetch = TUTTI_FETCH({y, &out})),
                 TUTTI_INVALID);
    CHECK_STATUS(tutti_run(s, .fetch = TUTTI_FETCH({v, &out})), TUTTI_UNINITIALIZED);
    CHECK_CONTAINS(tutti_error_message(), "weights");
    tutti_tensor_release(a);
    tutti_run_options many = {.struct_size = sizeof many, .targets = {.count = INT_MAX}};
    CHECK_STATUS(tutti_run_with(s, &many), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "2147483647 targets");
    many.targets.count = -1;
    CHECK_STATUS(tutti_run_with(s, &many), TUTTI_INVALID);
    many.targets.count = 1;
    CHECK_STATUS(tutti_run_with(s, &many), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "is NULL");
    CHECK_STATUS(tutti_run(s, .deadline_seconds = -1), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "a deadline of -1 seconds");
    CHECK_STATUS(tutti_run(s, .batch = -5), TUTTI_INVALID);
    tutti_session_close(s);
    tutti_graph_destroy(g);
    tutti_graph_destroy(other);
}

TUTTI_TEST(sessions_refuse_options_that_cannot_be)
{
    static const struct {
        tutti_session_options options;
        const char *message;
    } cases[] = {
        {{.deadline_seconds = -1}, "a deadline of -1 seconds"},
        {{.deadline_seconds = NAN}, "a deadline of nan seconds"},
        {{.cache_limit = -4}, "a cache of -4 programs"},
        {{.memory_limit = -4}, "a memory limit of -4 bytes"},
        {{.mesh = "a"}, "axes look like data=2"},
        {{.mesh = "a=2,"}, "the mesh 'a=2,' has places for 2 devices, and 0 are named"},
        {{.mesh = "a=0"}, "'a=0' needs a size of 1 to 4096"},
        {{.mesh = "a=1,a=2"}, "two axes called 'a'"},
        {{.mesh = "a=4096,b=2"}, "more than 4096 devices"},
        {{.mesh = "a=1,b=1,c=1,d=1,e=1,f=1,g=1"}, "more than 6 axes"},
        {{.mesh = "a=2,b=3", .mesh_devices = "cpu:0,cpu:1,cpu:2,cpu:3"},
         "the mesh 'a=2,b=3' has places for 6 devices, and 4 are named"},
        {{.mesh = "a=2", .mesh_devices = "cpu:0,cpu:"}, "cannot read 'cpu:'"},
        {{.mesh = "a=2", .mesh_devices = "cpu:0,"}, "device 1 of the mesh is ''"},
        {{.mesh = "a=2", .mesh_devices = "far:0,/far:0"},
         "devices 0 and 1 of the mesh are both '/far:0'"},
    };
    tutti_graph *g;
    CHECK_OK(tutti_graph_create(&g));
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        tutti_session_options options = cases[i].options;
        options.struct_size = sizeof options;
        tutti_session *s = NULL;
        CHECK(tutti_session_open_with(g, &options, &s) != TUTTI_OK);
        CHECK_CONTAINS(tutti_error_message(), cases[i].message);
        CHECK(s == NULL);
    }
    tutti_graph_destroy(g);
}

TUTTI_TEST(session_compiles_again_when_a_shape_depends_on_data)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym n = tutti_placeholder(g, TUTTI_F32);
    tutti_sym total = tutti_variable(g, tutti_zeros(), .name = "total");
    tutti_sym numbers = tutti_apply_op(
        g, "range_dynamic", 3,
        ((tutti_sym[]){tutti_scalar(g, TUTTI_F32, 0), n, tutti_scalar(g, TUTTI_F32, 1)}), 0, NULL);
    tutti_sym sum = tutti_sum(tutti_square(numbers));
    tutti_sym update = tutti_assign_add(total, sum);
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    double expected = 0;
    for (int round = 1; round < 6; round++) {
        tutti_tensor *limit, *out, *list;
        CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, &(float){(float)round}, &limit));
        CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({n, limit}),
                           .fetch = TUTTI_FETCH({sum, &out}, {numbers, &list}), .target = update));
        double squares = 0;
        for (int i = 0; i < round; i++)
            squares += (double)i * i;
        expected += squares;
        CHECK_INT(tutti_tensor_count(list), round);
        CHECK_NEAR(tutti_tensor_get(out, 0), squares, 1e-5);
        tutti_tensor_release(limit);
        tutti_tensor_release(out);
        tutti_tensor_release(list);
    }
    tutti_tensor *value;
    CHECK_OK(tutti_session_get(s, total, &value));
    CHECK_NEAR(tutti_tensor_get(value, 0), expected, 1e-4);
    tutti_tensor_release(value);
    tutti_session_info info;
    tutti_session_describe(s, &info);
    CHECK_INT(info.runs, 6); /* what comes behind a shape that depends on data is no other one */
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

typedef struct worker {
    tutti_session *session;
    tutti_sym step;
    tutti_status status;
} worker;

static void *work(void *argument)
{
    worker *w = argument;
    for (int i = 0; i < 200 && w->status == TUTTI_OK; i++)
        w->status = tutti_run(w->session, .target = w->step);
    return NULL;
}

TUTTI_TEST(session_runs_from_several_threads)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym v = tutti_variable(g, tutti_zeros(100), .name = "v");
    tutti_tensor *one = vector(100, (float[100]){1});
    tutti_sym step = tutti_assign_add(v, tutti_constant(g, one));
    tutti_tensor_release(one);
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    worker workers[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        workers[i] = (worker){s, step, TUTTI_OK};
        pthread_create(&threads[i], NULL, work, &workers[i]);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        CHECK_OK(workers[i].status);
    }
    tutti_tensor *value;
    CHECK_OK(tutti_session_get(s, v, &value));
    CHECK_NEAR(tutti_tensor_get(value, 0), 800, 0);
    CHECK_NEAR(tutti_tensor_get(value, 1), 0, 0);
    tutti_tensor_release(value);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* Of x's rows, which are known at the run only, as many as there are of indices. */
TUTTI_TEST(session_gathers_elements_of_unknown_rows)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *rows, *out;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 3);
    tutti_sym at = tutti_reshape(tutti_ints(g, 2, 0, -1, 1), 2, 2);
    tutti_sym y = tutti_gather_elements(x, at, 1);
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 2, (int64_t[]){3, 3},
                               (float[]){0, 1, 2, 10, 11, 12, 20, 21, 22}, &rows));
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, rows}), .fetch = TUTTI_FETCH({y, &out})));
    CHECK_INT(tutti_tensor_count(out), 4);
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(tutti_tensor_get(out, i), ((double[]){2, 0, 12, 11})[i], 0);
    tutti_tensor_release(out);
    tutti_tensor_release(rows);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* A name without a kind stands for this process's first cpu. */
TUTTI_TEST(sessions_take_devices_without_a_kind)
{
    static const char *const wishes[] = {"", "/job:ps/task:1", "cpu", "/cpu:0"};
    for (size_t i = 0; i < TUTTI_COUNT(wishes); i++) {
        tutti_graph *g;
        tutti_session *s;
        tutti_tensor *value;
        CHECK_OK(tutti_graph_create(&g));
        tutti_sym w = tutti_variable(g, tutti_ones(2));
        CHECK_OK(tutti_session_open(&s, g, .device = wishes[i]));
        CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
        CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({w, &value})));
        tutti_tensor_release(value);
        tutti_session_close(s);
        tutti_graph_destroy(g);
    }
}

/* Files and lines do not travel: messages of a graph that was read leave the place out. */
TUTTI_TEST(messages_of_a_graph_that_was_read_name_no_place)
{
    tutti_graph *g, *read;
    tutti_session *s;
    tutti_tensor *value, *y;
    void *data;
    size_t size;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32, 2);
    TUTTI_WITH_DEVICE(g, "nowhere:9")
        x = tutti_neg(x);
    CHECK_OK(tutti_graph_serialize(g, &data, &size));
    CHECK_OK(tutti_graph_deserialize(data, size, &read));
    CHECK_OK(tutti_session_open(&s, read));
    tutti_sym fed = {.node = tutti_graph_find(read, "x")},
              wanted = {.node = tutti_graph_find(read, "neg")};
    for (int wrong = 0; wrong < 2; wrong++) {
        CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){2 + wrong}, &value));
        CHECK(tutti_run(s, .feed = TUTTI_FEED({fed, value}), .fetch = TUTTI_FETCH({wanted, &y})) !=
              TUTTI_OK);
        CHECK_CONTAINS(tutti_error_message(), wrong ? "'x' takes f32[2]" : "neg 'neg': there is");
        tutti_tensor_release(value);
    }
    free(data);
    tutti_session_close(s);
    tutti_graph_destroy(read);
    tutti_graph_destroy(g);
}

/* Whoever calls a function itself, not its macro, may leave options out. */
TUTTI_TEST(session_options_may_be_left_out)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_eager *eager;
    tutti_tensor *value;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym w = tutti_variable_with(g, tutti_ones(3), NULL);
    tutti_sym same = tutti_get_variable_with(g, "other", tutti_ones(2), NULL);
    tutti_sym random = tutti_random_uniform_with(g, 0, 1, TUTTI_TYPE(TUTTI_F32, 4), NULL);
    tutti_sym all = tutti_add(tutti_add(tutti_sum(tutti_read(w)), tutti_sum(tutti_read(same))),
                              tutti_mul(tutti_sum(tutti_random_shuffle_with(random, NULL)), 0));
    CHECK_OK(tutti_session_open_with(g, NULL, &s));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({all, &value})));
    CHECK_NEAR(tutti_tensor_get(value, 0), 5, 1e-6);
    tutti_tensor_release(value);
    CHECK_STATUS(tutti_run_with(s, NULL), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "options");
    CHECK_STATUS(tutti_session_get(s, w, NULL), TUTTI_INVALID);
    tutti_session_close(s);
    tutti_graph_destroy(g);
    CHECK_OK(tutti_eager_open_with(NULL, &eager));
    tutti_eager_close(eager);
}

TUTTI_TEST(session_keeps_the_sign_of_zero)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *value;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym zero = tutti_fill(g, TUTTI_F32, -0.0, 3);
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({tutti_reciprocal(zero), &value})));
    CHECK(isinf(tutti_tensor_get(value, 2)) && tutti_tensor_get(value, 2) < 0);
    tutti_tensor_release(value);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(random_numbers_need_no_initialiser)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *first, *second, *again;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym noise = tutti_random_uniform(g, 0, 1, TUTTI_TYPE(TUTTI_F32, 4));
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({noise, &first})));
    CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({noise, &second})));
    CHECK(!tutti_tensor_same(first, second));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({noise, &again})));
    CHECK(tutti_tensor_same(first, again)); /* the initialiser begins with 0 as well */
    tutti_tensor_release(first);
    tutti_tensor_release(second);
    tutti_tensor_release(again);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}
