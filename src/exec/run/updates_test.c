/* updates_test.c: what a step sees of variables that it updates, and that a step which fails
 * changes nothing. */
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "tutti/tutti.h"

typedef struct bench {
    tutti_graph *graph;
    tutti_session *session;
} bench;

static bench start(void)
{
    bench b;
    CHECK_OK(tutti_graph_create(&b.graph));
    CHECK_OK(tutti_session_open(&b.session, b.graph, .deadline_seconds = 5));
    return b;
}

static void initialize(bench b)
{
    CHECK_OK(tutti_run(b.session, .target = tutti_initialize_variables(b.graph)));
}

static void end(bench b)
{
    tutti_session_close(b.session);
    tutti_graph_destroy(b.graph);
}

static tutti_sym number(bench b, double value)
{
    return tutti_scalar(b.graph, TUTTI_F32, value);
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

static double variable_value(bench b, tutti_sym variable)
{
    tutti_tensor *value;
    CHECK_OK(tutti_session_get(b.session, variable, &value));
    return take(value);
}

TUTTI_TEST(updates_of_one_variable_each_give_their_value)
{
    bench b = start();
    tutti_sym v = tutti_variable(b.graph, tutti_full(1), .name = "v"), first, second = TUTTI_NO_SYM;
    first = tutti_assign_add(v, number(b, 10));
    TUTTI_WITH_CONTROL(b.graph, first)
        second = tutti_assign_add(v, number(b, 100));
    tutti_sym twice = TUTTI_NO_SYM;
    TUTTI_WITH_CONTROL(b.graph, second)
        twice = tutti_mul(first, 2);
    initialize(b);
    tutti_tensor *out[4];
    CHECK_OK(tutti_run(b.session, .fetch = TUTTI_FETCH({first, &out[0]}, {second, &out[1]},
                                                       {twice, &out[2]}, {v, &out[3]})));
    CHECK_NEAR(take(out[0]), 11, 0);
    CHECK_NEAR(take(out[1]), 111, 0);
    CHECK_NEAR(take(out[2]), 22, 0);
    CHECK_NEAR(take(out[3]), 1, 0);
    CHECK_NEAR(variable_value(b, v), 111, 0);
    end(b);
}

TUTTI_TEST(updates_of_one_variable_each_give_their_value_when_something_may_fail)
{
    bench b = start();
    tutti_sym v = tutti_variable(b.graph, tutti_full(1), .name = "v"), first, second = TUTTI_NO_SYM;
    first = tutti_assign_add(v, number(b, 10));
    TUTTI_WITH_CONTROL(b.graph, first)
        second = tutti_assign_add(v, number(b, 100));
    tutti_sym checked = TUTTI_NO_SYM;
    TUTTI_WITH_CONTROL(b.graph, second)
        checked = tutti_check_numerics(first, "first");
    initialize(b);
    tutti_tensor *out[4];
    CHECK_OK(tutti_run(b.session, .fetch = TUTTI_FETCH({first, &out[0]}, {second, &out[1]},
                                                       {checked, &out[2]}, {v, &out[3]})));
    CHECK_NEAR(take(out[0]), 11, 0);
    CHECK_NEAR(take(out[1]), 111, 0);
    CHECK_NEAR(take(out[2]), 11, 0);
    CHECK_NEAR(take(out[3]), 1, 0);
    CHECK_NEAR(variable_value(b, v), 111, 0);
    end(b);
}

/* A value of before the step that is used beside updates, before its own variable is overwritten.
 */
TUTTI_TEST(updates_leave_old_values_to_those_who_ask_for_them)
{
    bench b = start();
    tutti_sym v = tutti_variable(b.graph, tutti_full(7), .name = "v"),
              w = tutti_variable(b.graph, tutti_full(1), .name = "w");
    tutti_sym counted = tutti_assign_add(w, number(b, 1));
    tutti_sym product = tutti_mul(tutti_read(v), counted);
    tutti_sym checked = tutti_check_numerics(product, "product");
    tutti_sym plain = tutti_assign(v, tutti_mul(product, 2)),
              careful = tutti_assign(v, tutti_mul(checked, 3));
    initialize(b);
    tutti_tensor *out;
    CHECK_OK(tutti_run(b.session, .fetch = TUTTI_FETCH({product, &out}),
                       .target = plain)); /* 7 * 2, then v = 28 */
    CHECK_NEAR(take(out), 14, 0);
    CHECK_NEAR(variable_value(b, v), 28, 0);
    CHECK_OK(tutti_run(b.session, .fetch = TUTTI_FETCH({checked, &out}),
                       .target = careful)); /* 28 * 3, then v = 252 */
    CHECK_NEAR(take(out), 84, 0);
    CHECK_NEAR(variable_value(b, v), 252, 0);
    end(b);
}

TUTTI_TEST(updates_name_a_variable_without_value_that_only_the_commit_reads)
{
    bench b = start();
    tutti_sym v = tutti_variable(b.graph, tutti_full(7), .name = "empty"),
              w = tutti_variable(b.graph, tutti_full(1), .name = "w");
    tutti_sym counted = tutti_assign_add(w, number(b, 1)),
              product = tutti_mul(tutti_read(v), counted), late = TUTTI_NO_SYM;
    TUTTI_WITH_CONTROL(b.graph, counted)
        late = tutti_read(v);
    tutti_tensor *one = scalar(1), *out;
    CHECK_OK(tutti_run(b.session, .target = tutti_assign(w, number(b, 5))));
    CHECK_STATUS(tutti_run(b.session, .target = product), TUTTI_UNINITIALIZED);
    CHECK_CONTAINS(tutti_error_message(), "empty");
    CHECK_STATUS(tutti_run(b.session, .fetch = TUTTI_FETCH({late, &out})), TUTTI_UNINITIALIZED);
    CHECK_STATUS(tutti_run(b.session, .target = tutti_assign(v, product)), TUTTI_UNINITIALIZED);
    CHECK_NEAR(variable_value(b, w), 5, 0);
    CHECK_OK(tutti_session_set(b.session, w, one));
    CHECK_NEAR(variable_value(b, w), 1, 0);
    tutti_tensor_release(one);
    end(b);
}

/* Rows move within one variable: each must be read before it is written. */
TUTTI_TEST(updates_by_rows_may_take_the_variable_itself)
{
    bench b = start();
    tutti_tensor *start_value, *value;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 2, (int64_t[]){3, 2}, (float[]){1, 2, 3, 4, 5, 6},
                               &start_value));
    tutti_sym v = tutti_variable(b.graph, tutti_tensor_init(start_value), .name = "v");
    tutti_sym turn = tutti_scatter_update(v, tutti_ints(b.graph, 1, 2, 0), v);
    initialize(b);
    CHECK_OK(tutti_run(b.session, .target = turn));
    CHECK_OK(tutti_session_get(b.session, v, &value));
    const double expected[] = {5, 6, 1, 2, 3, 4};
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(tutti_tensor_get(value, i), expected[i], 0);
    tutti_tensor_release(value);
    tutti_tensor_release(start_value);
    end(b);
}

