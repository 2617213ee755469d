/* tape_steps_test.c: what lasts from step to step of a tape, and what a tape records. */
#include <math.h>
#include <stdio.h>

#include "base/test.h"
#include "tutti/tutti.h"

static tutti_tensor *vector(int64_t size, float value)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, &size, &tensor));
    for (int64_t i = 0; i < size; i++)
        tutti_tensor_set(tensor, i, value);
    return tensor;
}

static void check_get(tutti_eager *e, tutti_sym variable, double expected)
{
    tutti_tensor *value;
    CHECK_OK(tutti_eager_get(e, variable, &value));
    CHECK_NEAR(tutti_tensor_get(value, 0), expected, 1e-6);
    tutti_tensor_release(value);
}

/* Whether a run fails or the step was built wrong: its variables have their first values. */
TUTTI_TEST(a_step_that_fails_leaves_its_variables_with_their_first_values)
{
    for (int built_wrong = 0; built_wrong < 2; built_wrong++) {
        tutti_eager *e;
        tutti_tensor *wide = vector(4, 1), *good = vector(3, 1);
        CHECK_OK(tutti_eager_open(&e));
        tutti_graph *g = tutti_eager_graph(e);
        tutti_sym w = tutti_variable(g, tutti_full(2, 3), .name = "w");
        tutti_sym bad = built_wrong
                            ? tutti_mul(w, tutti_eager_feed(e, wide))
                            : tutti_check_numerics(tutti_log(tutti_neg(tutti_sum(w))), "loss");
        CHECK(isnan(tutti_scalar_value(tutti_sum(bad))));
        CHECK(tutti_eager_step(e) != TUTTI_OK);
        check_get(e, w, 2);
        for (int i = 0; i < 2; i++) {
            CHECK_NEAR(tutti_scalar_value(tutti_sum(tutti_mul(w, tutti_eager_feed(e, good)))), 6,
                       0);
            CHECK_OK(tutti_eager_step(e));
        }
        tutti_tensor_release(wide);
        tutti_tensor_release(good);
        tutti_eager_close(e);
    }
}

/* Slots of the optimizer are variables too. */
TUTTI_TEST(training_goes_on_after_a_first_step_that_fails)
{
    tutti_eager *e;
    tutti_tensor *inputs[] = {vector(3, NAN), vector(3, 1), vector(3, 1)};
    CHECK_OK(tutti_eager_open(&e));
    tutti_sym w = tutti_variable(tutti_eager_graph(e), tutti_full(1, 3), .name = "w");
    for (int i = 0; i < 3; i++) {
        tutti_sym x = tutti_eager_feed(e, inputs[i]), loss;
        tutti_grad grad;
        TUTTI_TAPE(tape, e)
            loss = tutti_check_numerics(tutti_sum(tutti_mul(w, x)), "loss");
        tutti_tape_gradients(&tape, loss, 1, &w, &grad);
        tutti_apply_gradients(tutti_adam(.learning_rate = 0.1), 1, &w, &grad);
        CHECK_INT(isnan(tutti_scalar_value(loss)), i == 0);
        CHECK_INT(tutti_eager_step(e) == TUTTI_OK, i > 0);
        tutti_tensor_release(inputs[i]);
    }
    check_get(e, w, 0.8);
    tutti_eager_close(e);
}

static void below_three(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                        void *c)
{
    (void)count, (void)c;
    ret[0] = tutti_less(args[0], tutti_scalar(body, TUTTI_I64, 3));
}

static void multiply(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret, void *c)
{
    (void)count, (void)c;
    ret[0] = tutti_add(args[0], tutti_scalar(body, TUTTI_I64, 1));
    ret[1] = tutti_mul(args[1], args[2]);
}

TUTTI_TEST(loops_have_gradients_in_the_step_that_makes_the_variable)
{
    tutti_eager *e;
    tutti_tensor *ones = vector(3, 1);
    CHECK_OK(tutti_eager_open(&e));
    tutti_graph *g = tutti_eager_graph(e);
    tutti_sym w = tutti_variable(g, tutti_full(2, 3), .name = "w"), results[2], y;
    tutti_grad grad;
    TUTTI_TAPE(tape, e) {
        tutti_while(below_three, multiply, NULL,
                    TUTTI_SYMS(tutti_scalar(g, TUTTI_I64, 0), tutti_eager_feed(e, ones)),
                    TUTTI_SYMS(w), results);
        y = tutti_sum(results[1]);
    }
    tutti_tape_gradients(&tape, y, 1, &w, &grad);
    CHECK_NEAR(tutti_scalar_value(grad.value), 12, 0); /* 3 w^2 */
    CHECK_OK(tutti_eager_step(e));
    tutti_tensor_release(ones);
    tutti_eager_close(e);
}

