/* control_test.c: branches, loops, control edges and checks through a session. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/test.h"
#include "tutti/tutti.h"

typedef struct bench {
    tutti_graph *graph;
    tutti_session *session;
} bench;

static bench start_as(const char *device, bool deterministic)
{
    bench b;
    CHECK_OK(tutti_graph_create(&b.graph));
    CHECK_OK(tutti_session_open(&b.session, b.graph, .deadline_seconds = 5, .device = device,
                                .deterministic = deterministic));
    return b;
}

static bench start(const char *device)
{
    return start_as(device, false);
}

static void end(bench b)
{
    tutti_session_close(b.session);
    tutti_graph_destroy(b.graph);
}

static tutti_tensor *vector(int64_t count, const float *values)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, &count, values, &tensor));
    return tensor;
}

static tutti_tensor *scalar(float value)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, &value, &tensor));
    return tensor;
}

static double take(tutti_tensor *tensor)
{
    double value = tutti_tensor_get(tensor, 0);
    tutti_tensor_release(tensor);
    return value;
}

static void square(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                   void *context)
{
    TUTTI_UNUSED(body);
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_square(args[0]);
}

static void triple(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                   void *context)
{
    TUTTI_UNUSED(body);
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_mul(args[0], 3);
}

static void branch(const char *device, bool deterministic)
{
    bench b = start_as(device, deterministic);
    tutti_sym x = tutti_placeholder(b.graph, TUTTI_F32, TUTTI_ANY);
    tutti_sym big = tutti_greater(tutti_sum(x), tutti_scalar(b.graph, TUTTI_F32, 4));
    tutti_sym y = tutti_cond(big, square, triple, NULL, TUTTI_SYMS(x), 1, NULL);
    tutti_sym slope = tutti_gradient(tutti_sum(y), x);
    for (int64_t n = 1; n < 4; n++) {
        tutti_tensor *in = vector(n, (float[]){2, 2, 2}), *out, *g;
        CHECK_OK(tutti_run(b.session, .feed = TUTTI_FEED({x, in}),
                           .fetch = TUTTI_FETCH({y, &out}, {slope, &g})));
        CHECK_INT(tutti_tensor_count(out), n);
        CHECK_INT(tutti_tensor_count(g), n);
        CHECK_NEAR(take(out), n > 2 ? 4 : 6, 1e-6);
        CHECK_NEAR(take(g), n > 2 ? 4 : 3, 1e-6);
        tutti_tensor_release(in);
    }
    end(b);
}

TUTTI_TEST(control_takes_a_branch_and_its_gradient)
{
    branch("cpu:0", false);
    branch("cpu:0", true);
    branch("far:0", false);
}

static void below(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                  void *context)
{
    TUTTI_UNUSED(body);
    TUTTI_UNUSED(context);
    ret[0] = tutti_less(args[0], args[count - 1]);
}

static void multiply(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                     void *context)
{
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_add(args[0], tutti_scalar(body, TUTTI_F32, 1));
    ret[1] = tutti_mul(args[1], args[2]);
}

/* y = x^n by n rounds: dy/dx through the captured x is n x^(n-1). */
static void power(const char *device, bool deterministic)
{
    bench b = start_as(device, deterministic);
    tutti_sym x = tutti_placeholder(b.graph, TUTTI_F32, TUTTI_ANY),
              n = tutti_placeholder(b.graph, TUTTI_F32);
    tutti_sym one = tutti_apply_op(b.graph, "ones_like", 1, &x, 0, NULL), results[2];
    if (!tutti_sym_ok(one))
        SKIP("no ones_like");
    tutti_while(below, multiply, NULL, TUTTI_SYMS(tutti_scalar(b.graph, TUTTI_F32, 0), one),
                TUTTI_SYMS(x, n), results);
    tutti_sym slope = tutti_gradient(tutti_sum(results[1]), x);
    for (int rounds = 0; rounds < 4; rounds++) {
        tutti_tensor *in = vector(rounds + 1, (float[]){2, 2, 2, 2}),
                     *limit = scalar((float)rounds), *out, *g;
        CHECK_OK(tutti_run(b.session, .feed = TUTTI_FEED({x, in}, {n, limit}),
                           .fetch = TUTTI_FETCH({results[1], &out}, {slope, &g})));
        CHECK_INT(tutti_tensor_count(out), rounds + 1);
        CHECK_NEAR(take(out), pow(2, rounds), 1e-5);
        CHECK_NEAR(take(g), rounds ? rounds * pow(2, rounds - 1) : 0, 1e-5);
        tutti_tensor_release(in);
        tutti_tensor_release(limit);
    }
    tutti_session_info info;
    tutti_session_describe(b.session, &info);
    CHECK_INT(info.runs, 4); /* bodies are none */
    end(b);
}