TUTTI_TEST(updates_by_rows_that_fail_change_nothing)
{
    bench b = start();
    tutti_sym rows = tutti_placeholder(b.graph, TUTTI_I64, 2);
    tutti_sym v = tutti_variable(b.graph, tutti_zeros(3), .name = "v"),
              w = tutti_variable(b.graph, tutti_zeros(), .name = "w");
    tutti_sym counted = tutti_assign_add(w, number(b, 1));
    tutti_sym move = tutti_scatter_add(v, rows, tutti_cast(tutti_ints(b.graph, 1, 1), TUTTI_F32));
    initialize(b);
    tutti_tensor *good, *bad, *value;
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){2}, (int64_t[]){0, 2}, &good));
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){2}, (int64_t[]){0, 3}, &bad));
    CHECK_OK(tutti_run(b.session, .feed = TUTTI_FEED({rows, good}),
                       .targets = TUTTI_TARGETS(counted, move)));
    CHECK(tutti_run(b.session, .feed = TUTTI_FEED({rows, bad}),
                    .targets = TUTTI_TARGETS(counted, move)) != TUTTI_OK);
    CHECK_NEAR(variable_value(b, w), 1, 0);
    CHECK_OK(tutti_session_get(b.session, v, &value));
    CHECK_NEAR(tutti_tensor_get(value, 0), 1, 0);
    CHECK_NEAR(tutti_tensor_get(value, 1), 0, 0);
    CHECK_NEAR(tutti_tensor_get(value, 2), 1, 0);
    tutti_tensor_release(value);
    tutti_tensor_release(good);
    tutti_tensor_release(bad);
    end(b);
}

