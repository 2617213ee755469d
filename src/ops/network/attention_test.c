/* attention_test.c: attention against softmax(scale q k^T + mask) v written out. */
#include "ops/network/network_test.h"

/* The same by matrices. `mask` may be none. */
static tutti_sym plain(tutti_sym q, tutti_sym k, tutti_sym v, tutti_sym mask, double scale)
{
    tutti_sym scores = tutti_mul(tutti_matmul(q, k, .transpose_b = true), scale);
    if (tutti_sym_ok(mask))
        scores = tutti_add(scores, mask);
    return tutti_matmul(tutti_softmax(scores), v);
}

static void check_same(tutti_sym a, tutti_sym b)
{
    tutti_tensor *x = tutti__test_value(a), *y = tutti__test_value(b);
    CHECK_OK(tutti__tensor_near(x, y, 1e-12, "attention"));
    tutti_tensor_release(x);
    tutti_tensor_release(y);
}

/* 0 where query i sees key j <= first + i, -inf elsewhere. */
static tutti_sym causal_mask(tutti_graph *g, int64_t queries, int64_t keys, int64_t first)
{
    tutti_tensor *tensor = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_F64, 2, (int64_t[]){queries, keys}, &tensor));
    for (int64_t i = 0; i < queries; i++)
        for (int64_t j = 0; j < keys; j++)
            tutti_tensor_set(tensor, i * keys + j, j <= first + i ? 0 : -HUGE_VAL);
    tutti_sym mask = tutti_constant(g, tensor);
    tutti_tensor_release(tensor);
    return mask;
}

TUTTI_TEST(attention_is_the_softmax_of_products)
{
    tutti_graph *g = tutti__test_graph();
    /* more than one tile of keys */
    tutti_sym q = WAVE(g, 0, 2, 3, 5, 4), k = WAVE(g, 1, 2, 3, 150, 4),
              v = WAVE(g, 2, 2, 3, 150, 2);
    tutti_sym y = tutti_nn_attention(q, k, v);
    check_same(y, plain(q, k, v, TUTTI_NO_SYM, 0.5));
    tutti_sym scores = tutti_mul(tutti_matmul(q, k, .transpose_b = true), 0.5);
    check_same(tutti_sym_output(y, 1), tutti_logsumexp(scores, .axes = TUTTI_AXES(3)));
    tutti_sym mask = WAVE(g, 3, 3, 1, 150);
    check_same(tutti_nn_attention(q, k, v, .mask = mask, .scale = 2), plain(q, k, v, mask, 2));
    tutti_graph_destroy(g);
}

TUTTI_TEST(attention_sees_no_later_keys_when_causal)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym q = WAVE(g, 0, 1, 2, 4, 3), k = WAVE(g, 1, 1, 2, 6, 3), v = WAVE(g, 2, 1, 2, 6, 3);
    check_same(tutti_nn_attention(q, k, v, .causal = true, .scale = 1),
               plain(q, k, v, causal_mask(g, 4, 6, 0), 1));
    check_same(tutti_nn_attention(q, k, v, .causal = true, .scale = 1, .first_query = 2),
               plain(q, k, v, causal_mask(g, 4, 6, 2), 1));
    tutti_graph_destroy(g);
}

/* A query that sees nothing: zeros, and gradients that are finite. */
TUTTI_TEST(attention_bears_a_query_that_sees_nothing)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym q = WAVE(g, 0, 1, 1, 2, 3), k = WAVE(g, 1, 1, 1, 2, 3), v = WAVE(g, 2, 1, 1, 2, 1);
    tutti_sym y = tutti_nn_attention(q, k, v, .causal = true, .first_query = -1);
    double first = 0.6 * sin(2);
    CHECK_SYM(y, 0, first);
    double score = 0;
    for (int i = 0; i < 3; i++)
        score += 0.6 * sin(1.3 * (i + 3)) * 0.6 * sin(1.3 * i + 1) / sqrt(3);
    tutti_tensor *l = tutti__test_value(tutti_sym_output(y, 1));
    CHECK(tutti_tensor_get(l, 0) == -HUGE_VAL);
    CHECK_NEAR(tutti_tensor_get(l, 1), score, 1e-12);
    tutti_tensor_release(l);
    tutti_graph_destroy(g);
}

TUTTI_TEST(attention_gradients_skip_a_query_that_sees_nothing)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym q = WAVE(g, 0, 1, 1, 2, 3), k = WAVE(g, 1, 1, 1, 2, 3), v = WAVE(g, 2, 1, 1, 2, 1);
    tutti_sym y = tutti_nn_attention(q, k, v, .causal = true, .first_query = -1);
    CHECK_SYM(tutti_gradient(tutti_sum(y), v), 1, 0);
    CHECK_SYM(tutti_gradient(tutti_sum(y), q), 0, 0, 0, 0, 0, 0);
    tutti_graph_destroy(g);
}

/* -1e18 at all keys leaves nothing of the scores beside it, in f64. */
TUTTI_TEST(attention_gradients_bear_a_mask_of_large_numbers)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym q = WAVE(g, 0, 1, 1, 5, 4), k = WAVE(g, 1, 1, 1, 70, 4), v = WAVE(g, 2, 1, 1, 70, 2),
              mask = tutti_mul(tutti_ones_like(WAVE(g, 0, 5, 70)), -1e18);
    tutti_sym one = tutti_nn_attention(q, k, v, .mask = mask), two = plain(q, k, v, mask, 0.5);
    tutti_sym inputs[] = {q, k, v, mask};
    for (int i = 0; i < 4; i++) {
        tutti_sym first = tutti_gradient(tutti_sum(tutti_square(one)), inputs[i]),
                  second = tutti_gradient(tutti_sum(tutti_square(two)), inputs[i]);
        check_same(first, second);
        check_same(tutti_gradient(tutti_sum(tutti_square(first)), v),
                   tutti_gradient(tutti_sum(tutti_square(second)), v));
    }
    tutti_graph_destroy(g);
}

TUTTI_TEST(attention_says_what_is_wrong)
{
    CHECK_REFUSES("attention", "f32[2,3,4] f32[2,3,4] f32[2,3,4]", TUTTI_INVALID,
                  "[batch,heads,queries,features]");
    CHECK_REFUSES("attention", "f32[1,2,3,4] f32[1,2,5,3] f32[1,2,5,4]", TUTTI_INVALID,
                  "features of q");
    CHECK_REFUSES("attention", "f32[1,2,3,4] f32[1,2,5,4] f32[1,2,6,4]", TUTTI_INVALID,
                  "keys of k");
    CHECK_REFUSES("attention", "f32[1,2,3,4] f32[1,2,5,4] f32[1,2,5,4] f32[3,4]", TUTTI_INVALID,
                  "mask is f32[3,4], needs to broadcast to f32[1,2,3,5]");
    CHECK_REFUSES("attention", "f32[1,1,1,1] f32[1,1,1,1] f32[1,1,1,1] | scale=-1", TUTTI_INVALID,
                  "scale is -1");
}