TUTTI_TEST(control_loops_and_differentiates_loops)
{
    power("cpu:0", false);
    power("cpu:0", true);
    power("far:0", false);
}

static void doubles(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                    void *context)
{
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_add(args[0], tutti_scalar(body, TUTTI_F32, 1));
    ret[1] = tutti_concatenate(TUTTI_SYMS(args[1], args[1]));
}

/* Doubled in every round; so is the gradient of its sum. */
static void grow(const char *device, bool deterministic)
{
    bench b = start_as(device, deterministic);
    tutti_sym x = tutti_placeholder(b.graph, TUTTI_F32, TUTTI_ANY),
              n = tutti_placeholder(b.graph, TUTTI_F32), results[2];
    tutti_while(below, doubles, NULL, TUTTI_SYMS(tutti_scalar(b.graph, TUTTI_F32, 0), x),
                TUTTI_SYMS(n), results);
    tutti_sym total = tutti_sum(tutti_square(results[1])); /* behind a value of unknown size */
    tutti_sym slope = tutti_gradient(total, x);
    for (int rounds = 0; rounds < 4; rounds++) {
        tutti_tensor *in = vector(3, (float[]){1, 2, 3}), *limit = scalar((float)rounds), *out,
                     *sum, *g;
        CHECK_OK(tutti_run(b.session, .feed = TUTTI_FEED({x, in}, {n, limit}),
                           .fetch = TUTTI_FETCH({results[1], &out}, {total, &sum}, {slope, &g})));
        CHECK_INT(tutti_tensor_count(out), 3 << rounds);
        CHECK_NEAR(take(sum), 14 << rounds, 1e-5);
        CHECK_INT(tutti_tensor_count(g), 3);
        CHECK_NEAR(take(g), 2 << rounds, 1e-5);
        tutti_tensor_release(out);
        tutti_tensor_release(in);
        tutti_tensor_release(limit);
    }
    end(b);
}

TUTTI_TEST(control_loops_over_growing_values_and_differentiates_them)
{
    grow("cpu:0", false);
    grow("cpu:0", true);
    grow("far:0", false);
    grow("whole:0", false);
}

static void sum_up(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                   void *context)
{
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_add(args[0], tutti_scalar(body, TUTTI_F32, 1));
    ret[1] = tutti_reshape(tutti_sum(tutti_square(args[1])), 1);
}

/* The step knows what it gives, but not what it takes: s = (x0^2 + x1^2 + ...)^(2^(n-1)). */
static void sum_first(const char *device)
{
    bench b = start_as(device, false);
    tutti_sym x = tutti_placeholder(b.graph, TUTTI_F32, TUTTI_ANY),
              n = tutti_placeholder(b.graph, TUTTI_F32), results[2];
    tutti_while(below, sum_up, NULL, TUTTI_SYMS(tutti_scalar(b.graph, TUTTI_F32, 0), x),
                TUTTI_SYMS(n), results);
    tutti_sym slope = tutti_gradient(tutti_sum(results[1]), x);
    for (int size = 1; size < 4; size++)
        for (int rounds = 0; rounds < 3; rounds++) {
            tutti_tensor *in = vector(size, (float[]){3, 1, 2}), *limit = scalar((float)rounds),
                         *out, *g;
            CHECK_OK(tutti_run(b.session, .feed = TUTTI_FEED({x, in}, {n, limit}),
                               .fetch = TUTTI_FETCH({results[1], &out}, {slope, &g})));
            double sum = size == 1 ? 9 : size == 2 ? 10 : 14;
            CHECK_INT(tutti_tensor_count(out), rounds ? 1 : size);
            CHECK_NEAR(take(out), rounds == 0 ? 3 : rounds == 1 ? sum : sum * sum, 1e-3);
            CHECK_INT(tutti_tensor_count(g), size);
            CHECK_NEAR(take(g), rounds == 0 ? 1 : rounds == 1 ? 6 : 12 * sum, 1e-3);
            tutti_tensor_release(in);
            tutti_tensor_release(limit);
        }
    end(b);
}

