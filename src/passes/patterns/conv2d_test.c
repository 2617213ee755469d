/* conv2d_test.c: convolutions with what follows them become one node, and compute the same. */
#include <string.h>

#include "passes/testing.h"

extern const tutti_pass tutti_pass_static_like, tutti_pass_simplify, tutti_pass_cse,
    tutti_pass_patterns;

static tutti_graph *g;
static tutti_sym x, kernel, bias, grad;

static void start(void)
{
    g = tutti__test_graph();
    x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 2, 6, 6, 1));
    kernel = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 3, 3, 1, 8));
    bias = tutti__test_input(g, 2, TUTTI_TYPE(TUTTI_F32, 8));
    grad = tutti__test_input(g, 3, TUTTI_TYPE(TUTTI_F32, 2, 2, 2, 8));
}

static int check(const char *after)
{
    const tutti_pass *passes[] = {&tutti_pass_patterns};
    int changes = tutti__test_passes(1, passes, tutti__test_on_cpu(), g, NULL, after, 1e-5);
    tutti_graph_destroy(g);
    return changes;
}

static int count_pattern(const char *pattern)
{
    int count = 0;
    for (size_t n = 0; n < g->nodes.count; n++)
        count += tutti__is(g->nodes.data[n], "fused") &&
                 strcmp(tutti__str(g->nodes.data[n], "pattern"), pattern) == 0;
    return count;
}

TUTTI_TEST(pattern_conv2d_bias_activation)
{
    start();
    tutti__test_result(tutti_relu(tutti_add(tutti_nn_conv2d(x, kernel), bias)));
    CHECK_INT(check("return fused(p0, p1, p2){body=(return relu(add(conv2d(p0, p1), p2))) "
                    "pattern=\"conv2d_bias_activation\"}"),
              1);
}

/* Work that goes on element by element takes the bias along; a sum that is wanted stays. */
TUTTI_TEST(pattern_conv2d_bias_leaves_others)
{
    start();
    tutti__test_result(tutti_tanh(tutti_add(tutti_nn_conv2d(x, kernel), bias)));
    CHECK_INT(check("return tanh(add(conv2d(p0, p1), p2))"), 0);
    start();
    tutti_sym c = tutti_nn_conv2d(x, kernel);
    tutti__test_result(c);
    tutti__test_result(tutti_relu(tutti_add(c, bias)));
    CHECK_INT(check(NULL), 0);
}

/* A map of one pixel of one example has the shape of a bias, and is none. */
TUTTI_TEST(pattern_conv2d_bias_is_no_matter_of_the_number_of_rows)
{
    for (int rows = 1; rows < 3; rows++) {
        start();
        tutti_sym pixel = tutti__test_input(g, 4, TUTTI_TYPE(TUTTI_F32, rows, 3, 3, 1)),
                  residual = tutti__test_input(g, 5, TUTTI_TYPE(TUTTI_F32, rows, 1, 1, 8));
        tutti__test_result(tutti_relu(tutti_add(tutti_nn_conv2d(pixel, kernel), residual)));
        CHECK_INT(check(NULL), 0);
    }
}

static tutti_sym constant(int rank, const int64_t *dims)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, rank, dims, &tensor));
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        tutti_tensor_set(tensor, i, (double)(i % 7) / 4 - 0.5);
    tutti_sym sym = tutti_constant(g, tensor);
    tutti_tensor_release(tensor);
    return sym;
}

/* Of constant kernels: with residual and activations, each of two layers that meet for itself. */
TUTTI_TEST(pattern_conv2d_chain)
{
    start();
    tutti_sym a = constant(4, (int64_t[]){1, 1, 1, 8}), b = constant(4, (int64_t[]){1, 1, 1, 8});
    tutti_sym left = tutti_add(tutti_nn_conv2d(x, a), bias);
    tutti_sym right = tutti_relu6(tutti_add(tutti_nn_conv2d(x, b), bias));
    tutti__test_result(tutti_relu(tutti_add(left, right)));
    CHECK_INT(count_pattern("conv2d_chain"), 0);
    tutti__test_rewrite(&tutti_pass_patterns, tutti__test_on_cpu(), g);
    CHECK_INT(count_pattern("conv2d_chain"), 2);
    CHECK_INT((int)g->nodes.count, 8); /* four inputs, two kernels, two layers */
    tutti_graph_destroy(g);
    start();
    tutti__test_result(
        tutti_silu(tutti_nn_conv2d(x, constant(4, (int64_t[]){1, 1, 1, 2}), .strides = {4, 4})));
    CHECK_INT(check("return fused(p0, constant(){value=f32[1,1,1,2](-0.5 -0.25)}){body=(return "
                    "silu(conv2d(p0, p1){strides=[4,4]})) pattern=\"conv2d_chain\"}"),
              1);
}

/* A sum that is wanted elsewhere ends the chain. */
TUTTI_TEST(pattern_conv2d_chain_leaves_what_others_use)
{
    start();
    tutti_sym y = tutti_add(tutti_nn_conv2d(x, constant(4, (int64_t[]){3, 3, 1, 8})), bias);
    tutti__test_result(tutti_mul(y, tutti_sigmoid(y)));
    CHECK_INT(check(NULL), 1);
}

TUTTI_TEST(pattern_conv2d_relu_pool)
{
    start();
    tutti_sym y = tutti_relu(tutti_add(tutti_nn_conv2d(x, kernel), bias));
    tutti__test_result(tutti_nn_max_pool2d(y));
    CHECK_INT(check("return fused(p0, p1, p2){body=(return max_pool2d(relu(add(conv2d(p0, p1), "
                    "p2)))) pattern=\"conv2d_relu_pool\"}"),
              1);
}

/* The layer with a loss, and gradients of it, after the passes that come before patterns. */
static void train(tutti_sym a, tutti_sym b)
{
    static const tutti_pass *const passes[] = {&tutti_pass_static_like, &tutti_pass_simplify,
                                               &tutti_pass_cse, &tutti_pass_patterns};
    tutti_sym y = tutti_relu(tutti_add(tutti_nn_conv2d(x, kernel), bias));
    tutti_sym loss = tutti_sum(tutti_mul(tutti_nn_max_pool2d(y), grad));
    tutti_grad grads[2];
    tutti_gradients(loss, 2, (tutti_sym[]){a, b}, grads);
    tutti__test_result(loss);
    tutti__test_result(grads[0].value);
    tutti__test_result(grads[1].value);
    tutti__test_passes(4, passes, tutti__test_on_cpu(), g, NULL, NULL, 1e-5);
}

/* A training step: two nodes, of which the first also gives the map. */
TUTTI_TEST(pattern_conv2d_pool_gradient)
{
    start();
    train(kernel, bias);
    CHECK_INT(count_pattern("conv2d_relu_pool"), 1);
    CHECK_INT(count_pattern("conv2d_pool_gradient"), 1);
    tutti_graph_destroy(g);
}

/* The gradient of the input needs the gradient of the map: that stays. */
TUTTI_TEST(pattern_conv2d_pool_gradient_leaves_inner_layers)
{
    start();
    train(kernel, x);
    CHECK_INT(count_pattern("conv2d_relu_pool"), 1);
    CHECK_INT(count_pattern("conv2d_pool_gradient"), 0);
    CHECK_INT(count_pattern("relu_pool_gradient"), 1);
    tutti_graph_destroy(g);
}
