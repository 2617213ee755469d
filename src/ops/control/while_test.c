/* while_test.c: loops: values, types, gradients, random numbers, mistakes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/control/control.h"
#include "ops/state/testing.h"

/* Variables: i (i64), x (f64); captures: n (i64), a (f64). While i < n: x = a sin(x) + x. */
static void below(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                  void *context)
{
    ret[0] = tutti_less(args[0], args[2]);
}

static void step(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret, void *context)
{
    ret[0] = tutti_add(args[0], tutti_scalar(body, TUTTI_I64, 1));
    ret[1] = tutti_add(tutti_mul(args[3], tutti_sin(args[1])), args[1]);
}

typedef struct while_case {
    tutti_graph *g;
    tutti_sym n, x, a, y, last;
} while_case;

static while_case open_case(void)
{
    while_case c = {.g = new_graph()};
    tutti_sym results[2];
    c.n = tutti_placeholder(c.g, TUTTI_I64);
    c.x = tutti_placeholder(c.g, TUTTI_F64);
    c.a = tutti_placeholder(c.g, TUTTI_F64);
    tutti_sym zero = tutti_scalar(c.g, TUTTI_I64, 0);
    tutti_while(below, step, NULL, TUTTI_SYMS(zero, c.x), TUTTI_SYMS(c.n, c.a), results);
    CHECK_OK(tutti_graph_check(c.g));
    c.last = results[0];
    c.y = results[1];
    return c;
}

static double value_at(const while_case *c, tutti_sym sym, int n, double x, double a)
{
    tutti_tensor *rounds = SCALAR(TUTTI_I64, n), *start = SCALAR(TUTTI_F64, x),
                 *factor = SCALAR(TUTTI_F64, a);
    double value =
        fetch_element(sym, 0, FEEDS(FEED(c->n, rounds), FEED(c->x, start), FEED(c->a, factor)));
    tutti_tensor_release(rounds);
    tutti_tensor_release(start);
    tutti_tensor_release(factor);
    return value;
}

static double formula(int n, double x, double a)
{
    for (int i = 0; i < n; i++)
        x = a * sin(x) + x;
    return x;
}

TUTTI_TEST(while_runs_until_its_condition_fails)
{
    while_case c = open_case();
    for (int n = 0; n < 5; n++) {
        CHECK_NEAR(value_at(&c, c.y, n, 0.7, 0.3), formula(n, 0.7, 0.3), 1e-14);
        CHECK_NEAR(value_at(&c, c.last, n, 0.7, 0.3), n, 0);
    }
    tutti_graph_destroy(c.g);
}

TUTTI_TEST(while_has_gradients_for_variables_and_captures)
{
    while_case c = open_case();
    tutti_sym dx = tutti_gradient(c.y, c.x), da = tutti_gradient(c.y, c.a);
    CHECK_OK(tutti_graph_check(c.g));
    const double h = 1e-6;
    for (int n = 0; n < 5; n++) {
        double by_x = (formula(n, 0.7 + h, 0.3) - formula(n, 0.7 - h, 0.3)) / (2 * h);
        double by_a = (formula(n, 0.7, 0.3 + h) - formula(n, 0.7, 0.3 - h)) / (2 * h);
        CHECK_NEAR(value_at(&c, dx, n, 0.7, 0.3), by_x, 1e-8);
        CHECK_NEAR(value_at(&c, da, n, 0.7, 0.3), by_a, 1e-8);
    }
    tutti_graph_destroy(c.g);
}

TUTTI_TEST(while_has_second_gradients)
{
    while_case c = open_case();
    tutti_sym dx = tutti_gradient(c.y, c.x);
    tutti_sym dxx = tutti_gradient(dx, c.x), dxa = tutti_gradient(dx, c.a);
    CHECK_OK(tutti_graph_check(c.g));
    const double h = 1e-6;
    for (int n = 0; n < 4; n++) {
        double xx =
            (value_at(&c, dx, n, 0.7 + h, 0.3) - value_at(&c, dx, n, 0.7 - h, 0.3)) / (2 * h);
        double xa =
            (value_at(&c, dx, n, 0.7, 0.3 + h) - value_at(&c, dx, n, 0.7, 0.3 - h)) / (2 * h);
        CHECK_NEAR(value_at(&c, dxx, n, 0.7, 0.3), xx, 1e-7);
        CHECK_NEAR(value_at(&c, dxa, n, 0.7, 0.3), xa, 1e-7);
    }
    tutti_graph_destroy(c.g);
}