TUTTI_TEST(control_loops_whose_first_round_takes_another_shape)
{
    sum_first("cpu:0");
    sum_first("far:0");
    sum_first("whole:0");
}

/* x is squared as often as there are words; each round takes the first word of the list away. */
static void one_word_less(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                          void *context)
{
    TUTTI_UNUSED(body);
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_slice(args[0], .begin = TUTTI_AXES(1));
    ret[1] = tutti_square(args[1]);
}

static void words_left(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                       void *context)
{
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_greater(tutti_size(args[0]), tutti_scalar(body, TUTTI_I64, 0));
}

TUTTI_TEST(control_differentiates_a_loop_that_uses_up_words)
{
    bench b = start("cpu:0");
    tutti_sym words = tutti_placeholder(b.graph, TUTTI_STRING, TUTTI_ANY),
              x = tutti_placeholder(b.graph, TUTTI_F32), results[2];
    tutti_while(words_left, one_word_less, NULL, TUTTI_SYMS(words, x), 0, NULL, results);
    tutti_sym slope = tutti_gradient(results[1], x);
    for (int64_t count = 0; count < 4; count++) {
        tutti_tensor *list, *two = scalar(2), *g;
        CHECK_OK(tutti_tensor_create(TUTTI_STRING, 1, &count, &list));
        for (int64_t i = 0; i < count; i++)
            CHECK_OK(tutti_tensor_set_string(list, i, "a word that is not short", 24));
        CHECK_OK(tutti_run(b.session, .feed = TUTTI_FEED({words, list}, {x, two}),
                           .fetch = TUTTI_FETCH({slope, &g})));
        double power = pow(2, (double)count); /* x^power */
        CHECK_NEAR(take(g), power * pow(2, power - 1), 1e-3);
        tutti_tensor_release(list);
        tutti_tensor_release(two);
    }
    end(b);
}

/* More bodies than programs are kept: none is compiled a second time. */
TUTTI_TEST(control_keeps_all_bodies_of_a_program)
{
    enum { BODIES = 40 };
    tutti_graph *g;
    tutti_session *s;
    tutti_session_info info;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g, .device = "cpu:0", .cache_limit = 4));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 1), y = x;
    for (int i = 0; i < BODIES / 2; i++) {
        tutti_sym yes = tutti_greater(tutti_sum(y), tutti_scalar(g, TUTTI_F32, i % 2));
        y = tutti_cond(yes, triple, square, NULL, TUTTI_SYMS(tutti_mul(y, 0.5)), 1, NULL);
    }
    tutti_tensor *in = vector(1, (float[]){2}), *out;
    for (int run = 0; run < 3; run++) {
        CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, in}), .fetch = TUTTI_FETCH({y, &out})));
        CHECK_NEAR(take(out), 2 * pow(1.5, BODIES / 2), 0.1);
        tutti_session_describe(s, &info);
        CHECK_INT(info.compiles, 1 + BODIES / 2); /* one branch of each */
        CHECK_INT(info.cached_programs, 1);
    }
    tutti_tensor_release(in);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

static void appends(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                    void *context)
{
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_add(args[0], tutti_scalar(body, TUTTI_F32, 1));
    ret[1] = tutti_concatenate(TUTTI_SYMS(args[1], tutti_reshape(args[0], 1)));
}

/* A value that grows makes a program for each of its shapes, of the step and not of the condition,
 * which does not look at it; and they are kept for longer than other programs. */
TUTTI_TEST(loops_compile_once_for_each_shape_that_a_body_uses)
{
    enum { ROUNDS = 7 };
    tutti_session_info info;
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g, .device = "cpu:0", .cache_limit = 2));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY), n = tutti_placeholder(g, TUTTI_F32),
              results[2];
    tutti_while(below, appends, NULL, TUTTI_SYMS(tutti_scalar(g, TUTTI_F32, 0), x), TUTTI_SYMS(n),
                results);
    tutti_tensor *in = vector(1, (float[]){0}), *limit = scalar(ROUNDS), *out;
    for (int run = 0; run < 3; run++) {
        CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, in}, {n, limit}),
                           .fetch = TUTTI_FETCH({results[1], &out})));
        CHECK_INT(tutti_tensor_count(out), ROUNDS + 1);
        CHECK_NEAR(tutti_tensor_get(out, ROUNDS), ROUNDS - 1, 0);
        tutti_tensor_release(out);
        tutti_session_describe(s, &info);
        CHECK_INT(info.compiles, 1 + 1 + ROUNDS); /* the run, the condition, the steps */
    }
    tutti_tensor_release(in);
    tutti_tensor_release(limit);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

