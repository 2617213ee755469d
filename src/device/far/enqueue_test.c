/* enqueue_test.c: runs are enqueued: the host goes on while the device works, and waits where
 * somebody reads; what it enqueues is done in order. */
#include <stdio.h>

#include "base/params.h"
#include "base/test.h"
#include "base/world.h"
#include "program/target.h"
#include "tensor/pending.h"
#include "tutti/ops.h"
#include "tutti/session.h"

enum { LENGTH = 24, SLOW_US = 20000 };

/* y = tanh(tanh(… x)), each in a program's instruction of its own; w += sum(y). */
typedef struct chain {
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym x, y, w, step;
} chain;

static void chain_open(const char *device, chain *ret)
{
    chain c;
    CHECK_OK(tutti_graph_create(&c.graph));
    c.x = tutti_placeholder(c.graph, TUTTI_F32, 16, 16);
    c.y = c.x;
    for (int i = 0; i < LENGTH; i++)
        c.y = tutti_matmul(c.y, c.y);
    c.w = tutti_variable(c.graph, tutti_zeros(), .name = "w");
    c.step = tutti_assign_add(c.w, tutti_sum(c.y));
    CHECK_OK(tutti_session_open(&c.session, c.graph, .device = device));
    CHECK_OK(tutti_run(c.session, .target = tutti_initialize_variables(c.graph)));
    *ret = c;
}

static void chain_close(chain *c)
{
    tutti_session_close(c->session);
    tutti_graph_destroy(c->graph);
}

/* A matrix that is its own square. */
static tutti_tensor *one_in_a_corner(void)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){16, 16}, &tensor));
    tutti_tensor_set(tensor, 0, 1);
    return tensor;
}

static double seconds_since(int64_t start)
{
    return (double)(tutti__now_ns() - start) * 1e-9;
}

static void make_slow(void)
{
    char text[16];
    snprintf(text, sizeof text, "%d", SLOW_US);
    CHECK_OK(tutti__param_set("FAR_DELAY_US", text));
}

TUTTI_TEST(far_runs_return_before_the_device_is_done)
{
    chain c;
    tutti_tensor *x = one_in_a_corner(), *y;
    chain_open("far:0", &c);
    CHECK_OK(tutti_run(c.session, .feed = TUTTI_FEED({c.x, x}), .fetch = TUTTI_FETCH({c.y, &y}),
                       .target = c.step)); /* compiled */
    tutti_tensor_release(y);
    CHECK_OK(tutti_session_finish(c.session));
    make_slow();
    int64_t start = tutti__now_ns();
    CHECK_OK(tutti_run(c.session, .feed = TUTTI_FEED({c.x, x}), .fetch = TUTTI_FETCH({c.y, &y}),
                       .target = c.step));
    double returned = seconds_since(start);
    CHECK(tutti__tensor_is_pending(y));
    CHECK_NEAR(tutti_tensor_get(y, 0), 1, 0); /* waits */
    double read = seconds_since(start);
    CHECK(!tutti__tensor_is_pending(y));
    CHECK(returned < read / 2);
    CHECK_OK(tutti_session_get(c.session, c.w, &x));
    CHECK_NEAR(tutti_tensor_get(x, 0), 2, 0);
    chain_close(&c);
}

TUTTI_TEST(far_results_are_fed_without_the_host)
{
    chain c;
    tutti_tensor *x = one_in_a_corner(), *y[5] = {x};
    chain_open("far:0", &c);
    for (int i = 0; i < 4; i++)
        CHECK_OK(tutti_run(c.session, .feed = TUTTI_FEED({c.x, y[i]}),
                           .fetch = TUTTI_FETCH({c.y, &y[i + 1]}), .target = c.step));
    CHECK_OK(tutti_session_finish(c.session));
    for (int i = 1; i < 5; i++) {
        CHECK(tutti__tensor_is_pending(y[i]));
        CHECK_NEAR(tutti_tensor_get(y[i], 0), 1, 0);
        CHECK_NEAR(tutti_tensor_get(y[i], 17), 0, 0);
    }
    chain_close(&c);
    for (int i = 0; i < 5; i++)
        CHECK_NEAR(tutti_tensor_get(y[i], 0), 1, 0); /* they outlive the session */
}