TUTTI_TEST(what_was_computed_before_a_tape_is_constant_to_it)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_graph *g = tutti_eager_graph(e);
    tutti_sym w = tutti_variable(g, tutti_full(3, 2), .name = "w"),
              u = tutti_variable(g, tutti_full(5, 2), .name = "u");
    tutti_sym old = tutti_read(w), square = tutti_square(w), y, z;
    tutti_grad of_read, grads[2];
    TUTTI_TAPE(tape, e) {
        y = tutti_sum(tutti_mul(w, old));
        z = tutti_sum(tutti_mul(u, square));
    }
    tutti_tape_gradients(&tape, y, 1, &w, &of_read);
    CHECK_NEAR(tutti_scalar_value(of_read.value), 3, 0);
    tutti_tape_gradients(&tape, z, 2, (tutti_sym[]){w, square},
                         grads); /* nothing recorded reads w */
    CHECK(!tutti_grad_ok(grads[0]));
    CHECK_OK(tutti_eager_step(e));
    tutti_sym updated = tutti_assign_sub(w, tutti_fill(g, TUTTI_F32, 1, 2));
    TUTTI_TAPE(other, e) {
        tutti_tape_watch(&other, updated);
        y = tutti_sum(tutti_mul(tutti_square(u), updated));
    }
    tutti_tape_gradients(&other, y, 2, (tutti_sym[]){u, updated}, grads);
    CHECK_NEAR(tutti_scalar_value(grads[0].value), 20, 0);
    CHECK_NEAR(tutti_scalar_value(grads[1].value), 25, 0);
    CHECK_OK(tutti_eager_step(e));
    tutti_eager_close(e);
}

TUTTI_TEST(one_tape_is_asked_several_times_while_it_records)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_sym w = tutti_variable(tutti_eager_graph(e), tutti_full(3, 2), .name = "w");
    tutti_grad first, second, third;
    tutti_sym cubes;
    TUTTI_TAPE(tape, e) {
        tutti_tape_gradients(&tape, tutti_sum(tutti_square(w)), 1, &w, &first);
        cubes = tutti_sum(tutti_mul(tutti_square(w), w));
        tutti_tape_gradients(&tape, cubes, 1, &w, &second);
    }
    tutti_tape_gradients(&tape, cubes, 1, &w, &third);
    CHECK_NEAR(tutti_scalar_value(first.value), 6, 0);
    CHECK_NEAR(tutti_scalar_value(second.value), 27, 0);
    CHECK_NEAR(tutti_scalar_value(third.value), 27, 0);
    CHECK_OK(tutti_eager_step(e));
    tutti_eager_close(e);
}

/* Also of values that are too large to be kept by themselves. */
static void give(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret, void *context)
{
    TUTTI_UNUSED(body);
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = args[0];
}

static void is_small(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                     void *context)
{
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_less(args[0], tutti_scalar(body, TUTTI_F32, 1));
}

static tutti_grad pass(tutti_sym forward, tutti_grad grad, void *context)
{
    TUTTI_UNUSED(forward);
    TUTTI_UNUSED(context);
    return grad;
}

/* The ways to use a symbol; false when there are no more. */
static bool use_in_way(int way, tutti_eager *e, tutti_sym old, tutti_sym now)
{
    tutti_graph *g = tutti_eager_graph(e);
    tutti_sym yes = tutti_less(now, tutti_scalar(g, TUTTI_F32, 100));
    tutti_tape tape = tutti_tape_begin(e);
    switch (way) {
    case 0:
        tutti_neg(old);
        return true;
    case 1:
        TUTTI_WITH_CONTROL(g, now, old)
            tutti_neg(now);
        return true;
    case 2:
        tutti_group(g, old);
        return true;
    case 3:
        TUTTI_WITH_COLOCATION(g, old)
            tutti_neg(now);
        return true;
    case 4:
        tutti_cond(yes, give, give, NULL, TUTTI_SYMS(now, old), 1, NULL);
        return true;
    case 5:
        tutti_cond(tutti_cast(old, TUTTI_BOOL), give, give, NULL, TUTTI_SYMS(now), 1, NULL);
        return true;
    case 6:
        tutti_while(is_small, give, NULL, TUTTI_SYMS(old), 0, NULL, NULL);
        return true;
    case 7:
        tutti_while(is_small, give, NULL, TUTTI_SYMS(now), TUTTI_SYMS(old), NULL);
        return true;
    case 8:
        tutti_sym_output(old, 0);
        return true;
    case 9:
        tutti_on_gradient(old, pass, NULL);
        return true;
    case 10:
        tutti_tape_watch(&tape, old);
        return true;
    case 11:
        tutti_gradient(now, old);
        return true;
    default:
        return false;
    }
}

