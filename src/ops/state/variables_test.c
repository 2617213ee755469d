/* variables_test.c: making, finding, initialising and writing variables. */
#include <math.h>
#include <stdio.h>

#include "ops/state/initial.h"
#include "ops/state/testing.h"

/* The value that the initializer of a variable assigns. */
static tutti_tensor *initial_value(tutti_graph *g, const char *variable)
{
    char name[64];
    snprintf(name, sizeof name, "%s/assign", variable);
    tutti_node *assign = tutti_graph_find(g, name);
    CHECK(assign != NULL);
    CHECK_INT(tutti__int(assign, "initializer"), 1);
    return fetch(tutti__sym(assign->inputs[1].node, assign->inputs[1].index), 0, NULL);
}

static void check_range(tutti_tensor *tensor, double low, double high)
{
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        CHECK(tutti_tensor_get(tensor, i) >= low && tutti_tensor_get(tensor, i) <= high);
}

static double stddev(tutti_tensor *tensor)
{
    double sum = 0, squares = 0, count = (double)tutti_tensor_count(tensor);
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++) {
        sum += tutti_tensor_get(tensor, i);
        squares += tutti_tensor_get(tensor, i) * tutti_tensor_get(tensor, i);
    }
    return sqrt(squares / count - sum / count * (sum / count));
}

TUTTI_TEST(variable_has_name_type_and_initializer)
{
    tutti_graph *g = new_graph();
    TUTTI_WITH_NAME(g, "layer") {
        tutti_sym w = tutti_variable(g, tutti_full(2.5, 2, 3), .name = "w");
        CHECK_STR(tutti_node_name(w.node), "layer/w");
        CHECK_STR(tutti__str(w.node, "shared_name"), "layer/w");
        CHECK(tutti_sym_type(w).handle);
        tutti_sym again = tutti_variable(g, tutti_ones(4), .name = "w", .dtype = TUTTI_I32);
        CHECK_STR(tutti_node_name(again.node), "layer/w_1");
        CHECK_STR(tutti__str(again.node, "shared_name"), "layer/w_1");
    }
    tutti_tensor *value = initial_value(g, "layer/w");
    CHECK_VALUES(value, 0, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5);
    tutti_tensor_release(value);
    value = initial_value(g, "layer/w_1");
    CHECK_VALUES(value, 0, 1, 1, 1, 1);
    CHECK_INT(tutti_tensor_dtype(value), TUTTI_I32);
    tutti_tensor_release(value);
    tutti_graph_destroy(g);
}

TUTTI_TEST(variable_starts_from_tensors_and_symbols)
{
    tutti_graph *g = new_graph();
    tutti_tensor *given = VECTOR(TUTTI_I64, 4, 5);
    tutti_variable(g, tutti_tensor_init(given), .name = "t");
    tutti_tensor_release(given);
    tutti_variable(g, tutti_sym_init(tutti_ints(g, 7, 8, 9)), .name = "s");
    tutti_tensor *value = initial_value(g, "t");
    CHECK_VALUES(value, 0, 4, 5);
    tutti_tensor_release(value);
    value = initial_value(g, "s");
    CHECK_VALUES(value, 0, 7, 8, 9);
    tutti_tensor_release(value);
    CHECK(!tutti_sym_ok(tutti_variable(g, tutti_tensor_init(NULL), .name = "none")));
    check_mistake(g, TUTTI_INVALID, "variable 'none': the tensor of the initial value is NULL");

    g = new_graph();
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY);
    CHECK(!tutti_sym_ok(tutti_variable(g, tutti_sym_init(x))));
    check_mistake(g, TUTTI_INVALID, "a variable's shape must be known");

    g = new_graph();
    CHECK(!tutti_sym_ok(
        tutti_variable(g, tutti_zeros(2), .name = "a", .aggregation = (tutti_aggregation)9)));
    check_mistake(g, TUTTI_INVALID, "variable 'a': aggregation is 9");
}

