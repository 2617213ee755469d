/* constants_test.c: runs that take variables as constants. */
#include "base/params.h"
#include "base/test.h"

#include "tutti/ops.h"
#include "tutti/session.h"

typedef struct product {
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym x, w, y, more;
    tutti_tensor *value;
} product;

/* y = x w, x = [1, 2], w = 1 [2, 3]; `more` adds 1 to w. */
static void make(product *p)
{
    CHECK_OK(tutti_graph_create(&p->graph));
    p->x = tutti_placeholder_named(p->graph, "x", TUTTI_F32, TUTTI_ANY, 2);
    p->w = tutti_variable(p->graph, tutti_ones(2, 3), .name = "w");
    p->y = tutti_matmul(p->x, p->w);
    p->more = tutti_assign_add(p->w, tutti_ones_like(p->w));
    CHECK_OK(tutti_session_open(&p->session, p->graph, .device = "cpu:0"));
    CHECK_OK(tutti_run(p->session, .target = tutti_initialize_variables(p->graph)));
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 2, (int64_t[]){1, 2}, (float[]){1, 2}, &p->value));
}

static void check(product *p, double expected)
{
    tutti_tensor *y;
    CHECK_OK(tutti_run(p->session, .feed = TUTTI_FEED({p->x, p->value}),
                       .fetch = TUTTI_FETCH({p->y, &y}), .constants = true));
    CHECK_NEAR(tutti_tensor_get(y, 0), expected, 1e-6);
    tutti_tensor_release(y);
}

static uint64_t compiles(const product *p)
{
    tutti_session_info info;
    tutti_session_describe(p->session, &info);
    return info.compiles;
}

/* Answers follow the variable, which stays one; while it keeps its value nothing is compiled. */
TUTTI_TEST(runs_take_variables_as_constants)
{
    product p;
    tutti_tensor *w;
    make(&p);
    check(&p, 3);
    uint64_t before = compiles(&p);
    check(&p, 3);
    CHECK_INT(compiles(&p), before);
    CHECK_OK(tutti_run(p.session, .target = p.more));
    check(&p, 6);
    CHECK_OK(tutti_session_get(p.session, p.w, &w));
    for (int i = 0; i < 6; i++)
        tutti_tensor_set(w, i, 5);
    CHECK_OK(tutti_session_set(p.session, p.w, w));
    check(&p, 15);
    tutti_tensor_release(w);
    /* A program that writes reads and writes the variable itself. */
    CHECK_OK(
        tutti_run(p.session, .target = p.more, .fetch = TUTTI_FETCH({p.w, &w}), .constants = true));
    tutti_tensor_release(w);
    check(&p, 18);
    tutti_session_info info;
    tutti_session_describe(p.session, &info);
    CHECK(info.cached_programs < info.compiles); /* those of values that are gone were dropped */
    tutti_tensor_release(p.value);
    tutti_session_close(p.session);
    tutti_graph_destroy(p.graph);
}

TUTTI_TEST(constants_without_a_value_are_named)
{
    tutti_graph *graph;
    tutti_session *session;
    tutti_tensor *y;
    CHECK_OK(tutti_graph_create(&graph));
    tutti_sym w = tutti_variable(graph, tutti_ones(2), .name = "w");
    tutti_sym twice = tutti_add(tutti_read(w), 2);
    CHECK_OK(tutti_session_open(&session, graph, .device = "cpu:0"));
    CHECK_STATUS(tutti_run(session, .fetch = TUTTI_FETCH({twice, &y}), .constants = true),
                 TUTTI_UNINITIALIZED);
    tutti_session_close(session);
    tutti_graph_destroy(graph);
}

/* y = x w, w = 1 [2, 3] on that device, in a session on cpu:0. */
static void check_elsewhere(const char *device)
{
    product p;
    tutti_tensor *fives;
    CHECK_OK(tutti_graph_create(&p.graph));
    p.x = tutti_placeholder_named(p.graph, "x", TUTTI_F32, TUTTI_ANY, 2);
    TUTTI_WITH_DEVICE(p.graph, device)
        p.w = tutti_variable(p.graph, tutti_ones(2, 3), .name = "w");
    p.y = tutti_matmul(p.x, p.w);
    p.more = tutti_assign_add(p.w, tutti_ones_like(p.w));
    CHECK_OK(tutti_session_open(&p.session, p.graph, .device = "cpu:0"));
    CHECK_OK(tutti_run(p.session, .target = tutti_initialize_variables(p.graph)));
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 2, (int64_t[]){1, 2}, (float[]){1, 2}, &p.value));
    CHECK_OK(
        tutti_tensor_from(TUTTI_F32, 2, (int64_t[]){2, 3}, (float[]){5, 5, 5, 5, 5, 5}, &fives));
    check(&p, 3);
    CHECK_OK(tutti_run(p.session, .target = p.more));
    check(&p, 6);
    CHECK_OK(tutti_session_set(p.session, p.w, fives));
    check(&p, 15);
    tutti_tensor_release(fives);
    tutti_tensor_release(p.value);
    tutti_session_close(p.session);
    tutti_graph_destroy(p.graph);
}

/* Random numbers are new in every run, and nothing is compiled for it. */
TUTTI_TEST(constants_leave_random_numbers_new)
{
    product p;
    tutti_tensor *noisy[4];
    make(&p);
    tutti_sym noise = tutti_random_uniform(p.graph, 0, 1, TUTTI_TYPE(TUTTI_F32, 1, 3));
    tutti_sym y = tutti_add(p.y, noise);
    CHECK_OK(tutti_run(p.session, .target = tutti_initialize_variables(p.graph)));
    uint64_t before = 0;
    for (int i = 0; i < 4; i++) {
        CHECK_OK(tutti_run(p.session, .feed = TUTTI_FEED({p.x, p.value}),
                           .fetch = TUTTI_FETCH({y, &noisy[i]}), .constants = i < 3));
        if (i == 0)
            before = compiles(&p);
        CHECK_INT(compiles(&p), before + (i == 3)); /* the last one takes them as variables */
        CHECK_NEAR(tutti_tensor_get(noisy[i], 0), 3.5, 0.5);
        for (int j = 0; j < i; j++)
            CHECK(tutti_tensor_get(noisy[i], 0) != tutti_tensor_get(noisy[j], 0));
    }
    CHECK_OK(tutti_run(p.session, .target = p.more));
    tutti_tensor_release(noisy[0]);
    CHECK_OK(tutti_run(p.session, .feed = TUTTI_FEED({p.x, p.value}),
                       .fetch = TUTTI_FETCH({y, &noisy[0]}), .constants = true));
    CHECK_NEAR(tutti_tensor_get(noisy[0], 0), 6.5, 0.5);
    for (int i = 0; i < 4; i++)
        tutti_tensor_release(noisy[i]);
    tutti_tensor_release(p.value);
    tutti_session_close(p.session);
    tutti_graph_destroy(p.graph);
}

/* Variables of other devices are read there. */
TUTTI_TEST(constants_are_of_the_sessions_device)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    check_elsewhere("cpu:0");
    check_elsewhere("/job:worker/cpu:0");
    check_elsewhere("cpu:1");
    check_elsewhere("far:0");
    check_elsewhere("whole:0");
}