TUTTI_TEST(while_survives_serialisation)
{
    while_case c = open_case(), read = {0};
    tutti_sym dx = tutti_gradient(c.y, c.x);
    void *data = NULL;
    size_t size = 0;
    CHECK_OK(tutti_graph_serialize(c.g, &data, &size));
    CHECK_OK(tutti_graph_deserialize(data, size, &read.g));
    read.n = tutti__sym(tutti_graph_find(read.g, c.n.node->name), 0);
    read.x = tutti__sym(tutti_graph_find(read.g, c.x.node->name), 0);
    read.a = tutti__sym(tutti_graph_find(read.g, c.a.node->name), 0);
    tutti_sym same = tutti__sym(tutti_graph_find(read.g, dx.node->name), dx.index);
    CHECK_NEAR(value_at(&read, same, 3, 0.7, 0.3), value_at(&c, dx, 3, 0.7, 0.3), 0);
    free(data);
    tutti_graph_destroy(read.g);
    tutti_graph_destroy(c.g);
}

/* A matrix power: x = w x, vectors in the loop; a variable as a capture. */
static void below_three(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                        void *context)
{
    ret[0] = tutti_less(args[0], tutti_scalar(body, TUTTI_I64, 3));
}

static void multiply(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                     void *context)
{
    ret[0] = tutti_add(args[0], tutti_scalar(body, TUTTI_I64, 1));
    ret[1] = tutti_mul(args[1], args[2]);
}

TUTTI_TEST(while_takes_variables_as_captures)
{
    tutti_graph *g = new_graph();
    tutti_sym w = tutti_variable(g, tutti_ones(2), .name = "w"),
              x = tutti_placeholder(g, TUTTI_F32, 2);
    tutti_sym results[2], zero = tutti_scalar(g, TUTTI_I64, 0);
    tutti_while(below_three, multiply, NULL, TUTTI_SYMS(zero, x), TUTTI_SYMS(w), results);
    tutti_sym grad = tutti_gradient(tutti_sum(results[1]), w);
    tutti_tensor *state = VECTOR(TUTTI_F32, 2, 3), *input = VECTOR(TUTTI_F32, 1, 10);
    tutti_tensor *value = fetch(results[1], FEEDS(FEED(w, state), FEED(x, input)));
    CHECK_VALUES(value, 0, 8, 270);
    tutti_tensor_release(value);
    value = fetch(grad, FEEDS(FEED(w, state), FEED(x, input))); /* 3 w^2 x */
    CHECK_VALUES(value, 1e-5, 12, 270);
    tutti_tensor_release(value);
    tutti_tensor_release(state);
    tutti_tensor_release(input);
    tutti_graph_destroy(g);
}

/* Growing by one element a round: the dimension is unknown, the body is built again for it. */
static void appends(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                    void *context)
{
    ret[0] = tutti_add(args[0], tutti_scalar(body, TUTTI_I64, 1));
    ret[1] = tutti_concatenate(
        TUTTI_SYMS(args[1], tutti_expand_dims(tutti_cast(args[0], TUTTI_F32), 0)));
    ++*(int *)context;
}

TUTTI_TEST(while_grows_a_variable_of_unknown_size)
{
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY), zero = tutti_scalar(g, TUTTI_I64, 0);
    tutti_sym results[2];
    int calls = 0;
    tutti_while(below_three, appends, &calls, TUTTI_SYMS(zero, x), 0, NULL, results);
    CHECK_OK(tutti_graph_check(g));
    CHECK_INT(calls, 1);
    tutti_tensor *input = VECTOR(TUTTI_F32, 7, 8);
    tutti_tensor *value = fetch(results[1], FEEDS(FEED(x, input)));
    CHECK_VALUES(value, 0, 7, 8, 0, 1, 2);
    tutti_tensor_release(value);
    tutti_tensor_release(input);
    tutti_graph_destroy(g);
}

/* x = [x, a sum(x^2)]: every round adds an element that all earlier ones count in. */
static void adds_squares(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                         void *context)
{
    tutti_sym more = tutti_mul(args[3], tutti_sum(tutti_square(args[1])));
    ret[0] = tutti_add(args[0], tutti_scalar(body, TUTTI_I64, 1));
    ret[1] = tutti_concatenate(TUTTI_SYMS(args[1], tutti_expand_dims(more, 0)));
}

