/* random_test.c: reproducible, different where they should be, rightly distributed. */
#include <math.h>

#include "ops/random/random.h"
#include "ops/state/testing.h"

/* Draws with the counter at `step`. */
static tutti_tensor *draw_at(tutti_sym sym, double step)
{
    tutti_graph *g = tutti_sym_graph(sym);
    tutti_tensor *counter = SCALAR(TUTTI_I64, step);
    tutti_tensor *value = fetch(sym, FEEDS(FEED(tutti__random_counter(g), counter)));
    tutti_tensor_release(counter);
    return value;
}

static void moments(tutti_tensor *tensor, double *ret_mean, double *ret_stddev)
{
    double sum = 0, squares = 0, count = (double)tutti_tensor_count(tensor);
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++) {
        sum += tutti_tensor_get(tensor, i);
        squares += tutti_tensor_get(tensor, i) * tutti_tensor_get(tensor, i);
    }
    *ret_mean = sum / count;
    *ret_stddev = sqrt(squares / count - *ret_mean * *ret_mean);
}

TUTTI_TEST(random_nodes_differ_and_repeat)
{
    tutti_graph *g = new_graph();
    tutti_type type = TUTTI_TYPE(TUTTI_F32, 16);
    tutti_sym a = tutti_random_uniform(g, 0, 1, type), b = tutti_random_uniform(g, 0, 1, type),
              seeded = tutti_random_uniform(g, 0, 1, type, .seed = 5);
    tutti_tensor *first = draw_at(a, 0), *again = draw_at(a, 0), *next = draw_at(a, 1),
                 *other = draw_at(b, 0), *other_seed = draw_at(seeded, 0);
    CHECK(tutti_tensor_same(first, again));
    CHECK(!tutti_tensor_same(first, next));
    CHECK(!tutti_tensor_same(first, other));
    CHECK(!tutti_tensor_same(other, other_seed));
    tutti_tensor_release(first);
    tutti_tensor_release(again);
    tutti_tensor_release(next);
    tutti_tensor_release(other);
    tutti_tensor_release(other_seed);
    tutti_graph_destroy(g);
}

TUTTI_TEST(random_counter_is_one_variable_outside_every_scope)
{
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder(g, TUTTI_F32);
    TUTTI_WITH_NAME(g, "deep")
        TUTTI_WITH_CONTROL(g, x) {
            tutti_random_normal(g, 0, 1, TUTTI_TYPE(TUTTI_F32, 2));
            tutti_random_normal(g, 0, 1, TUTTI_TYPE(TUTTI_F32, 2));
        }
    tutti_random_normal(g, 0, 1, TUTTI_TYPE(TUTTI_F32, 2));
    CHECK_OK(tutti_graph_check(g));
    tutti_node *counter = tutti_graph_find(g, TUTTI_RANDOM_COUNTER);
    CHECK(counter != NULL);
    CHECK_INT(counter->control_count, 0);
    CHECK_STR(tutti__str(counter, "shared_name"), TUTTI_RANDOM_COUNTER);
    CHECK_INT(tutti__int(counter, "trainable"), 0);
    int variables = 0;
    for (size_t i = 0; i < g->nodes.count; i++)
        variables += tutti__is(g->nodes.data[i], "variable");
    CHECK_INT(variables, 1);
    CHECK_INT(tutti_initialize_variables(g).node->control_count, 1);
    tutti_graph_destroy(g);
}

TUTTI_TEST(random_distributions_have_their_moments)
{
    tutti_graph *g = new_graph();
    tutti_type type = TUTTI_TYPE(TUTTI_F64, 100, 100);
    double mean, stddev;
    tutti_tensor *value = draw_at(tutti_random_uniform(g, -1, 3, type), 7);
    moments(value, &mean, &stddev);
    CHECK_NEAR(mean, 1, 0.05);
    CHECK_NEAR(stddev, 4 / sqrt(12), 0.03);
    tutti_tensor_release(value);
    value = draw_at(tutti_random_normal(g, 2, 0.5, type), 7);
    moments(value, &mean, &stddev);
    CHECK_NEAR(mean, 2, 0.02);
    CHECK_NEAR(stddev, 0.5, 0.015);
    tutti_tensor_release(value);
    value = draw_at(tutti_random_truncated_normal(g, 0, 1, type), 7);
    moments(value, &mean, &stddev);
    CHECK_NEAR(mean, 0, 0.03);
    CHECK_NEAR(stddev, 0.8796, 0.02);
    for (int64_t i = 0; i < tutti_tensor_count(value); i++)
        CHECK(fabs(tutti_tensor_get(value, i)) <= 2);
    tutti_tensor_release(value);
    value = draw_at(tutti_random_bernoulli(g, 0.3, type), 7);
    moments(value, &mean, &stddev);
    CHECK_NEAR(mean, 0.3, 0.02);
    tutti_tensor_release(value);
    tutti_graph_destroy(g);
}

