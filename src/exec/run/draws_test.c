/* draws_test.c: runs of several threads that draw at once: no two of them the same numbers, and the
 * counter has advanced by as many as there were, whatever kind of program they run. */
#include <pthread.h>
#include <stdlib.h>

#include "base/test.h"
#include "tutti/tutti.h"

enum { THREADS = 4, ROUNDS = TUTTI_TEST_SANITIZED ? 30 : 100, DRAWS = THREADS * ROUNDS };

typedef struct worker {
    tutti_session *session;
    tutti_sym drawn, target;
    pthread_t thread;
    int failed;
    double values[ROUNDS];
} worker;

static void *work(void *argument)
{
    worker *w = argument;
    for (int i = 0; i < ROUNDS; i++) {
        tutti_tensor *value;
        tutti_status status =
            tutti_run(w->session, .fetch = TUTTI_FETCH({w->drawn, &value}),
                      .targets = TUTTI_TARGETS(tutti_sym_ok(w->target) ? w->target : w->drawn));
        w->failed += status != TUTTI_OK;
        w->values[i] = status == TUTTI_OK ? tutti_tensor_get(value, 0) : -1 - i;
        if (status == TUTTI_OK)
            tutti_tensor_release(value);
    }
    return NULL;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int64_t counter_of(tutti_session *s, tutti_graph *g)
{
    tutti_tensor *value;
    CHECK_OK(
        tutti_session_get(s, (tutti_sym){tutti_graph_find(g, "tutti/random_counter")}, &value));
    int64_t number = tutti_tensor_get_int(value, 0);
    tutti_tensor_release(value);
    return number;
}

static void draw_at_once(tutti_session *s, tutti_graph *g, tutti_sym drawn, tutti_sym target)
{
    static worker workers[THREADS];
    static double all[DRAWS];
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    for (int t = 0; t < THREADS; t++) {
        workers[t] = (worker){.session = s, .drawn = drawn, .target = target};
        CHECK_INT(pthread_create(&workers[t].thread, NULL, work, &workers[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(workers[t].thread, NULL);
        CHECK_INT(workers[t].failed, 0);
        for (int i = 0; i < ROUNDS; i++)
            all[t * ROUNDS + i] = workers[t].values[i];
    }
    qsort(all, DRAWS, sizeof *all, compare);
    int same = 0;
    for (int i = 1; i < DRAWS; i++)
        same += all[i] == all[i - 1];
    CHECK_INT(same, 0);
    CHECK_INT(counter_of(s, g), DRAWS);
}

static tutti_sym draw(tutti_graph *g)
{
    return tutti_random_uniform(g, 0, 1, TUTTI_TYPE(TUTTI_F64, 500), .seed = 3);
}

static void check(const char *device)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym z = draw(g);
    CHECK_OK(tutti_session_open(&s, g, .device = device, .deadline_seconds = 120));
    draw_at_once(s, g, tutti_sum(z), TUTTI_NO_SYM);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(runs_at_once_draw_different_numbers)
{
    check("cpu:0");
    check("far:0");
    check("whole:0");
}

/* Cut where a shape depends on what was drawn: the rest advances the counter. */
TUTTI_TEST(runs_at_once_of_cut_programs_draw_different_numbers)
{
    const char *devices[] = {"cpu:0", "whole:0"};
    for (size_t d = 0; d < TUTTI_COUNT(devices); d++) {
        tutti_graph *g;
        tutti_session *s;
        CHECK_OK(tutti_graph_create(&g));
        tutti_sym z = draw(g);
        tutti_sym places = tutti_nonzero(tutti_greater(z, tutti_scalar(g, TUTTI_F64, 0.5)));
        tutti_sym some = tutti_gather(z, tutti_reshape(places, -1), 0);
        CHECK_OK(tutti_session_open(&s, g, .device = devices[d], .deadline_seconds = 120));
        draw_at_once(s, g, tutti_sum(some), TUTTI_NO_SYM);
        tutti_session_close(s);
        tutti_graph_destroy(g);
    }
}

/* New values are made before the commit, by runs that wait for each other. */
TUTTI_TEST(runs_at_once_that_claim_draw_different_numbers)
{
    const char *devices[] = {"cpu:0", "whole:0"};
    for (size_t d = 0; d < TUTTI_COUNT(devices); d++) {
        tutti_graph *g;
        tutti_session *s;
        CHECK_OK(tutti_graph_create(&g));
        tutti_sym v = tutti_variable(g, tutti_zeros(), .dtype = TUTTI_F64, .name = "v");
        tutti_sym sum = tutti_sum(draw(g));
        tutti_sym added = tutti_check_numerics(tutti_assign_add(v, sum), "sum");
        CHECK_OK(tutti_session_open(&s, g, .device = devices[d], .deadline_seconds = 120));
        draw_at_once(s, g, sum, added);
        tutti_session_close(s);
        tutti_graph_destroy(g);
    }
}

/* A value that is drawn on one device and used on another is the same on both. */
TUTTI_TEST(runs_at_once_over_two_devices_draw_different_numbers)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_sym z, sum;
    CHECK_OK(tutti_graph_create(&g));
    TUTTI_WITH_DEVICE(g, "far:0")
        z = draw(g);
    TUTTI_WITH_DEVICE(g, "far:1")
        sum = tutti_add(tutti_sum(z), tutti_sum(draw(g)));
    CHECK_OK(tutti_session_open(&s, g, .deadline_seconds = 120));
    draw_at_once(s, g, sum, TUTTI_NO_SYM);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* A run that failed by itself has not drawn: the next one gets its numbers. */
TUTTI_TEST(a_run_that_fails_does_not_advance_the_counter)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *first, *second;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym sum = tutti_sum(draw(g));
    tutti_sym bad = tutti_check_numerics(tutti_log(tutti_neg(sum)), "sum");
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({sum, &first})));
    CHECK(tutti_run(s, .target = bad) != TUTTI_OK);
    CHECK_INT(counter_of(s, g), 1);
    CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({sum, &second})));
    CHECK(tutti_tensor_get(first, 0) != tutti_tensor_get(second, 0));
    CHECK_INT(counter_of(s, g), 2);
    tutti_tensor_release(first);
    tutti_tensor_release(second);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}