/* The table of an embedding is not copied for the sake of indices that the look-up has checked. */
TUTTI_TEST(updates_of_an_embedding_write_in_place)
{
    bench b = start();
    tutti_sym ids = tutti_placeholder(b.graph, TUTTI_I64, TUTTI_ANY);
    tutti_sym table = tutti_variable(b.graph, tutti_ones(100, 4), .name = "table");
    tutti_sym loss = tutti_sum(tutti_square(tutti_gather(table, ids, 0)));
    tutti_sym step = tutti_minimize(tutti_sgd(0.25), loss);
    initialize(b);
    tutti_tensor *id, *value;
    char *text;
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){3}, (int64_t[]){5, 7, 5}, &id));
    CHECK_OK(tutti_run(b.session, .feed = TUTTI_FEED({ids, id}), .target = step));
    CHECK_OK(tutti_session_print(b.session, &text));
    CHECK(strstr(text, " copy ") == NULL);
    free(text);
    CHECK_OK(tutti_session_get(b.session, table, &value));
    CHECK_NEAR(tutti_tensor_get(value, 5 * 4), 1 - 0.25 * 4, 1e-6);
    CHECK_NEAR(tutti_tensor_get(value, 7 * 4 + 3), 1 - 0.25 * 2, 1e-6);
    CHECK_NEAR(tutti_tensor_get(value, 6 * 4), 1, 0);
    tutti_tensor_release(value);
    tutti_tensor_release(id);
    end(b);
}

/* Views of a variable follow the value that they were taken of. */
TUTTI_TEST(updates_and_views)
{
    bench b = start();
    tutti_sym v = tutti_variable(b.graph, tutti_ones(2, 3), .name = "v"),
              w = tutti_variable(b.graph, tutti_zeros(), .name = "w");
    tutti_sym flat = tutti_reshape(v, 6), counted = tutti_assign_add(w, number(b, 1)),
              flat_late = TUTTI_NO_SYM;
    TUTTI_WITH_CONTROL(b.graph, counted)
        flat_late = tutti_reshape(v, 6);
    tutti_sym checked = tutti_check_numerics(tutti_sum(flat_late), "sum");
    tutti_sym update = tutti_assign(v, tutti_reshape(tutti_mul(flat, 5), 2, 3));
    tutti_sym flat_new = tutti_reshape(update, 3, 2);
    initialize(b);
    tutti_tensor *out[4];
    CHECK_OK(tutti_run(b.session, .fetch = TUTTI_FETCH({flat, &out[0]}, {flat_new, &out[1]},
                                                       {checked, &out[2]}, {flat_late, &out[3]})));
    CHECK_NEAR(take(out[0]), 1, 0);
    CHECK_NEAR(take(out[1]), 5, 0);
    CHECK_NEAR(take(out[2]), 6, 0);
    CHECK_NEAR(take(out[3]), 1, 0);
    CHECK_OK(tutti_run(
        b.session, .fetch = TUTTI_FETCH({flat, &out[0]}, {flat_new, &out[1]}, {flat, &out[2]})));
    CHECK_NEAR(take(out[0]), 5, 0);
    CHECK_NEAR(take(out[1]), 25, 0);
    CHECK_NEAR(take(out[2]), 5, 0);
    end(b);
}

/* Two devices: what can fail on the one follows an update on the other. Nobody waits for ever, and
 * nothing changes when it fails. */
static void fail_across(const char *first, const char *second)
{
    bench b = start();
    tutti_sym x = tutti_placeholder(b.graph, TUTTI_F32), v, add, checked = TUTTI_NO_SYM, other,
              count;
    TUTTI_WITH_DEVICE(b.graph, first) {
        v = tutti_variable(b.graph, tutti_zeros(), .name = "v");
        add = tutti_assign_add(v, x);
    }
    TUTTI_WITH_DEVICE(b.graph, second) {
        other = tutti_variable(b.graph, tutti_zeros(), .name = "other");
        count = tutti_assign_add(other, number(b, 1));
        checked = tutti_check_numerics(tutti_mul(add, 2), "the new value");
    }
    initialize(b);
    tutti_tensor *good = scalar(3), *bad = scalar(__builtin_inff()), *out;
    CHECK_OK(tutti_run(b.session, .feed = TUTTI_FEED({x, good}),
                       .fetch = TUTTI_FETCH({checked, &out}), .target = count));
    CHECK_NEAR(take(out), 6, 0);
    CHECK_STATUS(tutti_run(b.session, .feed = TUTTI_FEED({x, bad}),
                           .targets = TUTTI_TARGETS(checked, count)),
                 TUTTI_CHECK_FAILED);
    CHECK_CONTAINS(tutti_error_message(), "the new value");
    CHECK_NEAR(variable_value(b, v), 3, 0);
    CHECK_NEAR(variable_value(b, other), 1, 0);
    tutti_tensor_release(good);
    tutti_tensor_release(bad);
    end(b);
}