/* Sum of the elements after n rounds from [x, 0.5]. */
static double squares(int n, double x, double a)
{
    double sum = x + 0.5, of_squares = x * x + 0.25;
    for (int i = 0; i < n; i++) {
        double more = a * of_squares;
        sum += more;
        of_squares += more * more;
    }
    return sum;
}

static while_case open_growing(void)
{
    while_case c = {.g = new_graph()};
    tutti_sym results[2];
    c.n = tutti_placeholder(c.g, TUTTI_I64);
    c.x = tutti_placeholder(c.g, TUTTI_F64);
    c.a = tutti_placeholder(c.g, TUTTI_F64);
    tutti_sym both = tutti_stack(TUTTI_SYMS(c.x, tutti_scalar(c.g, TUTTI_F64, 0.5)));
    tutti_sym start = tutti_gather(both,
                                   tutti_range_dynamic(tutti_scalar(c.g, TUTTI_I64, 0),
                                                       tutti_scalar(c.g, TUTTI_I64, 2),
                                                       tutti_min(tutti_ones_like(c.n))),
                                   0); /* [?] */
    tutti_while(below, adds_squares, NULL, TUTTI_SYMS(tutti_scalar(c.g, TUTTI_I64, 0), start),
                TUTTI_SYMS(c.n, c.a), results);
    c.last = results[0];
    c.y = tutti_sum(results[1]);
    CHECK_OK(tutti_graph_check(c.g));
    CHECK_INT(tutti_sym_type(results[1]).dims[0], TUTTI_ANY);
    return c;
}

TUTTI_TEST(while_has_gradients_where_a_variable_changes_its_shape)
{
    while_case c = open_growing();
    tutti_sym dx = tutti_gradient(c.y, c.x), da = tutti_gradient(c.y, c.a),
              dax = tutti_gradient(da, c.x), daa = tutti_gradient(da, c.a);
    CHECK_OK(tutti_graph_check(c.g));
    const double h = 1e-5, x = 0.7, a = 0.3;
    for (int n = 0; n < 5; n++) {
        double by_a = (squares(n, x, a + h) - squares(n, x, a - h)) / (2 * h);
        double by_x = (squares(n, x + h, a) - squares(n, x - h, a)) / (2 * h);
        double aa = (squares(n, x, a + h) - 2 * squares(n, x, a) + squares(n, x, a - h)) / (h * h);
        double ax = (value_at(&c, da, n, x + h, a) - value_at(&c, da, n, x - h, a)) / (2 * h);
        CHECK_NEAR(value_at(&c, c.y, n, x, a), squares(n, x, a), 1e-12);
        CHECK_NEAR(value_at(&c, dx, n, x, a), by_x, 1e-8);
        CHECK_NEAR(value_at(&c, da, n, x, a), by_a, 1e-8);
        CHECK_NEAR(value_at(&c, dax, n, x, a), ax, 1e-7);
        CHECK_NEAR(value_at(&c, daa, n, x, a), aa, 1e-3);
    }
    tutti_graph_destroy(c.g);
}

static void keeps_unknown(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                          void *context)
{
    ret[0] = tutti_add(args[0], tutti_scalar(body, TUTTI_I64, 1));
    ret[1] = tutti_to_sparse(args[1]).values;
    ++*(int *)context;
}

TUTTI_TEST(while_builds_its_step_again_when_a_dimension_is_lost)
{
    tutti_graph *g = new_graph();
    tutti_tensor *given = VECTOR(TUTTI_F32, 1, 0, 2);
    tutti_sym x = tutti_constant(g, given), zero = tutti_scalar(g, TUTTI_I64, 0), results[2];
    int calls = 0;
    tutti_while(below_three, keeps_unknown, &calls, TUTTI_SYMS(zero, x), 0, NULL, results);
    CHECK_OK(tutti_graph_check(g));
    CHECK_INT(calls, 2);
    CHECK_INT(tutti_sym_type(results[1]).dims[0], TUTTI_ANY);
    tutti_tensor *value = fetch(results[1], 0, NULL);
    CHECK_VALUES(value, 0, 1, 2);
    tutti_tensor_release(value);
    tutti_tensor_release(given);
    tutti_graph_destroy(g);
}

