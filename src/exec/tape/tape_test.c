/* tape_test.c: custom loops, nested tapes, watching, caching. */
#include <math.h>

#include "base/test.h"
#include "tutti/tutti.h"

static tutti_tensor *vector(int64_t count, const float *values)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, &count, values, &tensor));
    return tensor;
}

TUTTI_TEST(tape_trains_a_line)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_graph *g = tutti_eager_graph(e);
    tutti_sym vars[] = {tutti_variable(g, tutti_zeros(), .name = "w"),
                        tutti_variable(g, tutti_zeros(), .name = "b")};
    tutti_tensor *xs = vector(4, (float[]){0, 1, 2, 3}), *ys = vector(4, (float[]){1, 3, 5, 7}),
                 *value;
    double last = 0;
    for (int i = 0; i < 1000; i++) {
        TUTTI_STEP(e) {
            tutti_sym x = tutti_eager_feed(e, xs), y = tutti_eager_feed(e, ys), loss;
            TUTTI_TAPE(tape, e)
                loss = tutti_mean(
                    tutti_square(tutti_sub(tutti_add(tutti_mul(x, vars[0]), vars[1]), y)));
            tutti_grad grads[2];
            tutti_tape_gradients(&tape, loss, 2, vars, grads);
            tutti_apply_gradients(tutti_adam(.learning_rate = 0.05), 2, vars, grads);
            last = tutti_scalar_value(loss);
        }
    }
    CHECK_NEAR(last, 0, 2e-3);
    CHECK_OK(tutti_eager_get(e, vars[0], &value));
    CHECK_NEAR(tutti_tensor_get(value, 0), 2, 0.05);
    tutti_tensor_release(value);
    tutti_session_info info;
    tutti_eager_describe(e, &info);
    CHECK(info.compiles <= 4);
    tutti_tensor_release(xs);
    tutti_tensor_release(ys);
    tutti_eager_close(e);
}

TUTTI_TEST(tape_nests)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_tensor *t = vector(1, (float[]){3});
    tutti_sym x = tutti_eager_feed(e, t), cube;
    tutti_grad first, second;
    TUTTI_TAPE(outer, e) {
        tutti_tape_watch(&outer, x);
        TUTTI_TAPE(inner, e) {
            tutti_tape_watch(&inner, x);
            cube = tutti_mul(x, tutti_mul(x, x));
        }
        tutti_tape_gradients(&inner, cube, 1, &x, &first);
    }
    tutti_tape_gradients(&outer, first.value, 1, &x, &second);
    CHECK_NEAR(tutti_scalar_value(first.value), 27, 1e-4);
    CHECK_NEAR(tutti_scalar_value(second.value), 18, 1e-4);
    CHECK_OK(tutti_eager_step(e));
    tutti_tensor_release(t);
    tutti_eager_close(e);
}

/* y = tanh(w x) by one step of a recurrent network: y'' = -2 y (1 - y^2) w^2. */
TUTTI_TEST(tape_nests_round_a_recurrent_network)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_tensor *t = vector(1, (float[]){0.5F});
    tutti_sym x = tutti_eager_feed(e, t), y;
    tutti_sym zero = tutti_fill(tutti_eager_graph(e), TUTTI_F32, 0, 1, 1);
    tutti_sym w = tutti_fill(tutti_eager_graph(e), TUTTI_F32, 0.7, 1, 1);
    tutti_grad first, second;
    TUTTI_TAPE(outer, e) {
        tutti_tape_watch(&outer, x);
        TUTTI_TAPE(inner, e) {
            tutti_tape_watch(&inner, x);
            y = tutti_nn_simple_rnn(tutti_reshape(x, 1, 1, 1), zero, w, zero,
                                    tutti_reshape(zero, 1));
        }
        tutti_tape_gradients(&inner, y, 1, &x, &first);
    }
    tutti_tape_gradients(&outer, first.value, 1, &x, &second);
    double value = tanh(0.35), slope = 1 - value * value;
    CHECK_NEAR(tutti_scalar_value(first.value), slope * 0.7, 1e-5);
    CHECK_NEAR(tutti_scalar_value(second.value), -2 * value * slope * 0.49, 1e-5);
    CHECK_OK(tutti_eager_step(e));
    tutti_tensor_release(t);
    tutti_eager_close(e);
}

TUTTI_TEST(tape_gives_no_gradient_to_what_it_does_not_watch)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_tensor *t = vector(1, (float[]){3});
    tutti_sym x = tutti_eager_feed(e, t), before = tutti_mul(x, 2), y;
    TUTTI_TAPE(tape, e)
        y = tutti_square(before);
    tutti_grad grads[2];
    tutti_tape_gradients(&tape, y, 2, (tutti_sym[]){x, before}, grads);
    CHECK(!tutti_grad_ok(grads[0]));
    CHECK(!tutti_grad_ok(grads[1]));
    TUTTI_TAPE(watching, e) {
        tutti_tape_watch(&watching, before);
        y = tutti_square(before);
    }
    tutti_tape_gradients(&watching, y, 2, (tutti_sym[]){x, before}, grads);
    CHECK(!tutti_grad_ok(grads[0]));
    CHECK_NEAR(tutti_scalar_value(grads[1].value), 12, 1e-5);
    tutti_tensor_release(t);
    tutti_eager_close(e);
}