TUTTI_TEST(random_uniform_never_reaches_its_upper_bound)
{
    tutti_graph *g = new_graph();
    static const tutti_dtype dtypes[] = {TUTTI_F32, TUTTI_F64, TUTTI_F16, TUTTI_BF16};
    for (size_t d = 0; d < TUTTI_COUNT(dtypes); d++) {
        tutti_tensor *value =
            draw_at(tutti_random_uniform(g, 1000, 1001,
                                         tutti_type_from_list(2, (int64_t[]){dtypes[d], 5000})),
                    1);
        for (int64_t i = 0; i < tutti_tensor_count(value); i++)
            CHECK(tutti_tensor_get(value, i) >= 1000 && tutti_tensor_get(value, i) < 1001);
        tutti_tensor_release(value);
    }
    tutti_tensor *value = draw_at(tutti_random_uniform(g, -2, 2, TUTTI_TYPE(TUTTI_I8, 400)), 1);
    int seen[4] = {0};
    for (int64_t i = 0; i < tutti_tensor_count(value); i++) {
        int64_t x = tutti_tensor_get_int(value, i);
        CHECK(x >= -2 && x < 2);
        seen[x + 2]++;
    }
    for (int i = 0; i < 4; i++)
        CHECK(seen[i] > 50);
    tutti_tensor_release(value);
    tutti_graph_destroy(g);
}

TUTTI_TEST(random_uniform_refuses_bounds_that_the_type_has_not)
{
    tutti_graph *g = new_graph();
    CHECK(tutti_sym_ok(tutti_random_uniform(g, 0, 256, TUTTI_TYPE(TUTTI_U8, 2))));
    CHECK(tutti_sym_ok(tutti_random_uniform(g, -128, 128, TUTTI_TYPE(TUTTI_I8, 2))));
    CHECK(tutti_sym_ok(tutti_random_uniform(g, -0x1p31, 0x1p31, TUTTI_TYPE(TUTTI_I32, 2))));
    CHECK(!tutti_sym_ok(tutti_random_uniform(g, 0, 257, TUTTI_TYPE(TUTTI_U8, 2))));
    check_mistake(g, TUTTI_INVALID, "u8 has not all numbers of [0, 257)");
    g = new_graph();
    CHECK(!tutti_sym_ok(tutti_random_uniform(g, -1, 3, TUTTI_TYPE(TUTTI_U8, 2))));
    check_mistake(g, TUTTI_INVALID, "u8 has not all numbers of [-1, 3)");
}

/* A piece has the numbers of the whole: random_normal of [4,6], columns 2 to 5 of rows 1 and 2. */
TUTTI_TEST(random_pieces_are_those_of_the_whole)
{
    tutti_graph *g = new_graph();
    tutti_sym counter = tutti_scalar(g, TUTTI_I64, 9);
    const int64_t whole_dims[] = {4, 6}, dims[] = {2, 3}, start[] = {1, 2};
    tutti_sym whole =
        tutti_apply_op(g, "random_normal", 1, &counter, 2,
                       ((tutti_attr[]){TUTTI_INTS("dims", 2, whole_dims), TUTTI_INT("salt", 77)}));
    tutti_sym piece = tutti_apply_op(
        g, "random_normal", 1, &counter, 4,
        ((tutti_attr[]){TUTTI_INTS("dims", 2, dims), TUTTI_INT("salt", 77),
                        TUTTI_INTS("global_dims", 2, whole_dims), TUTTI_INTS("start", 2, start)}));
    tutti_tensor *all = fetch(whole, 0, NULL), *part = fetch(piece, 0, NULL);
    for (int row = 0; row < 2; row++)
        for (int column = 0; column < 3; column++)
            CHECK_NEAR(tutti_tensor_get(part, row * 3 + column),
                       tutti_tensor_get(all, (row + 1) * 6 + column + 2), 0);
    tutti_tensor_release(all);
    tutti_tensor_release(part);
    const int64_t beyond[] = {3, 2};
    tutti_apply_op(
        g, "random_normal", 1, &counter, 3,
        ((tutti_attr[]){TUTTI_INTS("dims", 2, dims), TUTTI_INTS("global_dims", 2, whole_dims),
                        TUTTI_INTS("start", 2, beyond)}));
    check_mistake(g, TUTTI_INVALID, "a piece of 2 from 3 does not lie in a whole of 4");
}

