/* dropout_test.c: the mask is random over elements and a function of seed, salt, counter, index. */
#include "ops/network/network_test.h"

enum { COUNT = 4000 };

static tutti_tensor *drop(const char *counter_and_attrs)
{
    char text[120];
    tutti_tensor *result = NULL;
    snprintf(text, sizeof text, "f32[%d]{=1} %s", COUNT, counter_and_attrs);
    CHECK_OK(tutti__test_op("dropout", text, &result));
    return result;
}

static int kept(tutti_tensor *tensor)
{
    int count = 0;
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        count += tutti_tensor_get(tensor, i) != 0;
    return count;
}

/* Elements that are kept in one and not in the other. */
static int differences(tutti_tensor *a, tutti_tensor *b, int shift)
{
    int count = 0;
    for (int64_t i = 0; i + shift < COUNT; i++)
        count += tutti_tensor_get(a, i + shift) != tutti_tensor_get(b, i);
    return count;
}

TUTTI_TEST(dropout_keeps_the_wanted_share_and_scales_it)
{
    tutti_tensor *y = drop("i64[]{=3} | rate=0.25");
    int count = kept(y);
    CHECK(count > 2860 && count < 3140); /* 3000, five standard deviations of 27 */
    for (int64_t i = 0; i < COUNT; i++)
        if (tutti_tensor_get(y, i) != 0)
            CHECK_NEAR(tutti_tensor_get(y, i), 4.0 / 3, 1e-6);
    tutti_tensor_release(y);
    CHECK_OP("dropout", "f32[3]{=1,2,3} i64[]{=9} | rate=0", 0, 1, 2, 3);
}

TUTTI_TEST(dropout_mask_is_a_function_of_seed_salt_counter_and_index)
{
    tutti_tensor *first = drop("i64[]{=3} | seed=1 salt=2"),
                 *same = drop("i64[]{=3} | seed=1 salt=2");
    CHECK_INT(differences(first, same, 0), 0);
    tutti_tensor *others[] = {drop("i64[]{=4} | seed=1 salt=2"), drop("i64[]{=3} | seed=2 salt=2"),
                              drop("i64[]{=3} | seed=1 salt=3")};
    for (size_t i = 0; i < TUTTI_COUNT(others); i++) {
        CHECK(differences(first, others[i], 0) > COUNT / 3);
        tutti_tensor_release(others[i]);
    }
    /* a piece that begins at element 100 draws what the whole draws there */
    tutti_tensor *piece = drop("i64[]{=3} | seed=1 salt=2 global_dims=[4100] start=[100]");
    CHECK_INT(differences(first, piece, 100), 0);
    tutti_tensor_release(piece);
    tutti_tensor_release(first);
    tutti_tensor_release(same);
}

/* Two dropouts of one model, built alike, drop different elements; one node and its gradient drop
 * the same. */
TUTTI_TEST(dropout_nodes_differ_and_gradients_follow)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym counter = tutti_scalar(g, TUTTI_I64, 5), x = WAVE(g, 0.5, 40, 50);
    tutti_sym a = tutti_nn_dropout(x, 0.5, .counter = counter),
              b = tutti_nn_dropout(x, 0.5, .counter = counter);
    tutti_tensor *of_a = tutti__test_value(a), *of_b = tutti__test_value(b);
    CHECK(!tutti_tensor_same(of_a, of_b));
    tutti_tensor *grad = tutti__test_value(tutti_gradient(tutti_sum(a), x));
    for (int64_t i = 0; i < 2000; i++)
        CHECK_NEAR(tutti_tensor_get(grad, i), tutti_tensor_get(of_a, i) == 0 ? 0 : 2, 0);
    tutti_tensor_release(of_a);
    tutti_tensor_release(of_b);
    tutti_tensor_release(grad);
    tutti_graph_destroy(g);
}

TUTTI_TEST(dropout_says_what_is_wrong)
{
    CHECK_REFUSES("dropout", "f32[3] i64[] | rate=1", TUTTI_INVALID,
                  "rate is 1, needs a number in [0, 1)");
    CHECK_REFUSES("dropout", "f32[3] i64[] | rate=nan", TUTTI_INVALID, "[0, 1)");
    CHECK_REFUSES("dropout", "f32[3] i32[]", TUTTI_INVALID, "counter is i32[]");
    CHECK_REFUSES("dropout", "f32[3] i64[] | global_dims=[4] start=[2]", TUTTI_INVALID,
                  "does not lie in a whole of 4");
}