TUTTI_TEST(tape_watches_as_many_values_as_wished_and_as_often)
{
    enum { COUNT = 50 };
    tutti_eager *e;
    tutti_sym x[COUNT], sum;
    tutti_grad grads[COUNT];
    CHECK_OK(tutti_eager_open(&e));
    tutti_tensor *t = vector(1, (float[]){3});
    for (int i = 0; i < COUNT; i++)
        x[i] = tutti_eager_feed(e, t);
    sum = tutti_square(x[0]);
    TUTTI_TAPE(tape, e) {
        for (int i = 0; i < COUNT; i++)
            for (int again = 0; again < 20; again++)
                tutti_tape_watch(&tape, x[i]);
        for (int i = 0; i < COUNT; i++)
            sum = tutti_add(sum, tutti_mul(x[i], i + 1));
    }
    tutti_tape_gradients(&tape, sum, COUNT, x, grads);
    for (int i = 0; i < COUNT; i++)
        CHECK_NEAR(tutti_scalar_value(grads[i].value), i + 1, 0);
    CHECK_OK(tutti_eager_step(e));
    tutti_tape_watch(&tape, tutti_eager_feed(e, t)); /* its memory is gone */
    CHECK_STATUS(tutti_eager_step(e), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "the tape is of an earlier step");
    tutti_tensor_release(t);
    tutti_eager_close(e);
}

TUTTI_TEST(tape_reads_in_the_middle_of_a_step)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_sym v = tutti_variable(tutti_eager_graph(e), tutti_full(1), .name = "v");
    for (int i = 0; i < 3; i++) {
        double before = tutti_scalar_value(v);
        tutti_assign_add(v, tutti_scalar(tutti_eager_graph(e), TUTTI_F32, 2));
        CHECK_NEAR(tutti_scalar_value(v), before + 2, 0);
        tutti_assign_add(v, v);
        CHECK_NEAR(tutti_scalar_value(v), 2 * (before + 2), 0);
        CHECK_OK(tutti_eager_step(e));
    }
    CHECK_NEAR(tutti_scalar_value(v), 36, 0); /* 1 → 6 → 16 → 36 */
    tutti_eager_close(e);
}

TUTTI_TEST(tape_says_what_is_wrong_and_goes_on)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_tensor *a = vector(2, (float[]){1, 2}), *b = vector(3, (float[]){1, 2, 3});
    tutti_sym sum = tutti_add(tutti_eager_feed(e, a), tutti_eager_feed(e, b));
    CHECK(isnan(tutti_scalar_value(sum)));
    CHECK_STATUS(tutti_eager_step(e), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "tape_test.c");
    tutti_sym old = tutti_eager_feed(e, a);
    CHECK_NEAR(tutti_scalar_value(tutti_sum(old)), 3, 1e-6);
    CHECK_OK(tutti_eager_step(e));
    tutti_tensor *value;
    CHECK_STATUS(tutti_value(old, &value), TUTTI_INVALID);
    tutti_tensor_release(a);
    tutti_tensor_release(b);
    tutti_eager_close(e);
}

TUTTI_TEST(tape_keeps_the_first_failure_of_its_steps)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_tensor *values[] = {vector(1, (float[]){2}), vector(1, (float[]){NAN}),
                              vector(1, (float[]){INFINITY})};
    const char *names[] = {"good", "first", "second"};
    CHECK_OK(tutti_eager_check(e));
    for (int i = 0; i < 4; i++)
        TUTTI_STEP(e)
            tutti_scalar_value(
                tutti_check_numerics(tutti_eager_feed(e, values[i % 3]), names[i % 3]));
    tutti_fail(TUTTI_INVALID, "something else");
    CHECK_STATUS(tutti_eager_check(e), TUTTI_CHECK_FAILED);
    CHECK_CONTAINS(tutti_error_message(), "first");
    CHECK_OK(tutti_eager_check(e)); /* it was told */
    TUTTI_STEP(e)
        tutti_add(tutti_eager_feed(e, values[0]), TUTTI_NO_SYM);
    CHECK_STATUS(tutti_eager_check(e), TUTTI_INVALID);
    TUTTI_STEP(e)
        CHECK_NEAR(tutti_scalar_value(tutti_eager_feed(e, values[0])), 2, 0);
    CHECK_OK(tutti_eager_check(e));
    for (int i = 0; i < 3; i++)
        tutti_tensor_release(values[i]);
    tutti_eager_close(e);
}
