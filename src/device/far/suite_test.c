/* suite_test.c: see suite.h. */
#include "device/far/suite.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"

/* ---- tensors ---- */

static tutti_tensor *scalar(double value)
{
    tutti_tensor *tensor = NULL;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, &(float){(float)value}, &tensor));
    return tensor;
}

/* Fetches one value and checks that it is a scalar of this value. */
static void expect(tutti_session *session, tutti_sym sym, double value)
{
    tutti_tensor *out;
    CHECK_OK(tutti_run(session, .fetch = TUTTI_FETCH({sym, &out})));
    CHECK_NEAR(tutti_tensor_get(out, 0), value, 0);
    tutti_tensor_release(out);
}

/* ---- variables ---- */

void tutti__suite_variables(const char *device)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *out[5], *nine = scalar(9);
    tutti_sym after = TUTTI_NO_SYM, again = TUTTI_NO_SYM, last = TUTTI_NO_SYM;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym v = tutti_variable(g, tutti_full(5), .name = "v"),
              w = tutti_variable(g, tutti_full(1), .name = "w");
    tutti_sym before = tutti_mul(v, 3), there = tutti_is_initialized(v);
    tutti_sym add = tutti_assign_add(v, tutti_scalar(g, TUTTI_F32, 2));
    TUTTI_WITH_CONTROL(g, add) {
        after = tutti_mul(tutti_read(v), 10);
        again = tutti_assign_sub(v, tutti_scalar(g, TUTTI_F32, 1));
    }
    TUTTI_WITH_CONTROL(g, again)
        last = tutti_assign(w, tutti_add(tutti_read(v), tutti_read(w)));
    CHECK_OK(tutti_session_open(&s, g, .device = device));
    expect(s, there, 0);
    CHECK_STATUS(tutti_run(s, .fetch = TUTTI_FETCH({before, &out[0]})), TUTTI_UNINITIALIZED);
    CHECK_CONTAINS(tutti_error_message(), "'v'");
    CHECK_STATUS(tutti_run(s, .target = add), TUTTI_UNINITIALIZED);
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    expect(s, there, 1);
    CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({before, &out[0]}, {add, &out[1]}, {after, &out[2]},
                                               {v, &out[3]}, {last, &out[4]})));
    static const double expected[] = {15, 7, 70, 5, 7};
    for (int i = 0; i < 5; i++) {
        CHECK_NEAR(tutti_tensor_get(out[i], 0), expected[i], 0);
        tutti_tensor_release(out[i]);
    }
    expect(s, v, 6);
    expect(s, w, 7);
    CHECK_OK(tutti_session_set(s, v, nine));
    CHECK_OK(tutti_session_get(s, v, &out[0]));
    CHECK_NEAR(tutti_tensor_get(out[0], 0), 9, 0);
    expect(s, before, 27);
    tutti_tensor_release(out[0]);
    tutti_tensor_release(nine);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* ---- errors ---- */

void tutti__suite_errors(const char *device)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *good = scalar(3), *bad = scalar(INFINITY), *value;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32);
    tutti_sym v = tutti_variable(g, tutti_zeros(), .name = "v");
    tutti_sym add = tutti_assign_add(v, x), checked = tutti_check_numerics(add, "the new value");
    tutti_sym other = tutti_check_numerics(tutti_mul(x, 2), "twice x"),
              side = tutti_exp(tutti_mul(x, 0.5));
    CHECK_OK(tutti_session_open(&s, g, .device = device));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, good}), .target = checked));
    for (int i = 0; i < 5; i++) {
        CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, bad}), .target = checked),
                     TUTTI_CHECK_FAILED);
        CHECK_CONTAINS(tutti_error_message(), "the new value");
        CHECK_CONTAINS(tutti_error_message(), "suite_test.c:"); /* where the node was built */
        CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, bad}),
                               .fetch = TUTTI_FETCH({side, &value}),
                               .targets = TUTTI_TARGETS(add, other)),
                     TUTTI_CHECK_FAILED);
        CHECK_CONTAINS(tutti_error_message(), "twice x");
        expect(s, v, 3 * (i + 1));
        CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, good}), .targets = TUTTI_TARGETS(add, other)));
    }
    tutti_tensor_release(good);
    tutti_tensor_release(bad);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