TUTTI_TEST(variable_starts_from_a_number_that_its_type_has)
{
    tutti_graph *g = new_graph();
    CHECK(tutti_sym_ok(tutti_variable(g, tutti_full(255, 3), .name = "a", .dtype = TUTTI_U8)));
    CHECK(!tutti_sym_ok(tutti_variable(g, tutti_full(300, 3), .name = "b", .dtype = TUTTI_U8)));
    check_mistake(g, TUTTI_INVALID, "variable 'b': u8 has no number 300");
    g = new_graph();
    CHECK(!tutti_sym_ok(tutti_variable(g, tutti_zeros(3), .name = "s", .dtype = TUTTI_STRING)));
    check_mistake(g, TUTTI_INVALID,
                  "variable 's': string has no numbers as initial values; give "
                  "strings with tutti_tensor_init");
    g = new_graph();
    CHECK(!tutti_sym_ok(tutti_variable(g, tutti_glorot_uniform(3, 3), .dtype = TUTTI_I32)));
    check_mistake(g, TUTTI_INVALID, "scaled by fans are floats, .dtype asks for i32");
    g = new_graph();
    CHECK(tutti_sym_ok(tutti_variable(g, tutti_uniform_init(0, 9, 3), .dtype = TUTTI_I32)));
    CHECK_OK(tutti_graph_check(g));
    tutti_graph_destroy(g);
}

TUTTI_TEST(fans_are_counted_as_keras_does)
{
    double in, out;
    tutti__fans(2, (int64_t[]){784, 10}, &in, &out);
    CHECK_NEAR(in, 784, 0);
    CHECK_NEAR(out, 10, 0);
    tutti__fans(4, (int64_t[]){3, 3, 16, 32}, &in, &out);
    CHECK_NEAR(in, 144, 0);
    CHECK_NEAR(out, 288, 0);
    tutti__fans(1, (int64_t[]){7}, &in, &out);
    CHECK_NEAR(in, 7, 0);
    CHECK_NEAR(out, 7, 0);
    tutti__fans(0, NULL, &in, &out);
    CHECK_NEAR(in, 1, 0);
}

TUTTI_TEST(random_initial_values_have_their_distributions)
{
    tutti_graph *g = new_graph();
    tutti_variable(g, tutti_glorot_uniform(40, 60), .name = "glorot");
    tutti_variable(g, tutti_he_normal(3, 3, 8, 40), .name = "he");
    tutti_variable(g, tutti_normal_init(1, 0.5, 2000), .name = "normal");
    tutti_variable(g, tutti_uniform_init(-3, -1, 500), .name = "uniform");
    tutti_tensor *value = initial_value(g, "glorot");
    double limit = sqrt(6.0 / 100);
    check_range(value, -limit, limit);
    CHECK_NEAR(stddev(value), limit / sqrt(3), 0.005);
    tutti_tensor_release(value);
    value = initial_value(g, "he");
    double sigma = sqrt(2.0 / 72);
    CHECK_NEAR(stddev(value), sigma, 0.005);
    check_range(value, -2 * sigma / 0.8796, 2 * sigma / 0.8796);
    tutti_tensor_release(value);
    value = initial_value(g, "normal");
    CHECK_NEAR(stddev(value), 0.5, 0.03);
    tutti_tensor_release(value);
    value = initial_value(g, "uniform");
    check_range(value, -3, -1);
    tutti_tensor_release(value);
    tutti_graph_destroy(g);
}

TUTTI_TEST(random_initial_values_differ_by_name_and_seed_and_repeat)
{
    tutti_graph *g = new_graph();
    tutti_variable(g, tutti_normal_init(0, 1, 8), .name = "a");
    tutti_variable(g, tutti_normal_init(0, 1, 8), .name = "b");
    tutti_graph *other = new_graph();
    tutti_variable(other, tutti_normal_init(0, 1, 8), .name = "a", .seed = 1);
    tutti_tensor *a = initial_value(g, "a"), *again = initial_value(g, "a"),
                 *b = initial_value(g, "b"), *seeded = initial_value(other, "a");
    CHECK(tutti_tensor_same(a, again));
    CHECK(!tutti_tensor_same(a, b));
    CHECK(!tutti_tensor_same(a, seeded));
    tutti_tensor_release(a);
    tutti_tensor_release(again);
    tutti_tensor_release(b);
    tutti_tensor_release(seeded);
    tutti_graph_destroy(g);
    tutti_graph_destroy(other);
}