static void for_ever(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                     void *context)
{
    TUTTI_UNUSED(body);
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = args[0];
}

TUTTI_TEST(control_ends_a_loop_at_the_deadline)
{
    bench b = start("cpu:0");
    tutti_sym i =
        tutti_while(below, for_ever, NULL, TUTTI_SYMS(tutti_scalar(b.graph, TUTTI_F32, 0)),
                    TUTTI_SYMS(tutti_scalar(b.graph, TUTTI_F32, 1)), NULL);
    tutti_tensor *out;
    CHECK_STATUS(tutti_run(b.session, .fetch = TUTTI_FETCH({i, &out}), .deadline_seconds = 0.2),
                 TUTTI_DEADLINE);
    CHECK_CONTAINS(tutti_error_message(), "while");
    end(b);
}

static void inner(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                  void *context)
{
    tutti_sym positive = tutti_greater(tutti_sum(args[1]), tutti_scalar(body, TUTTI_F32, 0));
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_add(args[0], tutti_scalar(body, TUTTI_F32, 1));
    ret[1] = tutti_cond(positive, triple, square, NULL, TUTTI_SYMS(args[1]), 1, NULL);
}

TUTTI_TEST(control_nests_and_checks_inside)
{
    bench b = start("cpu:0");
    tutti_sym x = tutti_placeholder(b.graph, TUTTI_F32, 2), results[2];
    tutti_while(below, inner, NULL, TUTTI_SYMS(tutti_scalar(b.graph, TUTTI_F32, 0), x),
                TUTTI_SYMS(tutti_scalar(b.graph, TUTTI_F32, 2)), results);
    tutti_sym slope = tutti_gradient(tutti_sum(results[1]), x);
    tutti_tensor *in = vector(2, (float[]){-2, -1}), *out, *g;
    CHECK_OK(tutti_run(b.session, .feed = TUTTI_FEED({x, in}),
                       .fetch = TUTTI_FETCH({results[1], &out}, {slope, &g})));
    CHECK_NEAR(take(out), 12, 1e-5); /* 3 x^2 */
    CHECK_NEAR(take(g), -12, 1e-5);
    tutti_tensor_release(in);
    end(b);
}

/* What a square of as many elements as x has, squared, takes. */
static tutti_sym outer_sum(tutti_sym x)
{
    tutti_sym column = tutti_reshape(x, -1, 1);
    return tutti_sum(tutti_matmul(column, tutti_transpose(column, 1, 0)));
}

/* One device gets no memory for its program and never takes its values; the other one is in the
 * body of a branch or loop by then. */
static void starve(const char *hungry, const char *busy, bool loop)
{
    bench b = start("cpu:0");
    tutti_sym x = tutti_placeholder(b.graph, TUTTI_F32, TUTTI_ANY), v, w, total, y[2];
    TUTTI_WITH_DEVICE(b.graph, hungry) {
        v = tutti_variable(b.graph, tutti_ones(3), .name = "v");
        total = tutti_add(outer_sum(x), tutti_sum(v));
    }
    TUTTI_WITH_DEVICE(b.graph, busy) {
        w = tutti_variable(b.graph, tutti_ones(2), .name = "w");
        tutti_sym zero = tutti_scalar(b.graph, TUTTI_F32, 0);
        if (loop)
            tutti_while(below, inner, NULL, TUTTI_SYMS(zero, w),
                        TUTTI_SYMS(tutti_scalar(b.graph, TUTTI_F32, 2)), y);
        else
            y[1] = tutti_cond(tutti_greater(tutti_sum(w), zero), square, triple, NULL,
                              TUTTI_SYMS(w), 1, NULL);
    }
    CHECK_OK(tutti_run(b.session, .target = tutti_initialize_variables(b.graph)));
    int64_t many = INT64_C(1) << 23; /* whose square no address space has */
    tutti_tensor *in, *little = vector(2, (float[]){1, 2}), *out[2];
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, &many, &in));
    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(tutti_run(b.session, .feed = TUTTI_FEED({x, in}),
                               .fetch = TUTTI_FETCH({total, &out[0]}, {y[1], &out[1]})),
                     TUTTI_NO_MEMORY);
        CHECK_OK(tutti_run(b.session, .feed = TUTTI_FEED({x, little}),
                           .fetch = TUTTI_FETCH({total, &out[0]}, {y[1], &out[1]})));
        CHECK_NEAR(take(out[0]), 12, 0);
        tutti_tensor_release(out[1]);
    }
    tutti_tensor_release(in);
    tutti_tensor_release(little);
    end(b);
}