void tutti__suite_delayed(const char *first, const char *second)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *good = scalar(3), *bad = scalar(INFINITY), *out;
    tutti_sym add = TUTTI_NO_SYM, plain = TUTTI_NO_SYM, checked = TUTTI_NO_SYM, v, w;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32);
    TUTTI_WITH_DEVICE(g, first) {
        v = tutti_variable(g, tutti_full(1), .name = "v");
        add = tutti_assign_add(v, x);
    }
    TUTTI_WITH_DEVICE(g, second) {
        w = tutti_variable(g, tutti_full(10), .name = "w");
        plain = tutti_assign_sub(w, add);
        checked = tutti_check_numerics(tutti_mul(plain, 2), "late");
    }
    CHECK_OK(tutti_session_open(&s, g, .device = second, .deadline_seconds = 20));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    for (int i = 1; i < 4; i++) {
        tutti_sym fetched = i == 2 ? plain : checked;
        CHECK_OK(
            tutti_run(s, .feed = TUTTI_FEED({x, good}), .fetch = TUTTI_FETCH({fetched, &out})));
        expect(s, v, 1 + 3 * i);
        expect(s, w, i == 1 ? 6 : i == 2 ? -1 : -11);
        CHECK_NEAR(tutti_tensor_get(out, 0), i == 1 ? 12 : i == 2 ? -1 : -22, 0);
        tutti_tensor_release(out);
        CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, bad}), .target = checked),
                     TUTTI_CHECK_FAILED);
        CHECK_CONTAINS(tutti_error_message(), "late");
        expect(s, v, 1 + 3 * i);
    }
    expect(s, w, -11);
    tutti_tensor_release(good);
    tutti_tensor_release(bad);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* ---- control flow ---- */

static void halve(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                  void *context)
{
    TUTTI_UNUSED(body), TUTTI_UNUSED(count), TUTTI_UNUSED(context);
    ret[0] = tutti_mul(args[0], 0.5);
}

static void square(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                   void *context)
{
    TUTTI_UNUSED(body), TUTTI_UNUSED(count), TUTTI_UNUSED(context);
    ret[0] = tutti_square(args[0]);
}

static void below(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                  void *context)
{
    TUTTI_UNUSED(count), TUTTI_UNUSED(context);
    ret[0] = tutti_less(args[0], tutti_scalar(body, TUTTI_F32, 4));
}

/* i, x → i + 1, x w, through a cond that leaves x as it is. */
static void times(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                  void *context)
{
    TUTTI_UNUSED(count), TUTTI_UNUSED(context);
    ret[0] = tutti_add(args[0], tutti_scalar(body, TUTTI_F32, 1));
    tutti_sym x = tutti_cond(tutti_less(args[0], tutti_scalar(body, TUTTI_F32, 2)), halve, halve,
                             NULL, TUTTI_SYMS(args[1]), 1, NULL);
    ret[1] = tutti_mul(tutti_mul(x, 2), args[2]);
}

static void run_control(const char *device, double value, tutti_tensor **ret)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *fed = scalar(value);
    tutti_sym ends[2];
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32);
    tutti_sym w = tutti_variable(g, tutti_full(1.5), .name = "w"),
              zero = tutti_scalar(g, TUTTI_F32, 0);
    tutti_sym y = tutti_cond(tutti_greater(x, zero), halve, square, NULL, TUTTI_SYMS(x), 1, NULL);
    tutti_while(below, times, NULL, TUTTI_SYMS(zero, y), TUTTI_SYMS(tutti_read(w)), ends);
    tutti_sym slope = tutti_gradient(ends[1], w), slope_x = tutti_gradient(ends[1], x);
    tutti_sym step = tutti_assign_sub(w, tutti_mul(slope, 0.01));
    CHECK_OK(tutti_graph_check(g));
    CHECK_OK(tutti_session_open(&s, g, .device = device, .deadline_seconds = 30));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    for (int i = 0; i < 2; i++)
        CHECK_OK(
            tutti_run(s, .feed = TUTTI_FEED({x, fed}),
                      .fetch = TUTTI_FETCH({y, &ret[5 * i]}, {ends[0], &ret[5 * i + 1]},
                                           {ends[1], &ret[5 * i + 2]}, {slope_x, &ret[5 * i + 3]},
                                           {step, &ret[5 * i + 4]})));
    tutti_tensor_release(fed);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

void tutti__suite_control(const char *device, double tolerance)
{
    for (int side = 0; side < 2; side++) {
        tutti_tensor *here[10], *there[10];
        run_control("cpu:0", side ? 3 : -3, here);
        run_control(device, side ? 3 : -3, there);
        CHECK_NEAR(tutti_tensor_get(there[2], 0), (side ? 1.5 : 9) * 1.5 * 1.5 * 1.5 * 1.5, 1e-4);
        for (int i = 0; i < 10; i++) {
            tutti__suite_same(there[i], here[i], tolerance);
            tutti_tensor_release(here[i]);
            tutti_tensor_release(there[i]);
        }
    }
}

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 25 };

typedef struct worker {
    tutti_session *session;
    tutti_sym step, sum;
    tutti_status status;
} worker;

static void *work(void *argument)
{
    worker *w = argument;
    for (int i = 0; i < ROUNDS && w->status == TUTTI_OK; i++) {
        tutti_tensor *sum = NULL;
        w->status = tutti_run(w->session, .target = w->step);
        if (w->status == TUTTI_OK)
            w->status = tutti_run(w->session, .fetch = TUTTI_FETCH({w->sum, &sum}));
        if (w->status == TUTTI_OK && tutti_tensor_get(sum, 0) != 0)
            w->status = TUTTI_CHECK_FAILED; /* half a step was seen */
        tutti_tensor_release(sum);
    }
    return NULL;
}