/* Builders that look at types first. */
static bool build_in_way(int way, tutti_sym old, tutti_sym now)
{
    switch (way) {
    case 0:
        tutti_mul(old, 2);
        return true;
    case 1:
        tutti_slice_axis(old, 0, 0, 1);
        return true;
    case 2:
        tutti_pad(old, .before = TUTTI_INDEX(1));
        return true;
    case 3:
        tutti_nn_group_norm(old, now, now, 1);
        return true;
    case 4:
        tutti_nn_max_pool1d(old);
        return true;
    case 5:
        tutti_nn_conv1d(now, old);
        return true;
    default:
        return false;
    }
}

TUTTI_TEST(values_of_an_earlier_step_are_refused_in_every_use)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_sym v = tutti_variable(tutti_eager_graph(e), tutti_full(2), .name = "v");
    for (int way = 0, first = 0;; way++) {
        tutti_sym old = tutti_read(v);
        CHECK_OK(tutti_eager_step(e));
        tutti_sym now = tutti_read(v);
        if (first == 0 && !use_in_way(way, e, old, now))
            first = way;
        if (first > 0 && !build_in_way(way - first, old, now))
            break;
        if (tutti_eager_step(e) == TUTTI_OK)
            tutti__test_fail(__FILE__, __LINE__, "way %d is not refused", way);
        CHECK_CONTAINS(tutti_error_message(), "is a value of an earlier step of the tape");
    }
    tutti_eager_close(e);
}

TUTTI_TEST(what_was_read_before_a_variable_is_set_has_the_old_value)
{
    for (int64_t size = 4; size <= 4000; size *= 1000) {
        tutti_eager *e;
        tutti_tensor *ten = vector(size, 10);
        CHECK_OK(tutti_eager_open(&e));
        tutti_sym w = tutti_variable(tutti_eager_graph(e), tutti_full(3, size), .name = "w");
        tutti_sym read = tutti_read(w), square = tutti_square(read);
        CHECK_NEAR(tutti_scalar_value(tutti_sum(read)), 3 * (double)size, 0); /* it has run */
        CHECK_OK(tutti_eager_set(e, w, ten));
        tutti_assign_add(w, square);
        CHECK_OK(tutti_eager_step(e));
        check_get(e, w, 19);
        tutti_tensor_release(ten);
        tutti_eager_close(e);
    }
}

TUTTI_TEST(scopes_around_steps_stay)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_graph *g = tutti_eager_graph(e);
    TUTTI_WITH_NAME(g, "net")
        TUTTI_WITH_DEVICE(g, "far:0")
            for (int i = 0; i < 3; i++)
                TUTTI_STEP(e) {
                    tutti_sym w = tutti_get_variable(g, "w", tutti_full(3, 2));
                    tutti_assign_add(w, tutti_fill(g, TUTTI_F32, 1, 2));
                    CHECK_STR(tutti_node_name(w.node), "net/w");
                    CHECK_STR(tutti_node_device(tutti_square(w).node), "/far:0");
                    CHECK_NEAR(tutti_scalar_value(w), 4 + i, 0);
                }
    CHECK_OK(tutti_eager_check(e));
    CHECK_OK(tutti_graph_check(g));
    CHECK_STR(tutti_node_device(tutti_scalar(g, TUTTI_F32, 1).node), "");
    tutti_eager_close(e);
}

static tutti_grad ten_times(tutti_sym forward, tutti_grad grad, void *context)
{
    (void)forward, (void)context;
    grad.value = tutti_mul(grad.value, 10);
    return grad;
}

TUTTI_TEST(hooks_of_variables_stay)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_sym w = tutti_variable(tutti_eager_graph(e), tutti_full(3, 2), .name = "w");
    tutti_on_gradient(w, ten_times, NULL);
    for (int i = 0; i < 3; i++) {
        tutti_sym y, half = tutti_mul(w, 0.5);
        tutti_grad grad;
        tutti_on_gradient(half, ten_times, NULL); /* of the step only */
        TUTTI_TAPE(tape, e)
            y = tutti_sum(tutti_square(w));
        tutti_tape_gradients(&tape, y, 1, &w, &grad);
        CHECK_NEAR(tutti_scalar_value(grad.value), 60, 0);
        CHECK_OK(tutti_eager_step(e));
    }
    tutti_eager_close(e);
}

