/* tape_more_test.c: steps that change, are read in the middle, go wrong, or run for long. */
#include <malloc.h>
#include <math.h>
#include <stdio.h>

#include "base/test.h"
#include "tutti/tutti.h"

static tutti_tensor *vector(int64_t count, const float *values)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, &count, values, &tensor));
    return tensor;
}

static double variable_value(tutti_eager *e, tutti_sym variable)
{
    tutti_tensor *value;
    CHECK_OK(tutti_eager_get(e, variable, &value));
    double first = tutti_tensor_get(value, 0);
    tutti_tensor_release(value);
    return first;
}

/* The mask of the forward pass is the mask of the gradient, also when the value was read before. */
static void drop(bool read_first)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_tensor *ones, *y_value = NULL, *g_value = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){2000}, &ones));
    for (int i = 0; i < 2000; i++)
        tutti_tensor_set(ones, i, 1);
    double kept[3] = {0};
    for (int step = 0; step < 3; step++) {
        TUTTI_STEP(e) {
            tutti_sym x = tutti_eager_feed(e, ones), y;
            TUTTI_TAPE(tape, e) {
                tutti_tape_watch(&tape, x);
                y = tutti_nn_dropout(x, 0.5);
            }
            if (read_first)
                CHECK_OK(tutti_value(y, &y_value));
            tutti_grad grad;
            tutti_tape_gradients(&tape, y, 1, &x, &grad);
            CHECK_OK(tutti_value(grad.value, &g_value));
            if (!read_first)
                CHECK_OK(tutti_value(y, &y_value));
        }
        for (int i = 0; i < 2000; i++) {
            CHECK_NEAR(tutti_tensor_get(y_value, i), tutti_tensor_get(g_value, i), 0);
            kept[step] += tutti_tensor_get(y_value, i) * (i + 1);
        }
        tutti_tensor_release(y_value);
        tutti_tensor_release(g_value);
    }
    CHECK(kept[0] != kept[1] && kept[1] != kept[2]); /* steps draw anew */
    tutti_tensor_release(ones);
    tutti_eager_close(e);
}

TUTTI_TEST(tape_drops_the_same_forward_and_backward)
{
    drop(false);
    drop(true);
}

TUTTI_TEST(tape_reads_values_before_it_asks_for_gradients)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_sym w = tutti_variable(tutti_eager_graph(e), tutti_full(3, 2), .name = "w");
    tutti_tensor *t = vector(2, (float[]){1, 2});
    double expected = 3;
    for (int i = 0; i < 4; i++) {
        TUTTI_STEP(e) {
            tutti_sym x = tutti_eager_feed(e, t), loss;
            TUTTI_TAPE(tape, e)
                loss = tutti_sum(tutti_mul(x, tutti_square(w)));
            CHECK_NEAR(tutti_scalar_value(loss),
                       1 * expected * expected +
                           2 * pow(tutti_scalar_value(
                                       tutti_gather(w, tutti_ints(tutti_eager_graph(e), 1), 0)),
                                   2),
                       1e-4);
            tutti_grad grad;
            tutti_tape_gradients(&tape, loss, 1, &w, &grad);
            CHECK_NEAR(tutti_scalar_value(grad.value), 2 * expected, 1e-4);
            tutti_apply_gradients(tutti_sgd(0.1), 1, &w, &grad);
            expected -= 0.1 * 2 * expected;
            CHECK_NEAR(tutti_scalar_value(w), expected, 1e-4);
        }
    }
    tutti_tensor_release(t);
    tutti_eager_close(e);
}

TUTTI_TEST(tape_traces_anew_when_the_flow_changes)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_tensor *t = vector(3, (float[]){1, 2, 3});
    tutti_session_info info;
    for (int round = 0; round < 3; round++)
        for (int depth = 1; depth < 5; depth++) {
            TUTTI_STEP(e) {
                tutti_sym x = tutti_eager_feed(e, t);
                for (int i = 0; i < depth; i++)
                    x = i % 2 ? tutti_mul(x, 2) : tutti_square(x);
                CHECK_NEAR(tutti_scalar_value(tutti_sum(x)),
                           depth == 1   ? 14
                           : depth == 2 ? 28
                           : depth == 3 ? 4 * 98
                                        : 8 * 98,
                           1e-3);
            }
        }
    tutti_eager_describe(e, &info);
    CHECK_INT(info.compiles, 4);
    tutti_tensor_release(t);
    tutti_eager_close(e);
}