TUTTI_TEST(bodies_end_when_another_device_has_no_memory)
{
    starve("far:0", "cpu:0", true);
    starve("far:0", "cpu:0", false);
    starve("cpu:0", "far:0", true);
    starve("far:0", "far:1", false);
}

TUTTI_TEST(control_edges_order_what_has_effects)
{
    bench b = start("cpu:0");
    tutti_sym v = tutti_variable(b.graph, tutti_zeros(), .name = "v"), add, size = TUTTI_NO_SYM,
              done = TUTTI_NO_SYM;
    tutti_sym x = tutti_placeholder(b.graph, TUTTI_F32, TUTTI_ANY);
    add = tutti_assign_add(v, tutti_scalar(b.graph, TUTTI_F32, 1));
    TUTTI_WITH_CONTROL(b.graph, add) {
        done = tutti_no_op(b.graph);
        size = tutti_size(x); /* known ahead, but asked for after the update */
    }
    CHECK_OK(tutti_run(b.session, .target = tutti_initialize_variables(b.graph)));
    tutti_tensor *in = vector(3, (float[]){1, 2, 3}), *out;
    CHECK_OK(tutti_run(b.session, .target = done));
    CHECK_OK(tutti_run(b.session, .feed = TUTTI_FEED({x, in}), .fetch = TUTTI_FETCH({size, &out})));
    CHECK_NEAR(take(out), 3, 0);
    CHECK_OK(tutti_session_get(b.session, v, &out));
    CHECK_NEAR(take(out), 2, 0);
    tutti_tensor_release(in);
    end(b);
}

TUTTI_TEST(control_checks_say_what_they_found)
{
    bench b = start("cpu:0");
    tutti_sym x = tutti_placeholder(b.graph, TUTTI_F32, 3),
              zero = tutti_scalar(b.graph, TUTTI_F32, 0), y = TUTTI_NO_SYM;
    tutti_sym positive = tutti_assert(tutti_greater(x, zero), "all must be positive", x);
    TUTTI_WITH_CONTROL(b.graph, positive)
        y = tutti_log(x);
    tutti_sym finite = tutti_check_numerics(tutti_log(x), "logarithm");
    tutti_tensor *bad = vector(3, (float[]){1, -2, 3}), *good = vector(3, (float[]){1, 2, 3}), *out;
    CHECK_STATUS(
        tutti_run(b.session, .feed = TUTTI_FEED({x, bad}), .fetch = TUTTI_FETCH({y, &out})),
        TUTTI_CHECK_FAILED);
    CHECK_CONTAINS(tutti_error_message(), "all must be positive");
    CHECK_CONTAINS(tutti_error_message(), "-2");
    CHECK_STATUS(
        tutti_run(b.session, .feed = TUTTI_FEED({x, bad}), .fetch = TUTTI_FETCH({finite, &out})),
        TUTTI_CHECK_FAILED);
    CHECK_CONTAINS(tutti_error_message(), "logarithm");
    CHECK_OK(tutti_run(b.session, .feed = TUTTI_FEED({x, good}), .fetch = TUTTI_FETCH({y, &out})));
    tutti_tensor_release(out);
    tutti_tensor_release(bad);
    tutti_tensor_release(good);
    end(b);
}

/* ---- loops in loops ---- */

static void below_three(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                        void *context)
{
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_less(args[0], tutti_scalar(body, TUTTI_I64, 3));
}