/* Also one that nobody has read when the session is closed. */
TUTTI_TEST(far_results_outlive_their_session)
{
    chain c;
    tutti_tensor *x = one_in_a_corner(), *y;
    chain_open("far:0", &c);
    make_slow();
    CHECK_OK(tutti_run(c.session, .feed = TUTTI_FEED({c.x, x}), .fetch = TUTTI_FETCH({c.y, &y})));
    chain_close(&c);
    CHECK_NEAR(tutti_tensor_get(y, 0), 1, 0);
}

/* What is enqueued is done in order: runs, values that are set between them, reads. */
TUTTI_TEST(far_works_in_the_order_of_the_calls)
{
    chain c;
    tutti_tensor *x = one_in_a_corner(), *value, *hundred;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, &(float){100}, &hundred));
    chain_open("far:0", &c);
    for (int i = 0; i < 40; i++) {
        CHECK_OK(tutti_run(c.session, .feed = TUTTI_FEED({c.x, x}), .target = c.step));
        if (i == 20)
            CHECK_OK(tutti_session_set(c.session, c.w, hundred));
    }
    CHECK_OK(tutti_run(c.session, .fetch = TUTTI_FETCH({c.w, &value})));
    for (int i = 0; i < 3; i++)
        CHECK_OK(tutti_run(c.session, .feed = TUTTI_FEED({c.x, x}), .target = c.step));
    CHECK_NEAR(tutti_tensor_get(value, 0), 119, 0);
    CHECK_OK(tutti_session_get(c.session, c.w, &value));
    CHECK_NEAR(tutti_tensor_get(value, 0), 122, 0);
    chain_close(&c);
}

/* What one device gives another need not be there when it is sent. */
TUTTI_TEST(far_sends_what_is_not_there_yet)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *x = one_in_a_corner(), *y;
    tutti_sym there = TUTTI_NO_SYM;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym in = tutti_placeholder(g, TUTTI_F32, 16, 16), here = in;
    TUTTI_WITH_DEVICE(g, "far:0")
        for (int i = 0; i < LENGTH; i++)
            here = tutti_matmul(here, here);
    TUTTI_WITH_DEVICE(g, "far:1")
        there = tutti_matmul(here, here);
    TUTTI_WITH_DEVICE(g, "far:0")
        there = tutti_add(tutti_matmul(there, there), here);
    CHECK_OK(tutti_session_open(&s, g, .device = "far:0"));
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({in, x}), .fetch = TUTTI_FETCH({there, &y})));
    tutti_tensor_release(y);
    CHECK_OK(tutti_session_finish(s));
    make_slow();
    int64_t start = tutti__now_ns();
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({in, x}), .fetch = TUTTI_FETCH({there, &y})));
    double returned = seconds_since(start);
    CHECK_NEAR(tutti_tensor_get(y, 0), 2, 0);
    CHECK(returned < seconds_since(start) / 2);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* ---- a commit that fails when its run has returned ---- */

static tutti_status torn_infer(tutti_infer *node)
{
    node->outputs[0] = node->inputs[0];
    node->outputs[0].handle = false;
    return TUTTI_OK;
}

static tutti_status torn_run(const tutti_kernel_call *call)
{
    return tutti_fail(TUTTI_CHECK_FAILED, "'%s' fails although it said it cannot", call->name);
}

static const tutti_op torn_op = {
    .struct_size = sizeof(tutti_op),
    .version = 1,
    .category = "test",
    .name = "test_torn_update",
    .doc = "an update that fails",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_STATEFUL | TUTTI_OP_UPDATES | TUTTI_OP_TAKES_HANDLE | TUTTI_OP_NO_GRADIENT,
    .infer = torn_infer,
    .reference = torn_run,
};

TUTTI_TEST(far_says_what_failed_after_its_run)
{
    chain c;
    tutti_tensor *value;
    CHECK_OK(tutti_op_register(&torn_op));
    chain_open("far:0", &c);
    tutti_sym torn = tutti_apply_op(c.graph, "test_torn_update", 1, (tutti_sym[]){c.w}, 0, NULL);
    CHECK_OK(tutti_run(c.session, .target = torn)); /* it has returned before */
    CHECK_STATUS(tutti_session_finish(c.session), TUTTI_CHECK_FAILED);
    CHECK_CONTAINS(tutti_error_message(), "although it said it cannot");
    CHECK_OK(tutti_session_finish(c.session)); /* said once */
    CHECK_STATUS(tutti_session_get(c.session, c.w, &value), TUTTI_CLOSED);
    CHECK_OK(tutti_run(c.session, .target = tutti_initialize_variables(c.graph)));
    CHECK_OK(tutti_session_get(c.session, c.w, &value));
    chain_close(&c);
}