TUTTI_TEST(tape_makes_variables_in_the_middle_of_a_loop)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_graph *g = tutti_eager_graph(e);
    tutti_sym vars[6];
    char name[16];
    for (int i = 0; i < 6; i++) {
        TUTTI_STEP(e) {
            snprintf(name, sizeof name, "v%d", i);
            vars[i] = tutti_get_variable(g, name, tutti_full(i), .not_trainable = true);
            for (int k = 0; k <= i; k++)
                tutti_assign_add(vars[k], tutti_scalar(g, TUTTI_F32, 10));
            tutti_sym again = tutti_get_variable(g, "v0", tutti_full(77), .not_trainable = true);
            CHECK_NEAR(tutti_scalar_value(again), 10 * (i + 1), 0);
        }
    }
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(variable_value(e, vars[i]), i + 10 * (6 - i), 0);
    tutti_eager_close(e);
}

/* Too large a variable for its value to be kept between two reads of a step. */
TUTTI_TEST(tape_reads_twice_in_the_step_that_makes_a_variable)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_grad grad;
    tutti_sym loss, w = tutti_variable(tutti_eager_graph(e), tutti_full(3, 1000), .name = "w");
    TUTTI_TAPE(tape, e)
        loss = tutti_sum(tutti_square(w));
    CHECK_NEAR(tutti_scalar_value(loss), 9000, 0);
    CHECK_NEAR(tutti_scalar_value(tutti_mul(w, 2)), 6, 0);
    tutti_tape_gradients(&tape, loss, 1, &w, &grad);
    tutti_assign_sub(w, tutti_mul(grad.value, 0.5));
    CHECK_NEAR(tutti_scalar_value(tutti_sum(w)), 0, 0);
    CHECK_NEAR(tutti_scalar_value(tutti_add(w, 7)), 7, 0);
    CHECK_OK(tutti_eager_step(e));
    tutti_eager_close(e);
}

TUTTI_TEST(tape_sees_what_was_set)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_sym v = tutti_variable(tutti_eager_graph(e), tutti_full(1, 1), .name = "v");
    tutti_tensor *five = vector(1, (float[]){5});
    CHECK_NEAR(tutti_scalar_value(v), 1, 0);
    tutti_sym old = tutti_mul(v, 3);
    CHECK_OK(tutti_eager_set(e, v, five));
    CHECK_NEAR(tutti_scalar_value(v), 5, 0);
    CHECK_NEAR(tutti_scalar_value(old), 3, 0);
    CHECK_STATUS(tutti_eager_set(e, v, NULL), TUTTI_INVALID);
    CHECK_NEAR(tutti_scalar_value(tutti_mul(v, 2)), 10, 0);
    CHECK_OK(tutti_eager_step(e));
    CHECK_NEAR(tutti_scalar_value(v), 5, 0);
    CHECK_OK(tutti_eager_step(e));
    tutti_sym read = tutti_read(v), twice = tutti_mul(tutti_read(v), 2);
    tutti_tensor *six = vector(1, (float[]){6});
    CHECK_OK(tutti_eager_set(e, v, six)); /* reads by hand see the old value too */
    CHECK_NEAR(tutti_scalar_value(read), 5, 0);
    CHECK_NEAR(tutti_scalar_value(twice), 10, 0);
    CHECK_NEAR(tutti_scalar_value(v), 6, 0);
    CHECK_OK(tutti_eager_step(e));
    tutti_tensor_release(six);
    tutti_tensor_release(five);
    tutti_eager_close(e);
}

TUTTI_TEST(tape_goes_on_after_a_step_that_failed)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_graph *g = tutti_eager_graph(e);
    tutti_sym v = tutti_variable(g, tutti_full(1, 1), .name = "v");
    tutti_tensor *good = vector(1, (float[]){2}), *bad = vector(1, (float[]){NAN});
    for (int i = 0; i < 4; i++) {
        tutti_sym x = tutti_eager_feed(e, i % 2 ? bad : good);
        tutti_assign_add(v, x);
        tutti_sym sum = tutti_check_numerics(tutti_sum(x), "sum");
        if (i % 2)
            CHECK(isnan(tutti_scalar_value(sum)));
        else
            CHECK_NEAR(tutti_scalar_value(sum), 2, 0);
        tutti_status status = tutti_eager_step(e);
        if (i % 2) /* nothing was updated, and the step says so */
            CHECK_STATUS(status, TUTTI_CHECK_FAILED);
        else
            CHECK_OK(status);
        CHECK_NEAR(variable_value(e, v), i < 2 ? 3 : 5, 0);
    }
    tutti_tensor_release(good);
    tutti_tensor_release(bad);
    tutti_eager_close(e);
}