/* x += noise; every round, every loop and every step has its own. */
static void add_noise(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                      void *context)
{
    tutti_sym noise = tutti_random_normal(body, 0, 1, TUTTI_TYPE(TUTTI_F64));
    ret[0] = tutti_add(args[0], tutti_scalar(body, TUTTI_I64, 1));
    ret[1] =
        tutti_concatenate(TUTTI_SYMS(args[1], tutti_expand_dims(tutti_mul(noise, args[2]), 0)));
}

static tutti_sym noise_loop(tutti_graph *g, tutti_sym start, tutti_sym scale)
{
    tutti_sym results[2], zero = tutti_scalar(g, TUTTI_I64, 0);
    tutti_while(below_three, add_noise, NULL, TUTTI_SYMS(zero, start), TUTTI_SYMS(scale), results);
    return results[1];
}

TUTTI_TEST(while_draws_anew_in_every_round)
{
    tutti_graph *g = new_graph();
    tutti_sym start = tutti_placeholder(g, TUTTI_F64, TUTTI_ANY),
              scale = tutti_placeholder(g, TUTTI_F64);
    tutti_sym a = noise_loop(g, start, scale), b = noise_loop(g, start, scale);
    CHECK_OK(tutti_graph_check(g));
    tutti_sym counter = tutti__sym(tutti_graph_find(g, "tutti/random_counter"), 0);
    tutti_tensor *empty = tensor_of(TUTTI_F64, (double[]){0}, 1, (int64_t[]){0}),
                 *two = SCALAR(TUTTI_F64, 2);
    double drawn[4][3];
    for (int i = 0; i < 4; i++) {
        tutti_tensor *now = SCALAR(TUTTI_I64, i % 2);
        tutti_tensor *value =
            fetch(i < 2 ? a : b, FEEDS(FEED(start, empty), FEED(scale, two), FEED(counter, now)));
        CHECK_INT(tutti_tensor_count(value), 3);
        for (int k = 0; k < 3; k++)
            drawn[i][k] = tutti_tensor_get(value, k);
        tutti_tensor_release(value);
        tutti_tensor_release(now);
    }
    for (int i = 0; i < 12; i++)
        for (int k = 0; k < i; k++)
            CHECK(drawn[i / 3][i % 3] != drawn[k / 3][k % 3]);
    tutti_tensor_release(empty);
    tutti_tensor_release(two);
    tutti_graph_destroy(g);
}

static void sum_noise(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                      void *context)
{
    tutti_sym noise = tutti_random_normal(body, 0, 1, TUTTI_TYPE(TUTTI_F64));
    ret[0] = tutti_add(args[0], tutti_scalar(body, TUTTI_I64, 1));
    ret[1] = tutti_add(args[1], tutti_mul(noise, args[2]));
}

/* y = sum of scale noise: the gradient draws the same numbers again, dy/dscale = y / scale. */
TUTTI_TEST(while_gradient_draws_what_the_loop_drew)
{
    tutti_graph *g = new_graph();
    tutti_sym scale = tutti_placeholder(g, TUTTI_F64), results[2],
              zero = tutti_scalar(g, TUTTI_I64, 0);
    tutti_while(below_three, sum_noise, NULL, TUTTI_SYMS(zero, tutti_scalar(g, TUTTI_F64, 0)),
                TUTTI_SYMS(scale), results);
    tutti_sym grad = tutti_gradient(results[1], scale);
    CHECK_OK(tutti_graph_check(g));
    tutti_sym counter = tutti__sym(tutti_graph_find(g, "tutti/random_counter"), 0);
    tutti_tensor *two = SCALAR(TUTTI_F64, 2), *now = SCALAR(TUTTI_I64, 5);
    double y = fetch_element(results[1], 0, FEEDS(FEED(scale, two), FEED(counter, now)));
    CHECK(y != 0);
    CHECK_NEAR(fetch_element(grad, 0, FEEDS(FEED(scale, two), FEED(counter, now))), y / 2, 1e-12);
    tutti_tensor_release(two);
    tutti_tensor_release(now);
    tutti_graph_destroy(g);
}

/* A loop inside a branch inside a loop. */
static void inner(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                  void *context)
{
    tutti_sym results[2], zero = tutti_scalar(body, TUTTI_I64, 0);
    tutti_while(below_three, multiply, NULL, TUTTI_SYMS(zero, args[0]), TUTTI_SYMS(args[1]),
                results);
    ret[0] = results[1];
}

static void same(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret, void *context)
{
    ret[0] = args[0];
}