TUTTI_TEST(updates_on_one_device_and_failures_on_another)
{
    fail_across("far:0", "cpu:0");
    fail_across("cpu:0", "far:0");
    fail_across("far:0", "far:1");
}

/* Rows whose numbers were looked up in the same table before cannot fail; but the table's device
 * gets them by way of another, and sees only that it receives them. */
static void rows_across(const char *first, const char *second)
{
    bench b = start();
    tutti_sym table, steps, ids, flat, rows, step, moved = TUTTI_NO_SYM;
    int64_t few[2] = {1, 0};
    tutti_tensor *numbers, *got;
    TUTTI_WITH_DEVICE(b.graph, first) {
        steps = tutti_variable(b.graph, tutti_zeros(), .name = "steps");
        ids = tutti_placeholder(b.graph, TUTTI_I64, 2, 1);
        flat = tutti_reshape(tutti_add(ids, tutti_scalar(b.graph, TUTTI_I64, 1)), 2);
        step = tutti_assign_add(steps, number(b, 1));
    }
    TUTTI_WITH_DEVICE(b.graph, second) {
        table = tutti_variable(b.graph, tutti_ones(4, 3), .name = "table");
        tutti_sym shifted = TUTTI_NO_SYM;
        TUTTI_WITH_DEVICE(b.graph, first)
            shifted = tutti_reshape(flat, 1, 2);
        rows = tutti_reshape(tutti_gather(table, shifted, 0), 2, 3);
        moved = tutti_scatter_add(table, flat, tutti_mul(rows, step));
    }
    initialize(b);
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 2, (int64_t[]){2, 1}, few, &numbers));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(tutti_run(b.session, .feed = TUTTI_FEED({ids, numbers}),
                           .fetch = TUTTI_FETCH({moved, &got})));
        CHECK_NEAR(tutti_tensor_get(got, 3), i == 0 ? 2 : 6, 0);
        CHECK_NEAR(take(got), 1, 0);
    }
    tutti_tensor_release(numbers);
    end(b);
}

TUTTI_TEST(updates_by_rows_that_another_device_counts)
{
    rows_across("cpu:0", "far:0");
    rows_across("far:0", "far:1");
    rows_across("far:0", "whole:0");
}

/* Updates wait for the last segment, which begins where the number of elements is known. */
TUTTI_TEST(updates_before_a_shape_of_their_data_are_refused)
{
    bench b = start();
    tutti_sym v = tutti_variable(b.graph, tutti_ones(5), .name = "v"), late = TUTTI_NO_SYM;
    tutti_sym before = tutti_sum(tutti_cast(tutti_nonzero(v), TUTTI_F32));
    tutti_sym add = tutti_assign_add(v, tutti_fill(b.graph, TUTTI_F32, 1, 5));
    TUTTI_WITH_CONTROL(b.graph, add)
        late = tutti_sum(tutti_cast(tutti_nonzero(tutti_read(v)), TUTTI_F32));
    tutti_tensor *out;
    initialize(b);
    CHECK_OK(tutti_run(b.session, .fetch = TUTTI_FETCH({before, &out}), .target = add));
    CHECK_NEAR(take(out), 0 + 1 + 2 + 3 + 4, 0);
    CHECK_STATUS(tutti_run(b.session, .fetch = TUTTI_FETCH({late, &out})), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "nonzero");
    CHECK_CONTAINS(tutti_error_message(), "in a run or step before");
    CHECK_NEAR(variable_value(b, v), 2, 0);
    end(b);
}

/* A send by hand of what an update gave: the recv, built before it, follows the commit. */
TUTTI_TEST(updates_travel_through_sends_of_the_user)
{
    bench b = start();
    tutti_sym got = TUTTI_NO_SYM, sent = TUTTI_NO_SYM, v = TUTTI_NO_SYM, add;
    TUTTI_WITH_DEVICE(b.graph, "far:1")
        got = tutti_mul(tutti_recv(b.graph, "news", "cpu:0", TUTTI_TYPE(TUTTI_F32)), 10);
    TUTTI_WITH_DEVICE(b.graph, "cpu:0") {
        v = tutti_variable(b.graph, tutti_full(2), .name = "v");
        add = tutti_assign_add(v, number(b, 1));
        sent = tutti_send(add, "news", "far:1");
    }
    initialize(b);
    tutti_tensor *out;
    CHECK_OK(tutti_run(b.session, .fetch = TUTTI_FETCH({got, &out}), .target = sent));
    CHECK_NEAR(take(out), 30, 0);
    end(b);
}