/* (i, x) → (i + 1, x with one element more) */
static void append(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                   void *context)
{
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_add(args[0], 1);
    ret[1] = tutti_concatenate(TUTTI_SYMS(args[1], tutti_fill(body, TUTTI_F32, 7, 1)));
}

/* The same value, of whose length the builder knows nothing. */
static tutti_sym of_any_length(tutti_sym x)
{
    return tutti_reshape_like(x, tutti_fill_dynamic(tutti_shape(x), TUTTI_BOOL, 0, -1));
}

/* Three elements more, by a loop of its own. */
static void append_three(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                         void *context)
{
    tutti_sym inner[2], start[2] = {tutti_scalar(body, TUTTI_I64, 0), of_any_length(args[1])};
    TUTTI_UNUSED(count);
    (tutti_while)(below_three, append, context, 2, start, 0, NULL, inner);
    ret[0] = tutti_add(args[0], 1);
    ret[1] = inner[1];
}

/* The outer loop's variable grows, of which its body does not know by how much: what the body finds
 * about the shape is of that round only. */
TUTTI_TEST(a_loop_in_a_loop_makes_values_grow)
{
    bench b = start("cpu:0");
    tutti_tensor *x;
    tutti_sym last[2], first[2] = {tutti_scalar(b.graph, TUTTI_I64, 0),
                                   of_any_length(tutti_fill(b.graph, TUTTI_F32, 0, 0))};
    (tutti_while)(below_three, append_three, NULL, 2, first, 0, NULL, last);
    CHECK_OK(tutti_run(b.session, .fetch = TUTTI_FETCH({last[1], &x})));
    CHECK_INT(tutti_tensor_count(x), 9);
    CHECK_NEAR(take(x), 7, 0);
    end(b);
}

TUTTI_TEST(values_go_between_devices_in_deterministic_mode)
{
    bench b = start_as("cpu:0", true);
    tutti_sym x = tutti_placeholder(b.graph, TUTTI_F32, 3), y;
    TUTTI_WITH_DEVICE(b.graph, "far:0")
        y = tutti_square(x);
    tutti_tensor *in = vector(3, (float[]){1, 2, 3}), *out;
    CHECK_OK(tutti_run(b.session, .feed = TUTTI_FEED({x, in}),
                       .fetch = TUTTI_FETCH({tutti_sum(tutti_exp(y)), &out})));
    CHECK_NEAR(take(out), exp(1) + exp(4) + exp(9), 1e-2);
    tutti_tensor_release(in);
    end(b);
}

static void one_more(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                     void *context)
{
    (void)body, (void)count, (void)context;
    ret[0] = tutti_add(args[0], 1);
}

TUTTI_TEST(loops_have_the_line_of_their_call)
{
    bench b = start(NULL);
    char expected[64], *text;
    tutti_sym x = tutti_placeholder(b.graph, TUTTI_I64);
    snprintf(expected, sizeof expected, "control_test.c:%d\n", __LINE__ + 1);
    tutti_while(below_three, one_more, NULL, TUTTI_SYMS(x), 0, NULL, NULL);
    CHECK_OK(tutti_graph_print(b.graph, &text));
    char *line = strstr(text, "%while = "), *place = line ? strstr(line, "control_test.c") : NULL;
    CHECK(place != NULL);
    CHECK(strncmp(place, expected, strlen(expected)) == 0);
    free(text);
    end(b);
}

static void fails_inside(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                         void *context)
{
    (void)count, (void)context;
    tutti_sym small = tutti_assert(tutti_less(args[0], tutti_scalar(body, TUTTI_I64, 1)), "small");
    TUTTI_WITH_CONTROL(body, small)
        ret[0] = tutti_add(args[0], 1);
}

/* Of the loop and of the node in it, whichever device runs them. */
TUTTI_TEST(errors_in_a_loop_name_it_and_the_line_of_its_call)
{
    const char *devices[] = {"cpu:0", "far:0", "whole:0"};
    for (int i = 0; i < 3; i++) {
        bench b = start(devices[i]);
        char expected[64];
        tutti_tensor *out;
        snprintf(expected, sizeof expected, "control_test.c:%d): assert '", __LINE__ + 2);
        tutti_sym zero = tutti_scalar(b.graph, TUTTI_I64, 0),
                  y = tutti_while(below_three, fails_inside, NULL, TUTTI_SYMS(zero), 0, NULL, NULL);
        CHECK_STATUS(tutti_run(b.session, .fetch = TUTTI_FETCH({y, &out})), TUTTI_CHECK_FAILED);
        CHECK_CONTAINS(tutti_error_message(), "while 'while' (");
        CHECK_CONTAINS(tutti_error_message(), expected);
        CHECK_CONTAINS(tutti_error_message(), "small (element 0");
        end(b);
    }
}