TUTTI_TEST(random_takes_the_shape_of_another_value)
{
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 2);
    tutti_sym noise = tutti_random_normal(g, 0, 1, TUTTI_TYPE(TUTTI_F32), .like = x, .seed = 3);
    CHECK_INT(tutti_sym_type(noise).dims[0], TUTTI_ANY);
    tutti_tensor *input = MATRIX(TUTTI_F32, 3, 2, 0, 0, 0, 0, 0, 0), *zero = SCALAR(TUTTI_I64, 0);
    tutti_tensor *value = fetch(noise, FEEDS(FEED(x, input), FEED(tutti__random_counter(g), zero)));
    CHECK_INT(tutti_tensor_count(value), 6);
    tutti_tensor_release(value);
    tutti_tensor_release(input);
    tutti_tensor_release(zero);
    tutti_random_normal(g, 0, 1, TUTTI_TYPE(TUTTI_F32, TUTTI_ANY));
    check_mistake(g, TUTTI_INVALID, "give it as .like");
}

TUTTI_TEST(random_shuffle_permutes_rows)
{
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_range(g, 0, 50, 1, TUTTI_I64);
    tutti_sym shuffled = tutti_random_shuffle(x);
    tutti_tensor *value = draw_at(shuffled, 0), *next = draw_at(shuffled, 1);
    bool seen[50] = {false};
    int moved = 0;
    for (int64_t i = 0; i < 50; i++) {
        int64_t at = tutti_tensor_get_int(value, i);
        CHECK(at >= 0 && at < 50 && !seen[at]);
        seen[at] = true;
        moved += at != i;
    }
    CHECK(moved > 30);
    CHECK(!tutti_tensor_same(value, next));
    tutti_tensor_release(value);
    tutti_tensor_release(next);
    tutti_graph_destroy(g);
}

TUTTI_TEST(random_categorical_follows_its_logits)
{
    tutti_graph *g = new_graph();
    tutti_sym logits = tutti_placeholder(g, TUTTI_F32, 2, 3);
    tutti_sym drawn = tutti_random_categorical(logits, 4000);
    tutti_sym counter = tutti__random_counter(g);
    tutti_tensor *zero = SCALAR(TUTTI_I64, 0), *none = NULL;
    tutti_tensor *given = MATRIX(TUTTI_F32, 2, 3, log(0.2), log(0.5), log(0.3), 4, -HUGE_VAL, 4);
    tutti_tensor *value = fetch(drawn, FEEDS(FEED(logits, given), FEED(counter, zero)));
    int counts[2][3] = {0};
    for (int64_t i = 0; i < 8000; i++)
        counts[i / 4000][tutti_tensor_get_int(value, i)]++;
    CHECK_NEAR(counts[0][0], 800, 100);
    CHECK_NEAR(counts[0][1], 2000, 130);
    CHECK_NEAR(counts[1][0], 2000, 130);
    CHECK_INT(counts[1][1], 0);
    tutti_tensor_release(value);
    tutti_tensor_set(given, 4, (double)NAN);
    CHECK_STATUS(try_fetch(drawn, FEEDS(FEED(logits, given), FEED(counter, zero)), &none),
                 TUTTI_OUT_OF_RANGE);
    CHECK_CONTAINS(tutti_error_message(), "logit [1,1] is nan");
    tutti_tensor_release(given);
    tutti_tensor_release(zero);
    tutti_graph_destroy(g);
}
