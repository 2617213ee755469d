/* reduce_test.c: reductions by hand: values, empty axes, NaNs, ties, messages, gradients. */
#include "ops/network/network_test.h"

TUTTI_TEST(sums_and_means)
{
    CHECK_OP("sum", "f32[2,3]{=1,2,3,4,5,6} | axes=[0]", 0, 5, 7, 9);
    CHECK_OP("sum", "f32[2,3]{=1,2,3,4,5,6} | axes=[-1] keepdims=true", 0, 6, 15);
    CHECK_OP("sum", "i8[2]{=100,100}", 0, -56);
    CHECK_OP("sum", "f32[0]", 0, 0);
    CHECK_OP("mean", "f32[2,2]{=1,2,3,6}", 0, 3);
    CHECK_OP("variance", "f32[4]{=1,2,3,6}", 0, 3.5);
    CHECK_OP("prod", "f32[2,2]{=2,3,4,5} | axes=[1]", 0, 6, 20);
    CHECK_OP("prod", "f32[0]", 0, 1);
    CHECK_OP("prod_except", "f32[4]{=2,0,3,5} | axis=0", 0, 0, 30, 0, 0);
    CHECK_OP("cumsum", "f32[3]{=1,2,3} | axis=0 exclusive=true reverse=true", 0, 5, 3, 0);
    CHECK_OP("norm", "f32[2]{=3,-4}", 0, 5);
    CHECK_OP("norm", "f32[2]{=3,-4} | ord=1", 0, 7);
    CHECK_OP("logsumexp", "f64[2]{=1000,1000}", 0, 1000 + log(2));
    CHECK_OP("any", "bool[2,2]{=0,0,0,1} | axes=[1]", 0, 0, 1);
    CHECK_OP("all", "bool[2,2]{=1,1,0,1} | axes=[1]", 0, 1, 0);
}

/* 1 + 2^-24 + 2^-24 + … in f32 would stay 1: the sum is made in double and rounded once; integers
 * are exact. */
TUTTI_TEST(sums_round_once)
{
    tutti_tensor *y = NULL;
    CHECK_OK(tutti__test_op("sum", "i64[2]{=9007199254740993,0}", &y));
    CHECK_INT(tutti_tensor_get_int(y, 0), INT64_C(9007199254740993));
    tutti_tensor_release(y);
    CHECK_OP("sum", "f32[3]{=16777216,1,1}", 0, 16777218);
    CHECK_OP("sum", "bf16[4]{=256,1,1,2}", 0, 260);
}

TUTTI_TEST(extremes)
{
    CHECK_OP("max", "f32[2,2]{=1,-2,-3,-4} | axes=[1]", 0, 1, -3);
    CHECK_OP("min", "i32[3]{=4,-7,2}", 0, -7);
    CHECK_OP("max", "u8[2,0] | axes=[1]", 0, 0, 0);
    CHECK_OP("min", "i8[2,0] | axes=[1]", 0, 127, 127);
    CHECK_OP("argmax", "f32[4]{=1,3,3,2} | axis=0", 0, 1);
    CHECK_OP("argmin", "f32[2,3]{=1,3,0,5,4,4} | axis=1", 0, 2, 1);
    CHECK_OP("argmax", "f32[4]{=1,nan,3,nan} | axis=0", 0, 1);
    CHECK_OP("argmin", "i64[2]{=9007199254740993,9007199254740992} | axis=0", 0, 1);
    CHECK_OP("top_k", "f32[5]{=1,4,2,4,3} | k=3", 0, 4, 4, 3);
    CHECK_OP("top_k", "f32[5]{=1,4,2,4,3} | k=3", 1, 1, 3, 4);
    CHECK_OP("top_k", "f32[3]{=1,nan,2} | k=2", 1, 1, 2);
    tutti_tensor *y = NULL;
    CHECK_OK(tutti__test_op("max", "f32[3]{=1,nan,2}", &y));
    CHECK(isnan(tutti_tensor_get(y, 0)));
    tutti_tensor_release(y);
    CHECK_OK(tutti__test_op("max", "f32[0]", &y));
    CHECK(tutti_tensor_get(y, 0) == (double)-INFINITY);
    tutti_tensor_release(y);
    CHECK_OK(tutti__test_op("logsumexp", "f32[2]{=-inf,-inf}", &y));
    CHECK(tutti_tensor_get(y, 0) == (double)-INFINITY);
    tutti_tensor_release(y);
}

