/* claims_test.c: runs of several threads that update the same variables lose no update, also when
 * something that can fail follows the update, so that the new values are made before the commit. */
#include <pthread.h>

#include "base/test.h"
#include "tutti/tutti.h"

#define THREADS 4
#define ROUNDS (TUTTI_TEST_SANITIZED ? 50 : 300)

typedef struct worker {
    tutti_session *session;
    tutti_sym step;
    pthread_t thread;
    int failed;
} worker;

static void *work(void *argument)
{
    worker *w = argument;
    for (int i = 0; i < ROUNDS; i++)
        w->failed += tutti_run(w->session, .target = w->step) != TUTTI_OK;
    return NULL;
}

static double value_of(tutti_session *session, tutti_sym variable)
{
    tutti_tensor *value;
    CHECK_OK(tutti_session_get(session, variable, &value));
    double number = tutti_tensor_get(value, 0);
    tutti_tensor_release(value);
    return number;
}

/* What follows the update may fail: the step makes shadows. */
static tutti_sym add_and_check(tutti_graph *g, tutti_sym variable, double amount)
{
    tutti_sym added = tutti_assign_add(variable, tutti_scalar(g, TUTTI_F32, amount));
    return tutti_check_numerics(added, "sum");
}

/* Runs the steps, each on its thread, at once; returns how many runs failed. */
static int run_all(tutti_session *session, int count, const tutti_sym *steps)
{
    worker workers[THREADS];
    int failed = 0;
    for (int i = 0; i < count; i++) {
        workers[i] = (worker){.session = session, .step = steps[i]};
        CHECK_INT(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        failed += workers[i].failed;
    }
    return failed;
}

static void check_counting(const char *first_device, const char *second_device)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_sym a, b, both;
    CHECK_OK(tutti_graph_create(&g));
    TUTTI_WITH_DEVICE(g, first_device)
        a = tutti_variable(g, tutti_zeros(), .name = "a");
    TUTTI_WITH_DEVICE(g, second_device)
        b = tutti_variable(g, tutti_zeros(), .name = "b");
    tutti_sym on_a, on_b;
    TUTTI_WITH_DEVICE(g, first_device)
        on_a = add_and_check(g, a, 1);
    TUTTI_WITH_DEVICE(g, second_device)
        on_b = add_and_check(g, b, 1);
    both = tutti_group(g, on_a, on_b);
    tutti_sym plain = tutti_assign_add(a, tutti_scalar(g, TUTTI_F32, 1000)); /* no shadows */
    CHECK_OK(tutti_session_open(&s, g, .deadline_seconds = 120));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    CHECK_INT(run_all(s, 4, (tutti_sym[]){both, on_b, both, plain}), 0);
    CHECK_NEAR(value_of(s, a), 2 * ROUNDS + 1000.0 * ROUNDS, 0);
    CHECK_NEAR(value_of(s, b), 3 * ROUNDS, 0);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(claims_of_one_device_lose_no_update)
{
    check_counting("cpu:0", "cpu:0");
}

TUTTI_TEST(claims_of_two_devices_lose_no_update)
{
    check_counting("cpu:0", "far:0");
    check_counting("far:1", "whole:0");
}

typedef struct setter {
    tutti_session *session;
    tutti_sym variable;
} setter;

static void *set_often(void *argument)
{
    const setter *s = argument;
    tutti_tensor *value;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, &(float){1e6F}, &value));
    for (int i = 0; i < ROUNDS; i++)
        CHECK_OK(tutti_session_set(s->session, s->variable, value));
    tutti_tensor_release(value);
    return NULL;
}

/* Once set the value is only added to: it never falls back to one of before. */
TUTTI_TEST(claims_keep_what_was_set)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym v = tutti_variable(g, tutti_zeros(), .name = "v"), step = add_and_check(g, v, 1);
    CHECK_OK(tutti_session_open(&s, g, .deadline_seconds = 60));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    setter other = {s, v};
    pthread_t thread;
    CHECK_INT(pthread_create(&thread, NULL, set_often, &other), 0);
    CHECK_INT(run_all(s, 1, &step), 0);
    pthread_join(thread, NULL);
    CHECK(value_of(s, v) >= 1e6);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* A run that fails gives up what it claimed; one that waits too long for a claim says for what. */
TUTTI_TEST(claims_end_with_the_run_that_fails)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym v = tutti_variable(g, tutti_zeros(), .name = "v"),
              x = tutti_placeholder(g, TUTTI_F32),
              step = tutti_check_numerics(tutti_assign_add(v, x), "sum");
    CHECK_OK(tutti_session_open(&s, g, .deadline_seconds = 60));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    tutti_tensor *bad, *good;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, &(float){__builtin_inff()}, &bad));
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, &(float){2}, &good));
    for (int i = 0; i < 3; i++) {
        CHECK(tutti_run(s, .feed = TUTTI_FEED({x, bad}), .target = step) != TUTTI_OK);
        CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, good}), .target = step));
    }
    CHECK_NEAR(value_of(s, v), 6, 0);
    tutti_tensor_release(bad);
    tutti_tensor_release(good);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}
