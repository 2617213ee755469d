/* losses_test.c: softmax and the cross-entropies, by hand. */
#include "ops/network/network_test.h"

TUTTI_TEST(softmax_is_stable)
{
    CHECK_OP("softmax", "f32[2,2]{=0,0,1000,1000}", 0, 0.5, 0.5, 0.5, 0.5);
    CHECK_OP("softmax", "f64[3]{=0,0.693147180559945,1.386294361119891}", 0, 1.0 / 7, 2.0 / 7,
             4.0 / 7);
    CHECK_OP("softmax", "f64[2,2]{=0,-inf,1.0986122886681098,5} | axis=0", 0, 0.25, 0, 0.75, 1);
    CHECK_OP("log_softmax", "f64[2]{=-1000,-1000}", 0, -log(2), -log(2));
    CHECK_OP("log_softmax", "f64[2]{=1e17,1e17}", 0, -log(2), -log(2));
    CHECK_OP("softmax", "f64[2]{=1e17,1e17}", 0, 0.5, 0.5);
    CHECK_REFUSES("softmax", "f32[2] | axis=1", TUTTI_INVALID, "axis 1 is outside [-1, 1)");
}

TUTTI_TEST(cross_entropies_of_rows)
{
    /* logits 0, log 2, log 4: probabilities 1/7, 2/7, 4/7 */
    CHECK_OP(
        "sparse_softmax_cross_entropy",
        "f64[2,3]{=0,0.693147180559945,1.386294361119891,0,0.693147180559945,1.386294361119891} "
        "i64[2]{=2,0}",
        0, log(7.0 / 4), log(7));
    CHECK_OP("softmax_cross_entropy",
             "f64[1,3]{=0,0.693147180559945,1.386294361119891} f64[1,3]{=0.5,0,0.5}", 0,
             (log(7.0 / 4) + log(7)) / 2);
    CHECK_OP("softmax_cross_entropy", "f64[1,2]{=0,-inf} f64[1,2]{=1,0}", 0, 0);
    CHECK_OP("sparse_softmax_cross_entropy_backward",
             "f64[1,3]{=0,0.693147180559945,1.386294361119891} i32[1]{=1} f64[1]{=7}", 0, 1, -5, 4);
}

/* As softmax, whose gradient it is: no share of an infinite whole is known. */
TUTTI_TEST(gradient_of_rows_with_infinite_logits_is_nan)
{
    tutti_tensor *y = NULL;
    CHECK_OK(tutti__test_op("sparse_softmax_cross_entropy_backward",
                            "f32[1,3]{=1,inf,-inf} i32[1]{=0}", &y));
    for (int i = 0; i < 3; i++)
        CHECK(isnan(tutti_tensor_get(y, i)));
    tutti_tensor_release(y);
}

TUTTI_TEST(sparse_cross_entropy_names_a_bad_label)
{
    const char *message = "label 3 in row 1 is none of the 3 classes; labels must be in [0, 3)";
    CHECK_REFUSES("sparse_softmax_cross_entropy", "f32[2,3] i32[2]{=0,3}", TUTTI_OUT_OF_RANGE,
                  message);
    CHECK_REFUSES("sparse_softmax_cross_entropy_backward", "f32[2,3] i32[2]{=0,3} f32[2]",
                  TUTTI_OUT_OF_RANGE, message);
    CHECK_REFUSES("sparse_softmax_cross_entropy", "f32[2,3] i32[2]{=0,-1}", TUTTI_OUT_OF_RANGE,
                  "label -1 in row 1");
    CHECK_REFUSES("sparse_softmax_cross_entropy", "f32[2,3] f32[2]", TUTTI_INVALID,
                  "use tutti_nn_softmax_cross_entropy");
    CHECK_REFUSES("sparse_softmax_cross_entropy", "f32[2,3] i32[3]", TUTTI_INVALID,
                  "labels is i32[3], needs the shape of f32[2]");
}

TUTTI_TEST(sigmoid_cross_entropy_is_stable)
{
    CHECK_OP("sigmoid_cross_entropy", "f32[4]{=0,1000,-1000,1000} f32[4]{=1,1,0,0}", 0, log(2), 0,
             0, 1000);
    CHECK_OP("sigmoid_cross_entropy", "f64[1]{=2} f64[1]{=0.3}", 0,
             -(0.3 * log(1 / (1 + exp(-2))) + 0.7 * log(1 - 1 / (1 + exp(-2)))));
}

static void check_loss(const char *text, double expected)
{
    tutti_tensor *y = NULL;
    CHECK_OK(tutti__test_op("sigmoid_cross_entropy", text, &y));
    double loss = tutti_tensor_get(y, 0);
    CHECK(isnan(expected) ? isnan(loss) : loss == expected);
    tutti_tensor_release(y);
}

/* An infinite logit costs nothing where it is right, and infinitely much elsewhere. */
TUTTI_TEST(sigmoid_cross_entropy_of_infinite_logits)
{
    check_loss("f32[]{=inf} f32[]{=0}", (double)INFINITY);
    check_loss("f32[]{=inf} f32[]{=0.3}", (double)INFINITY);
    check_loss("f32[]{=inf} f32[]{=1}", 0);
    check_loss("f32[]{=-inf} f32[]{=0}", 0);
    check_loss("f32[]{=-inf} f32[]{=0.3}", (double)INFINITY);
    check_loss("f32[]{=-inf} f32[]{=1}", (double)INFINITY);
    check_loss("f32[]{=nan} f32[]{=0}", (double)NAN);
    check_loss("f32[]{=nan} f32[]{=1}", (double)NAN);
    check_loss("f32[]{=inf} f32[]{=nan}", (double)NAN);
}

TUTTI_TEST(losses_build_in_the_order_their_names_promise)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym logits = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 10);
    tutti_sym labels = tutti_placeholder(g, TUTTI_I64, TUTTI_ANY);
    tutti_sym loss = tutti_nn_sparse_cross_entropy(labels, logits);
    CHECK_OK(tutti_graph_check(g));
    CHECK_INT(tutti_sym_type(loss).rank, 1);
    tutti_sym other = tutti_nn_softmax_cross_entropy(tutti_softmax(logits), logits);
    CHECK_INT(tutti_sym_type(other).dims[0], TUTTI_ANY);
    tutti_graph_destroy(g);
}

TUTTI_TEST(embedding_lookup_gives_rows_and_a_sparse_gradient)
{
    tutti_graph *g = tutti__test_graph();
    tutti_tensor *tensor = NULL;
    CHECK_OK(
        tutti_tensor_from(TUTTI_F32, 2, (int64_t[]){3, 2}, (float[]){1, 2, 3, 4, 5, 6}, &tensor));
    tutti_sym table = tutti_constant(g, tensor), ids = tutti_ints(g, 2, 0, 2);
    tutti_sym rows = tutti_embedding_lookup(table, ids);
    CHECK_SYM(rows, 5, 6, 1, 2, 5, 6);
    tutti_grad grad = {0};
    tutti_gradients(tutti_sum(rows), 1, &table, &grad);
    CHECK(tutti_sym_ok(grad.rows));
    CHECK_SYM(tutti_grad_dense(grad, table), 1, 1, 0, 0, 2, 2);
    tutti_tensor_release(tensor);
    tutti_graph_destroy(g);
}