void tutti__suite_threads(const char *device)
{
    tutti_graph *g;
    tutti_session *s;
    pthread_t threads[THREADS];
    worker workers[THREADS];
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym up = tutti_variable(g, tutti_zeros(300), .name = "up"),
              down = tutti_variable(g, tutti_zeros(300), .name = "down");
    tutti_tensor *shape = tutti__suite_numbers(0, 1, (int64_t[]){300});
    tutti_sym one = tutti_constant(g, shape);
    tutti_tensor_release(shape);
    tutti_sym step = tutti_group(g, tutti_assign_add(up, tutti_ones_like(one)),
                                 tutti_assign_sub(down, tutti_ones_like(one)));
    tutti_sym sum = tutti_sum(tutti_add(tutti_read(up), tutti_read(down)));
    CHECK_OK(tutti_session_open(&s, g, .device = device, .deadline_seconds = 30));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){s, step, sum, TUTTI_OK};
        CHECK_INT(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        CHECK_OK(workers[i].status);
    expect(s, up, THREADS * ROUNDS);
    expect(s, down, -THREADS * ROUNDS);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* ---- what the device may refuse ---- */

void tutti__suite_dynamic(const char *device)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym n = tutti_placeholder(g, TUTTI_F32), zero = tutti_scalar(g, TUTTI_F32, 0),
              one = tutti_scalar(g, TUTTI_F32, 1);
    tutti_sym list = tutti_apply_op(g, "range_dynamic", 3, ((tutti_sym[]){zero, n, one}), 0, NULL);
    tutti_sym sum = tutti_sum(tutti_square(list));
    CHECK_OK(tutti_session_open(&s, g, .device = device));
    for (int round = 0; round < 12; round++) {
        int size = round % 4 + 1;
        double squares = 0;
        tutti_tensor *limit = scalar(size), *values, *total;
        CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({n, limit}),
                           .fetch = TUTTI_FETCH({list, &values}, {sum, &total})));
        CHECK_INT(tutti_tensor_count(values), size);
        for (int i = 0; i < size; i++) {
            CHECK_NEAR(tutti_tensor_get(values, i), i, 0);
            squares += (double)i * i;
        }
        CHECK_NEAR(tutti_tensor_get(total, 0), squares, 0);
        tutti_tensor_release(limit);
        tutti_tensor_release(values);
        tutti_tensor_release(total);
    }
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

void tutti__suite_strings_and_queues(const char *device)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_string words[] = {{"one", 3}, {"", 0}, {"t\0o", 3}};
    tutti_tensor *text, *fed = tutti__suite_numbers(5, 1, (int64_t[]){3}), *out[3];
    CHECK_OK(tutti_tensor_from(TUTTI_STRING, 1, (int64_t[]){3}, words, &text));
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym t = tutti_placeholder(g, TUTTI_STRING, 3), x = tutti_placeholder(g, TUTTI_F32, 3);
    tutti_sym v =
        tutti_variable(g, tutti_tensor_init(text), .name = "names", .not_trainable = true);
    tutti_sym queue = tutti_fifo_queue(g, 4, TUTTI_TYPE(TUTTI_F32, 3), TUTTI_TYPE(TUTTI_STRING, 3));
    tutti_sym put = tutti_enqueue(queue, tutti_mul(x, 2), tutti_identity(t)),
              take = tutti_dequeue(queue);
    tutti_sym twice = tutti_mul(take, 2), left = tutti_queue_size(queue),
              rename = tutti_assign(v, tutti_reverse(t, 0));
    CHECK_OK(tutti_session_open(&s, g, .device = device, .deadline_seconds = 20));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({t, text}, {x, fed}), .target = put));
    expect(s, left, 1);
    CHECK_OK(
        tutti_run(s, .fetch = TUTTI_FETCH({twice, &out[0]}, {tutti_sym_output(take, 1), &out[1]},
                                          {v, &out[2]})));
    for (int i = 0; i < 3; i++)
        CHECK_NEAR(tutti_tensor_get(out[0], i), 4 * tutti_tensor_get(fed, i), 1e-6);
    tutti__suite_same(out[1], text, 0);
    tutti__suite_same(out[2], text, 0);
    for (int i = 0; i < 3; i++)
        tutti_tensor_release(out[i]);
    CHECK_STATUS(tutti_run(s, .target = take, .deadline_seconds = 0.05), TUTTI_DEADLINE);
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({t, text}), .fetch = TUTTI_FETCH({t, &out[0]}),
                       .target = rename));
    tutti__suite_same(out[0], text, 0);
    tutti_tensor_release(out[0]);
    tutti_tensor_release(text);
    CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({v, &out[0]})));
    CHECK_INT(tutti_tensor_get_string(out[0], 0).size, 3);
    CHECK(memcmp(tutti_tensor_get_string(out[0], 2).data, "one", 3) == 0);
    tutti_tensor_release(out[0]);
    tutti_tensor_release(fed);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}