/* A step's value of a variable that the step also updates, asked for after the update has run. */
TUTTI_TEST(tape_differentiates_after_the_update_or_says_why_not)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_sym w = tutti_variable(tutti_eager_graph(e), tutti_full(3), .name = "w"), loss;
    tutti_grad grad;
    TUTTI_TAPE(tape, e)
        loss = tutti_square(w);
    tutti_assign_add(w, tutti_scalar(tutti_eager_graph(e), TUTTI_F32, 1));
    CHECK_NEAR(tutti_scalar_value(w), 4, 0); /* the update has run */
    tutti_tape_gradients(&tape, loss, 1, &w, &grad);
    CHECK_NEAR(tutti_scalar_value(grad.value), 6, 0); /* of w = 3 */
    CHECK_NEAR(tutti_scalar_value(loss), 9, 0);
    CHECK_OK(tutti_eager_step(e));
    tutti_eager_close(e);
}

TUTTI_TEST(values_that_do_not_exist_are_named_as_such)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_tensor *value;
    char first[200];
    tutti_sym v = tutti_variable(tutti_eager_graph(e), tutti_zeros(2)), y;
    tutti_grad grad;
    TUTTI_TAPE(tape, e)
        y = tutti_fill(tutti_eager_graph(e), TUTTI_F32, 2);
    tutti_tape_gradients(&tape, y, 1, &v, &grad);
    CHECK_STATUS(tutti_value(grad.value, &value), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "a gradient that does not exist");
    snprintf(first, sizeof first, "%s", tutti_error_message());
    CHECK_STATUS(tutti_value(grad.value, &value), TUTTI_INVALID);
    CHECK_STR(tutti_error_message(), first); /* nothing of the error before */
    tutti_eager_close(e);
}

static void train_step(tutti_eager *e, tutti_sym *vars, tutti_tensor *xs, tutti_tensor *ys)
{
    TUTTI_STEP(e) {
        tutti_sym x = tutti_eager_feed(e, xs), y = tutti_eager_feed(e, ys), loss;
        TUTTI_TAPE(tape, e) {
            tutti_sym h = tutti_nn_dropout(tutti_mul(x, vars[0]), 0.1);
            loss = tutti_mean(tutti_square(tutti_sub(tutti_add(h, vars[1]), y)));
        }
        tutti_grad grads[2];
        tutti_tape_gradients(&tape, loss, 2, vars, grads);
        tutti_apply_gradients(tutti_adam(.learning_rate = 0.01), 2, vars, grads);
        CHECK(!isnan(tutti_scalar_value(loss)));
    }
}

TUTTI_TEST(tape_runs_for_long_in_the_same_memory)
{
    if (TUTTI_TEST_SANITIZED)
        SKIP("the allocator is the sanitizer's");
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_graph *g = tutti_eager_graph(e);
    tutti_sym vars[] = {tutti_variable(g, tutti_zeros(), .name = "w"),
                        tutti_variable(g, tutti_zeros(), .name = "b")};
    tutti_tensor *xs = vector(4, (float[]){0, 1, 2, 3}), *ys = vector(4, (float[]){1, 3, 5, 7});
    for (int i = 0; i < 50; i++)
        train_step(e, vars, xs, ys);
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 1000; i++)
        train_step(e, vars, xs, ys);
    size_t after = mallinfo2().uordblks;
    CHECK(after < before + 4096);
    tutti_tensor_release(xs);
    tutti_tensor_release(ys);
    tutti_eager_close(e);
}

static tutti_status gradients_asked(int count, bool of_loss, bool anywhere)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_sym w = tutti_variable(tutti_eager_graph(e), tutti_ones(2), .name = "w");
    TUTTI_STEP(e) {
        tutti_sym loss;
        TUTTI_TAPE(tape, e)
            loss = tutti_sum(w);
        tutti_grad grad;
        tutti_tape_gradients(&tape, of_loss ? loss : TUTTI_NO_SYM, count, &w,
                             anywhere ? &grad : NULL);
    }
    tutti_status status = tutti_eager_check(e);
    tutti_eager_close(e);
    return status;
}

TUTTI_TEST(tape_gradients_that_cannot_be_asked_for)
{
    CHECK_OK(gradients_asked(1, true, true));
    CHECK_STATUS(gradients_asked(-1, true, true), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "gradients: of -1 values");
    CHECK_STATUS(gradients_asked(1, false, true), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "gradients: y is not a symbol");
    CHECK_STATUS(gradients_asked(1, true, false), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "the list of 1 gradients to return is NULL");
}

TUTTI_TEST(tape_has_no_feeds)
{
    tutti_eager *e;
    tutti_tensor *value;
    CHECK_OK(tutti_eager_open(&e));
    tutti_sym x = tutti_placeholder(tutti_eager_graph(e), TUTTI_F32);
    CHECK_STATUS(tutti_value(tutti_neg(x), &value), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "a tape takes values by tutti_eager_feed");
    tutti_eager_close(e);
}