/* ---- random numbers in bodies go by names, which unrelated nodes do not change ---- */

static void draws(tutti_graph *g, int count, const tutti_sym *args, tutti_sym *ret, void *context)
{
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(args);
    TUTTI_UNUSED(context);
    ret[0] = tutti_random_uniform(g, 0, 1, TUTTI_TYPE(TUTTI_F32), .seed = 3);
}

static void is_below_one(tutti_graph *g, int count, const tutti_sym *args, tutti_sym *ret,
                         void *context)
{
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_less(args[0], tutti_scalar(g, TUTTI_F32, 1));
}

static void adds_one_and_draws(tutti_graph *g, int count, const tutti_sym *args, tutti_sym *ret,
                               void *context)
{
    ret[0] = tutti_add(args[0], 1);
    draws(g, count, args, &ret[1], context);
}

/* What a cond, a while and a cond after them draw. */
static void draw_in_bodies(tutti_graph *g, tutti_sym *ret)
{
    tutti_sym zero = tutti_scalar(g, TUTTI_F32, 0), yes = tutti_equal(zero, zero), looped[2];
    ret[0] = tutti_cond(yes, draws, draws, NULL, TUTTI_SYMS(zero), 1, NULL);
    tutti_while(is_below_one, adds_one_and_draws, NULL, TUTTI_SYMS(zero, zero), 0, NULL, looped);
    ret[1] = looped[1];
    ret[2] = tutti_cond(yes, draws, draws, NULL, TUTTI_SYMS(zero), 1, NULL);
}

TUTTI_TEST(unrelated_nodes_do_not_change_what_bodies_draw)
{
    double drawn[2][3];
    for (int unrelated = 0; unrelated < 2; unrelated++) {
        tutti_graph *g;
        tutti_session *s;
        tutti_sym y[3];
        tutti_tensor *values[3];
        CHECK_OK(tutti_graph_create(&g));
        for (int i = 0; i < 3 * unrelated; i++)
            tutti_placeholder(g, TUTTI_F32);
        draw_in_bodies(g, y);
        CHECK_OK(tutti_session_open(&s, g));
        CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
        CHECK_OK(tutti_run(
            s, .fetch = TUTTI_FETCH({y[0], &values[0]}, {y[1], &values[1]}, {y[2], &values[2]})));
        for (int i = 0; i < 3; i++) {
            drawn[unrelated][i] = tutti_tensor_get(values[i], 0);
            tutti_tensor_release(values[i]);
        }
        tutti_session_close(s);
        tutti_graph_destroy(g);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_NEAR(drawn[0][i], drawn[1][i], 0);
        CHECK(drawn[0][i] != drawn[0][(i + 1) % 3]);
    }
}

TUTTI_TEST(steps_of_a_tape_draw_the_same_in_bodies_whatever_else_they_do)
{
    enum { STEPS = 4 };
    double drawn[2][STEPS][3];
    for (int unrelated = 0; unrelated < 2; unrelated++) {
        tutti_eager *e;
        CHECK_OK(tutti_eager_open(&e));
        tutti_graph *g = tutti_eager_graph(e);
        for (int step = 0; step < STEPS; step++) {
            tutti_sym y[3];
            for (int i = 0; i < step * unrelated; i++)
                tutti_scalar(g, TUTTI_F32, i);
            draw_in_bodies(g, y);
            for (int i = 0; i < 3; i++)
                drawn[unrelated][step][i] = tutti_scalar_value(y[i]);
            CHECK_OK(tutti_eager_step(e));
        }
        tutti_eager_close(e);
    }
    for (int step = 0; step < STEPS; step++)
        for (int i = 0; i < 3; i++) {
            CHECK_NEAR(drawn[0][step][i], drawn[1][step][i], 0);
            for (int before = 0; before < step; before++)
                CHECK(drawn[0][step][i] != drawn[0][before][i]);
        }
}