static void outer(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                  void *context)
{
    tutti_sym one = tutti_scalar(body, TUTTI_I64, 1);
    ret[0] = tutti_add(args[0], one);
    ret[1] = tutti_cond(tutti_equal(args[0], one), same, inner, NULL, TUTTI_SYMS(args[1], args[2]),
                        1, NULL);
}

TUTTI_TEST(loops_nest_with_branches_and_have_gradients)
{
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder(g, TUTTI_F64), w = tutti_placeholder(g, TUTTI_F64);
    tutti_sym results[2], zero = tutti_scalar(g, TUTTI_I64, 0);
    tutti_while(below_three, outer, NULL, TUTTI_SYMS(zero, x), TUTTI_SYMS(w), results);
    tutti_sym dw = tutti_gradient(results[1], w), dww = tutti_gradient(dw, w);
    CHECK_OK(tutti_graph_check(g));
    tutti_tensor *two = SCALAR(TUTTI_F64, 2), *three = SCALAR(TUTTI_F64, 3);
    /* Rounds 0 and 2 multiply by w^3: y = x w^6. */
    CHECK_NEAR(fetch_element(results[1], 0, FEEDS(FEED(x, two), FEED(w, three))), 2 * 729, 1e-9);
    CHECK_NEAR(fetch_element(dw, 0, FEEDS(FEED(x, two), FEED(w, three))), 2 * 6 * 243, 1e-8);
    CHECK_NEAR(fetch_element(dww, 0, FEEDS(FEED(x, two), FEED(w, three))), 2 * 30 * 81, 1e-7);
    tutti_tensor_release(two);
    tutti_tensor_release(three);
    tutti_graph_destroy(g);
}

static void changes_type(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                         void *context)
{
    ret[0] = tutti_add(args[0], tutti_scalar(body, TUTTI_I64, 1));
    ret[1] = tutti_stack(TUTTI_SYMS(args[1], args[1]));
}

static void no_answer(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                      void *context)
{
    ret[0] = args[0];
}

static void makes_variable(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                           void *context)
{
    ret[0] = tutti_add(args[0], tutti_scalar(body, TUTTI_I64, 1));
    ret[1] = tutti_mul(args[1], tutti_variable(body, tutti_full(2), .dtype = TUTTI_F64));
}

static void asks_placeholder(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                             void *context)
{
    ret[0] = tutti_placeholder_named(body, "more", TUTTI_BOOL);
}

static void expect(tutti_body_fn *condition, tutti_body_fn *body, const char *part)
{
    tutti_graph *g = new_graph();
    tutti_sym zero = tutti_scalar(g, TUTTI_I64, 0), x = tutti_placeholder(g, TUTTI_F64), results[2];
    tutti_while(condition, body, NULL, TUTTI_SYMS(zero, x), TUTTI_SYMS(x), results);
    CHECK(!tutti_sym_ok(results[1]));
    check_mistake(g, TUTTI_INVALID, part);
}

TUTTI_TEST(while_reports_mistakes)
{
    expect(below_three, changes_type, "loop variable 1 starts as f64[], but the step gives f64[2]");
    expect(no_answer, multiply, "the condition gives i64[], needs a bool scalar");
    expect(below, multiply, "while, condition: less");
    expect(below_three, makes_variable, "is made in the body; make it outside");
    expect(asks_placeholder, multiply, "placeholder 'while/condition/more' (");
}

/* A loop over no variables gave a symbol of nothing and no mistake. */
TUTTI_TEST(while_without_variables_is_a_mistake)
{
    for (int count = -1; count < 2; count++) {
        tutti_graph *g = new_graph();
        tutti_sym x = tutti_placeholder(g, TUTTI_F64);
        CHECK(!tutti_sym_ok(
            tutti_while(below_three, multiply, NULL, count, NULL, TUTTI_SYMS(x), NULL)));
        check_mistake(g, TUTTI_INVALID,
                      count < 0   ? "while: -1 loop variables are given; it takes at least 1"
                      : count < 1 ? "while: 0 loop variables are given; it takes at least 1"
                                  : "while: 1 arguments are announced, and the array is NULL");
    }
    tutti_sym none = tutti_while(below_three, multiply, NULL, 0, NULL, 0, NULL, NULL);
    CHECK(!tutti_sym_ok(none));
    CHECK_CONTAINS(tutti_error_message(), "while: 0 loop variables");
}