TUTTI_TEST(reductions_refuse)
{
    CHECK_REFUSES("sum", "f32[2] | axes=[1]", TUTTI_INVALID, "axis 1 is outside [-1, 1)");
    CHECK_REFUSES("sum", "f32[2,2] | axes=[0,-2]", TUTTI_INVALID, "named twice");
    CHECK_REFUSES("sum", "bool[2]", TUTTI_INVALID, "needs floats or integers");
    CHECK_REFUSES("mean", "i32[2]", TUTTI_INVALID, "tutti_cast");
    CHECK_REFUSES("any", "i32[2]", TUTTI_INVALID, "needs bools");
    CHECK_REFUSES("norm", "f32[2] | ord=3", TUTTI_INVALID, "needs 1 or 2");
    CHECK_REFUSES("argmax", "f32[0,2] | axis=0", TUTTI_INVALID, "is empty");
    CHECK_REFUSES("top_k", "f32[2] | k=3", TUTTI_INVALID, "k is 3");
    CHECK_REFUSES("top_k", "f32[] | k=0", TUTTI_INVALID, "scalar");
}

TUTTI_TEST(reduction_builders_take_options)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = WAVE(g, 1, 2, 3, 4);
    CHECK_INT(tutti_sym_type(tutti_mean(x)).rank, 0);
    CHECK_INT(tutti_sym_type(tutti_sum(tutti_sum(x, .axes = TUTTI_AXES(0)))).rank, 0);
    tutti_type type = tutti_sym_type(tutti_max(x, .axes = TUTTI_AXES(0, -1), .keepdims = true));
    CHECK_INT(type.rank, 3);
    CHECK_INT(type.dims[1], 3);
    CHECK_INT(tutti_sym_type(tutti_norm(x, .axes = TUTTI_AXES(1), .ord = 1)).rank, 2);
    CHECK_INT(tutti_sym_type(tutti_argmax(x, -1)).dtype, TUTTI_I64);
    CHECK_INT(tutti_sym_type(tutti_sym_output(tutti_top_k(x, 2), 1)).dtype, TUTTI_I32);
    CHECK_OK(tutti_graph_check(g));
    tutti_graph_destroy(g);
}

static tutti_sym constant(tutti_graph *graph, int count, const double *values)
{
    tutti_tensor *tensor = NULL;
    CHECK_OK(tutti_tensor_from(TUTTI_F64, 1, (int64_t[]){count}, values, &tensor));
    tutti_sym sym = tutti_constant(graph, tensor);
    tutti_tensor_release(tensor);
    return sym;
}

TUTTI_TEST(equal_extremes_share_the_gradient)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = constant(g, 4, (double[]){1, 3, 3, 2});
    CHECK_SYM(tutti_gradient(tutti_max(x), x), 0, 0.5, 0.5, 0);
    CHECK_SYM(tutti_gradient(tutti_min(x), x), 1, 0, 0, 0);
    tutti_graph_destroy(g);
}

TUTTI_TEST(gradients_at_zero)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = constant(g, 3, (double[]){0, 2, 5}), z = constant(g, 2, (double[]){0, 0});
    tutti_sym grad = tutti_gradient(tutti_prod(x), x);
    CHECK_SYM(grad, 10, 0, 0);
    /* d2 prod / dx0 dx1 = x2, d2 prod / dx0 dx2 = x1 */
    CHECK_SYM(tutti_gradient(tutti_slice_axis(grad, 0, 0, 1), x), 0, 5, 2);
    CHECK_SYM(tutti_gradient(tutti_norm(z), z), 0, 0);
    tutti_graph_destroy(g);
}

/* The number of elements of a mean that is known only when it runs. */
TUTTI_TEST(gradients_of_unknown_counts)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, TUTTI_ANY, 2);
    tutti_sym y = tutti_variance(x, .axes = TUTTI_AXES(0));
    tutti_sym grads[] = {tutti_gradient(tutti_mean(x), x),
                         tutti_gradient(tutti_sum(tutti_mean(x, .axes = TUTTI_AXES(2))), x),
                         tutti_gradient(tutti_sum(y), x)};
    CHECK_OK(tutti_graph_check(g));
    tutti_tensor *value = NULL, *results[3];
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 3, (int64_t[]){2, 1, 2}, (float[]){1, 2, 3, 6}, &value));
    tutti_reference_feed feed = {tutti__edge(x), value};
    tutti_edge fetches[] = {tutti__edge(grads[0]), tutti__edge(grads[1]), tutti__edge(grads[2])};
    CHECK_OK(tutti__reference_run(g, 1, &feed, 3, fetches, results));
    tutti__test_numbers(__FILE__, __LINE__, results[0], 4, (double[]){0.25, 0.25, 0.25, 0.25});
    tutti__test_numbers(__FILE__, __LINE__, results[1], 4, (double[]){0.5, 0.5, 0.5, 0.5});
    tutti__test_numbers(__FILE__, __LINE__, results[2], 4, (double[]){-1, -2, 1, 2});
    for (int i = 0; i < 3; i++)
        tutti_tensor_release(results[i]);
    tutti_tensor_release(value);
    tutti_graph_destroy(g);
}