static void check_queue(const char *device, int64_t size)
{
    tutti_eager *e;
    tutti_tensor *one = vector(size, 1);
    CHECK_OK(tutti_eager_open(&e, .device = device));
    tutti_graph *g = tutti_eager_graph(e);
    tutti_sym q =
        tutti_fifo_queue(g, 100, tutti_type_make(TUTTI_F32, 1, &size), TUTTI_TYPE(TUTTI_I64));
    tutti_sym x = tutti_eager_feed(e, one);
    for (int i = 0; i < 4; i++)
        tutti_enqueue(q, tutti_mul(x, i + 1), tutti_scalar(g, TUTTI_I64, i));
    CHECK_NEAR(tutti_scalar_value(tutti_queue_size(q)), 4, 0);
    CHECK_OK(tutti_eager_step(e));
    for (int i = 0; i < 4; i++) {
        tutti_sym rows = tutti_dequeue(q), number = tutti_sym_output(rows, 1);
        CHECK_NEAR(tutti_scalar_value(tutti_sum(rows)), (i + 1) * (double)size, 0);
        CHECK_NEAR(tutti_scalar_value(number), i, 0); /* the other component, later */
        CHECK_NEAR(tutti_scalar_value(tutti_max(rows)), i + 1, 0);
        CHECK_OK(tutti_eager_step(e));
    }
    tutti_tensor_release(one);
    tutti_eager_close(e);
}

TUTTI_TEST(queues_act_in_the_order_of_writing_and_what_they_gave_is_kept)
{
    static const char *const devices[] = {"cpu:0", "far:0", "whole:0"};
    for (int d = 0; d < 3; d++)
        for (int i = 0; i < 4; i++)
            check_queue(devices[d], i % 2 ? 3 : 1000);
}

/* A symbol has one value in a step, in an initial value and elsewhere. */
TUTTI_TEST(initial_values_and_the_rest_of_a_step_draw_the_same)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_graph *g = tutti_eager_graph(e);
    for (int i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "v%d", i);
        tutti_sym drawn = tutti_random_normal(g, 0, 1, TUTTI_TYPE(TUTTI_F32, 1000));
        tutti_sym v = tutti_variable(g, tutti_sym_init(drawn), .name = name);
        CHECK_NEAR(tutti_scalar_value(tutti_max(tutti_abs(tutti_sub(v, drawn)))), 0, 0);
        CHECK_OK(tutti_eager_step(e));
    }
    tutti_eager_close(e);
}

/* One initial value that fails, or follows an update of a step that fails, takes no other variable
 * with it; when it is asked for again the variable is made anew. */
TUTTI_TEST(variables_without_a_first_value_are_made_anew)
{
    for (int behind_update = 0; behind_update < 2; behind_update++) {
        tutti_eager *e;
        CHECK_OK(tutti_eager_open(&e));
        tutti_graph *g = tutti_eager_graph(e);
        for (int i = 0; i < 3; i++) {
            tutti_sym w = tutti_get_variable(g, "w", tutti_full(2, 3));
            if (behind_update)
                tutti_assign(w, tutti_fill(g, TUTTI_F32, 4, 3));
            tutti_sym bad =
                tutti_check_numerics(tutti_log(tutti_mul(tutti_sum(w), i == 0 ? -1 : 1)), "x");
            tutti_init init = behind_update ? tutti_sym_init(tutti_read(w)) : tutti_sym_init(bad);
            tutti_sym v = tutti_get_variable(g, "v", init);
            double sum = tutti_scalar_value(tutti_add(tutti_sum(v), tutti_mul(bad, 0)));
            if (i > 0)
                CHECK_NEAR(sum, behind_update ? 12 : log(6), 1e-6);
            CHECK_INT(tutti_eager_step(e) == TUTTI_OK, i > 0);
            CHECK_NEAR(tutti_scalar_value(tutti_sum(tutti_get_variable(g, "w", tutti_full(2, 3)))),
                       behind_update && i > 0 ? 12 : 6, 0);
            CHECK_OK(tutti_eager_step(e));
        }
        tutti_eager_close(e);
    }
}

/* Two variables of one name in the state: updates act in the order of writing. */
TUTTI_TEST(initial_values_do_not_overtake_updates_of_the_same_name)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_graph *g = tutti_eager_graph(e);
    tutti_sym a = tutti_variable(g, tutti_full(3, 2), .name = "a", .shared_name = "s");
    CHECK_OK(tutti_eager_step(e));
    tutti_assign(a, tutti_mul(a, 5));
    (void)tutti_variable(g, tutti_full(3, 2), .name = "b", .shared_name = "s");
    CHECK_OK(tutti_eager_step(e));
    check_get(e, a, 3);
    tutti_eager_close(e);
}