TUTTI_TEST(get_variable_finds_or_makes_by_scoped_name)
{
    tutti_graph *g = new_graph();
    tutti_sym first = TUTTI_NO_SYM, again = TUTTI_NO_SYM, outside;
    TUTTI_WITH_NAME(g, "a") {
        first = tutti_get_variable(g, "w", tutti_zeros(3));
        again = tutti_get_variable(g, "w", tutti_ones(3));
    }
    outside = tutti_get_variable(g, "w", tutti_zeros(3));
    CHECK(first.node == again.node);
    CHECK(first.node != outside.node);
    CHECK_STR(tutti_node_name(first.node), "a/w");
    CHECK(tutti_get_variable(g, "a/w", tutti_zeros(3)).node == first.node);
    CHECK(!tutti_sym_ok(tutti_get_variable(g, "w", tutti_zeros(4))));
    check_mistake(g, TUTTI_INVALID,
                  "get_variable 'w': the variable is f32[3], asked for is f32[4]");

    g = new_graph();
    tutti_placeholder_named(g, "x", TUTTI_F32);
    CHECK(!tutti_sym_ok(tutti_get_variable(g, "x", tutti_zeros())));
    check_mistake(g, TUTTI_INVALID, "that name belongs to a placeholder");
}

static void in_four(const tutti_type *type, int64_t ret_pieces[TUTTI_MAX_RANK])
{
    ret_pieces[0] = 4;
    for (int i = 1; i < type->rank; i++)
        ret_pieces[i] = 1;
}

TUTTI_TEST(partitioner_is_stored_and_checked)
{
    tutti_graph *g = new_graph();
    tutti_sym v = tutti_variable(g, tutti_zeros(8, 2), .partitioner = in_four);
    CHECK_STR(tutti__str(v.node, "partition"), "4,1");
    CHECK(!tutti_sym_ok(tutti_variable(g, tutti_zeros(3, 2), .partitioner = in_four)));
    check_mistake(g, TUTTI_INVALID, "asks for 4 pieces along axis 0 of size 3");
    g = new_graph();
    v = tutti_variable(g, tutti_zeros(8, 2), .partition = "max_size(32)");
    CHECK_STR(tutti__str(v.node, "partition"), "max_size(32)");
    CHECK(!tutti_sym_ok(
        tutti_variable(g, tutti_zeros(8), .partitioner = in_four, .partition = "fixed_size(2)")));
    check_mistake(g, TUTTI_INVALID, ".partitioner or .partition, not both");
}

TUTTI_TEST(initialize_all_waits_for_every_initializer_and_nothing_else)
{
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32);
    tutti_variable(g, tutti_zeros(2), .name = "a");
    TUTTI_WITH_CONTROL(g, x)
        tutti_variable(g, tutti_zeros(2), .name = "b", .not_trainable = true);
    tutti_sym all = tutti_initialize_variables(g);
    CHECK_INT(all.node->control_count, 2);
    CHECK_INT(tutti_sym_output_count(all), 0);
    CHECK_INT(tutti_graph_find(g, "b/assign")->control_count, 0);
    CHECK(tutti_graph_find(g, "b/assign")->colocate == tutti_graph_find(g, "b"));
    tutti_sym trainable[4];
    CHECK_INT(tutti_trainable_variables(g, 4, trainable), 1);
    CHECK(trainable[0].node == tutti_graph_find(g, "a"));
    TUTTI_WITH_CONTROL(g, x)
        CHECK_INT(tutti_identity(x).node->control_count, 1);
    tutti_graph_destroy(g);
}

