/* step_key_test.c: numbers that change from step to step of a tape: one plan, the right values. */
#include "base/test.h"
#include "tutti/tutti.h"

enum { STEPS = 30, FEW = 8 };

static uint64_t compiles_of(tutti_eager *e)
{
    tutti_session_info info;
    tutti_eager_describe(e, &info);
    return info.compiles;
}

static tutti_sym number(tutti_eager *e, double value)
{
    return tutti_scalar(tutti_eager_graph(e), TUTTI_F32, value);
}

TUTTI_TEST(a_rate_that_decays_compiles_a_few_times_only)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_sym w = tutti_variable(tutti_eager_graph(e), tutti_full(1, 3), .name = "w");
    double expected = 1;
    for (int i = 0; i < STEPS; i++) {
        tutti_sym loss;
        tutti_grad grad;
        TUTTI_TAPE(tape, e)
            loss = tutti_sum(tutti_mul(tutti_square(w), 0.5)); /* 0.5 stays */
        tutti_tape_gradients(&tape, loss, 1, &w, &grad);
        double rate = 1.0 / (i + 2);
        tutti_assign_sub(w, tutti_mul(tutti_grad_dense(grad, w), rate));
        CHECK_NEAR(tutti_scalar_value(loss), 1.5 * expected * expected, 1e-6);
        CHECK_OK(tutti_eager_step(e));
        expected -= expected * rate;
    }
    CHECK(compiles_of(e) <= FEW);
    tutti_eager_close(e);
}

TUTTI_TEST(a_number_is_assigned_as_it_comes)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_sym v = tutti_variable(tutti_eager_graph(e), tutti_zeros(), .name = "v");
    for (int i = 0; i < STEPS; i++) {
        tutti_assign(v, number(e, i));
        CHECK_NEAR(tutti_scalar_value(tutti_mul(tutti_read(v), 2)), 2 * i, 0);
        CHECK_OK(tutti_eager_step(e));
    }
    CHECK(compiles_of(e) <= FEW);
    tutti_eager_close(e);
}

/* What was computed before the second flush, and the number itself, are right in both. */
TUTTI_TEST(numbers_change_in_steps_that_are_read_twice)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    for (int i = 0; i < STEPS; i++) {
        tutti_sym a = number(e, i), b = tutti_mul(a, i + 1);
        CHECK_NEAR(tutti_scalar_value(b), i * (i + 1), 0);
        tutti_sym c = tutti_add(tutti_add(a, b), -i);
        CHECK_NEAR(tutti_scalar_value(c), i * (i + 1), 0);
        CHECK_NEAR(tutti_scalar_value(a), i, 0);
        CHECK_OK(tutti_eager_step(e));
    }
    CHECK(compiles_of(e) <= (uint64_t)2 * FEW);
    tutti_eager_close(e);
}

/* Operators that look at values while a plan is made see those of their own step. */
TUTTI_TEST(numbers_that_make_shapes_are_right_in_every_step)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    for (int i = 0; i < STEPS; i++) {
        int64_t length = i % 7 + 1;
        tutti_sym limit = tutti_mul(number(e, (double)length), 2);
        tutti_sym range = tutti_range_dynamic(number(e, 0), limit, number(e, 1));
        CHECK_NEAR(tutti_scalar_value(tutti_sum(range)), (double)(length * (2 * length - 1)), 0);
        tutti_sym direct =
            tutti_range_dynamic(number(e, 0), number(e, (double)length), number(e, 1));
        CHECK_NEAR(tutti_scalar_value(tutti_sum(direct)), 0.5 * (double)(length * (length - 1)), 0);
        CHECK_NEAR(tutti_scalar_value(tutti_sum(tutti_stack(TUTTI_SYMS(limit, limit)))),
                   (double)(4 * length), 0);
        CHECK_OK(tutti_eager_step(e));
    }
    tutti_eager_close(e);
}

/* Numbers of many traces are remembered up to a bound; who comes again later is right as well. */
TUTTI_TEST(numbers_of_many_traces_are_right)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    for (int round = 0; round < 5; round++)
        for (int length = 1; length < 80; length++) {
            tutti_sym x = number(e, round);
            for (int i = 0; i < length; i++)
                x = tutti_add(x, 1);
            CHECK_NEAR(tutti_scalar_value(x), round + length, 0);
            CHECK_OK(tutti_eager_step(e));
        }
    tutti_eager_close(e);
}
