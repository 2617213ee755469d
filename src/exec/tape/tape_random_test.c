/* tape_random_test.c: what random numbers of a tape depend on: seed and name, as in a session. */
#include <stdio.h>

#include "base/test.h"
#include "tutti/tutti.h"

typedef struct names {
    const char *names[3];
    bool steps; /* on a tape: a step for each */
} names;

static tutti_sym make(tutti_graph *g, const char *name, int64_t seed)
{
    tutti_sym v = TUTTI_NO_SYM;
    TUTTI_WITH_NAME(g, "net")
        v = tutti_variable(g, tutti_glorot_uniform(2, 2), .name = name, .seed = seed);
    return v;
}

static double take_first(tutti_tensor *value)
{
    double first = tutti_tensor_get(value, 0);
    tutti_tensor_release(value);
    return first;
}

/* The first element of each, by name "0", "1", "2". */
static void on_tape(const names *order, int64_t seed, double *ret)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_sym made[3];
    for (int i = 0; i < 3; i++) {
        made[i] = make(tutti_eager_graph(e), order->names[i], seed);
        if (order->steps)
            CHECK_OK(tutti_eager_step(e));
    }
    for (int i = 0; i < 3; i++) {
        tutti_tensor *value;
        CHECK_OK(tutti_eager_get(e, made[i], &value));
        ret[order->names[i][5] - '0'] = take_first(value);
    }
    tutti_eager_close(e);
}

static void in_session(const names *order, int64_t seed, double *ret)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym made[3];
    for (int i = 0; i < 3; i++)
        made[i] = make(g, order->names[i], seed);
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    for (int i = 0; i < 3; i++) {
        tutti_tensor *value;
        CHECK_OK(tutti_session_get(s, made[i], &value));
        ret[order->names[i][5] - '0'] = take_first(value);
    }
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(tape_initial_values_follow_seed_and_name)
{
    const names orders[] = {{{"layer0", "layer1", "layer2"}, false},
                            {{"layer2", "layer0", "layer1"}, false},
                            {{"layer0", "layer1", "layer2"}, true},
                            {{"layer1", "layer2", "layer0"}, true}};
    for (int64_t seed = 0; seed < 8; seed += 7) {
        double expected[3], got[3];
        in_session(&orders[0], seed, expected);
        CHECK(expected[0] != expected[1] && expected[1] != expected[2]);
        for (size_t o = 0; o < TUTTI_COUNT(orders); o++) {
            on_tape(&orders[o], seed, got);
            for (int i = 0; i < 3; i++)
                CHECK_NEAR(got[i], expected[i], 0);
        }
    }
}

static tutti_sym draw(tutti_graph *g, const char *name, bool counted)
{
    tutti_sym counter = counted ? tutti_scalar(g, TUTTI_I64, 5) : TUTTI_NO_SYM;
    return tutti_random_uniform(g, 0, 1, TUTTI_TYPE(TUTTI_F64), .seed = 1, .name = name,
                                .counter = counter);
}

/* With a counter of one's own: in every step the numbers of a session. */
TUTTI_TEST(tape_named_random_numbers_follow_the_name)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *a, *b, *again;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym in_order[] = {draw(g, "a", true), draw(g, "b", true), draw(g, "a", true)};
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_run(
        s, .fetch = TUTTI_FETCH({in_order[0], &a}, {in_order[1], &b}, {in_order[2], &again})));
    double expected[] = {take_first(a), take_first(b), take_first(again)};
    tutti_session_close(s);
    tutti_graph_destroy(g);

    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    g = tutti_eager_graph(e);
    for (int step = 0; step < 4; step++) {
        TUTTI_STEP(e) {
            if (step == 1) /* something that draws by the counter of the tape, and begins it */
                CHECK(tutti_scalar_value(draw(g, "other", false)) >= 0);
            tutti_sym first = draw(g, step % 2 ? "b" : "a", true);
            tutti_sym unnamed = draw(g, NULL, true);
            tutti_sym second = draw(g, step % 2 ? "a" : "b", true);
            tutti_sym third = draw(g, "a", true);
            CHECK_NEAR(tutti_scalar_value(first), expected[step % 2], 0);
            CHECK_NEAR(tutti_scalar_value(second), expected[1 - step % 2], 0);
            CHECK_NEAR(tutti_scalar_value(third), expected[2], 0);
            CHECK(tutti_scalar_value(unnamed) != expected[0] &&
                  tutti_scalar_value(unnamed) != expected[1]);
        }
    }
    CHECK_OK(tutti_eager_check(e));
    tutti_eager_close(e);
}

/* By the tape's counter: new numbers in every step, of programs that are found again. */
TUTTI_TEST(tape_named_random_numbers_are_new_in_every_step)
{
    enum { STEPS = 6 };
    tutti_eager *e;
    tutti_session_info info;
    double drawn[2 * STEPS];
    uint64_t compiles = 0;
    CHECK_OK(tutti_eager_open(&e));
    for (int step = 0; step < STEPS; step++) {
        TUTTI_STEP(e) {
            tutti_sym both = tutti_add(tutti_mul(draw(tutti_eager_graph(e), "a", false), 1024),
                                       draw(tutti_eager_graph(e), "a", false));
            double sum = tutti_scalar_value(both);
            drawn[2 * step] = sum;
            drawn[2 * step + 1] = tutti_scalar_value(draw(tutti_eager_graph(e), NULL, false));
        }
        tutti_eager_describe(e, &info);
        if (step == 2)
            compiles = info.compiles;
    }
    CHECK_INT(info.compiles, compiles);
    for (int i = 0; i < 2 * STEPS; i++)
        for (int k = 0; k < i; k++)
            CHECK(drawn[i] != drawn[k]);
    CHECK_OK(tutti_eager_check(e));
    tutti_eager_close(e);
}