TUTTI_TEST(assignments_write_the_variable)
{
    tutti_graph *g = new_graph();
    tutti_sym v = tutti_variable(g, tutti_zeros(3), .name = "v"),
              x = tutti_placeholder(g, TUTTI_F32, 3);
    tutti_tensor *state = VECTOR(TUTTI_F32, 1, 2, 3), *input = VECTOR(TUTTI_F32, 10, 20, 30);
    tutti_tensor_release(fetch(tutti_assign_add(v, x), FEEDS(FEED(v, state), FEED(x, input))));
    CHECK_VALUES(state, 0, 11, 22, 33);
    tutti_tensor *value = fetch(tutti_assign_sub(v, x), FEEDS(FEED(v, state), FEED(x, input)));
    CHECK_VALUES(state, 0, 1, 2, 3);
    CHECK_VALUES(value, 0, 1, 2, 3);
    tutti_tensor_release(value);
    tutti_tensor_release(fetch(tutti_assign(v, x), FEEDS(FEED(v, state), FEED(x, input))));
    CHECK_VALUES(state, 0, 10, 20, 30);
    tutti_tensor_release(state);
    tutti_tensor_release(input);
    tutti_graph_destroy(g);
}

TUTTI_TEST(scatter_checks_every_index_before_it_writes)
{
    tutti_graph *g = new_graph();
    tutti_sym v = tutti_variable(g, tutti_zeros(3, 2), .name = "table");
    tutti_sym at = tutti_placeholder(g, TUTTI_I32, 2), rows = tutti_placeholder(g, TUTTI_F32, 2, 2);
    tutti_sym update = tutti_scatter_update(v, at, rows);
    tutti_tensor *state = MATRIX(TUTTI_F32, 3, 2, 1, 2, 3, 4, 5, 6), *bad = VECTOR(TUTTI_I32, 0, 3),
                 *good = VECTOR(TUTTI_I32, 2, 2), *values = MATRIX(TUTTI_F32, 2, 2, 10, 20, 30, 40),
                 *none = NULL;
    CHECK_STATUS(try_fetch(update, FEEDS(FEED(v, state), FEED(at, bad), FEED(rows, values)), &none),
                 TUTTI_OUT_OF_RANGE);
    CHECK_CONTAINS(tutti_error_message(), "index 3 (element 1 of the indices) is outside [0, 3)");
    CHECK_VALUES(state, 0, 1, 2, 3, 4, 5, 6);
    tutti_tensor_release(fetch(update, FEEDS(FEED(v, state), FEED(at, good), FEED(rows, values))));
    CHECK_VALUES(state, 0, 1, 2, 3, 4, 30, 40);
    tutti_tensor_release(fetch(tutti_scatter_sub(v, at, rows),
                               FEEDS(FEED(v, state), FEED(at, good), FEED(rows, values))));
    CHECK_VALUES(state, 0, 1, 2, 3, 4, -10, -20);
    CHECK(!tutti_sym_ok(tutti_scatter_add(v, at, tutti_placeholder(g, TUTTI_F32, 2, 3))));
    tutti_tensor_release(state);
    tutti_tensor_release(bad);
    tutti_tensor_release(good);
    tutti_tensor_release(values);
    check_mistake(g, TUTTI_INVALID, "input 2 is f32[2,3]");
}

/* A gradient that is rows goes through the read to the variable. */
TUTTI_TEST(rows_reach_the_variable_they_were_gathered_from)
{
    tutti_graph *g = new_graph();
    tutti_sym table = tutti_variable(g, tutti_zeros(5, 2), .name = "table");
    tutti_sym at = tutti_placeholder(g, TUTTI_I64, 3);
    tutti_sym loss = tutti_sum(tutti_square(tutti_gather(table, at, 0)));
    tutti_grad grad;
    tutti_gradients(loss, 1, &table, &grad);
    CHECK_OK(tutti_graph_check(g));
    CHECK(tutti_sym_ok(grad.rows));
    tutti_tensor *state = MATRIX(TUTTI_F32, 5, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
                 *indices = VECTOR(TUTTI_I64, 4, 1, 4);
    tutti_tensor *dense =
        fetch(tutti_grad_dense(grad, table), FEEDS(FEED(table, state), FEED(at, indices)));
    CHECK_VALUES(dense, 0, 0, 0, 6, 8, 0, 0, 0, 0, 36, 40);
    tutti_tensor_release(dense);
    tutti_tensor_release(state);
    tutti_tensor_release(indices);
    tutti_graph_destroy(g);
}
