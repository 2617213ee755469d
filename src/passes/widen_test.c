/* widen_test.c: operators on 16 bits without kernels of their own are computed in 32 bits. */
#include <string.h>

#include "passes/testing.h"

extern const tutti_pass tutti_pass_static_like, tutti_pass_simplify, tutti_pass_cse,
    tutti_pass_widen, tutti_pass_patterns;

static tutti_graph *g;

static int count(const char *op, tutti_dtype dtype)
{
    int found = 0;
    for (size_t n = 0; n < g->nodes.count; n++)
        found += tutti__is(g->nodes.data[n], op) && g->nodes.data[n]->types[0].dtype == dtype;
    return found;
}

static int count_pattern(const char *pattern)
{
    int found = 0;
    for (size_t n = 0; n < g->nodes.count; n++)
        found += tutti__is(g->nodes.data[n], "fused") &&
                 strcmp(tutti__str(g->nodes.data[n], "pattern"), pattern) == 0;
    return found;
}

static tutti_sym narrow(tutti_sym x)
{
    return tutti_cast(x, TUTTI_BF16);
}

/* A layer and its gradients, weights of 32 bits: nothing in between is rounded, and it finds the
 * kernels of the whole. */
TUTTI_TEST(widen_takes_a_layer_along)
{
    static const tutti_pass *const passes[] = {&tutti_pass_static_like, &tutti_pass_simplify,
                                               &tutti_pass_cse, &tutti_pass_widen,
                                               &tutti_pass_patterns};
    g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 2, 6, 6, 1));
    tutti_sym kernel = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 3, 3, 1, 8));
    tutti_sym bias = tutti__test_input(g, 2, TUTTI_TYPE(TUTTI_F32, 8));
    tutti_sym grad = tutti__test_input(g, 3, TUTTI_TYPE(TUTTI_F32, 2, 2, 2, 8));
    tutti_sym y = tutti_nn_conv2d(narrow(x), narrow(kernel));
    y = tutti_nn_max_pool2d(tutti_relu(tutti_add(y, narrow(bias))));
    tutti_sym loss = tutti_sum(tutti_mul(tutti_cast(y, TUTTI_F32), grad));
    tutti_grad grads[2];
    tutti_gradients(loss, 2, (tutti_sym[]){kernel, bias}, grads);
    tutti__test_result(loss);
    tutti__test_result(grads[0].value);
    tutti__test_result(grads[1].value);
    tutti__test_passes(5, passes, tutti__test_on_cpu(), g, NULL, NULL, 0.05);
    CHECK_INT(count("cast", TUTTI_BF16) + count("cast", TUTTI_F32), 0);
    CHECK_INT(count_pattern("conv2d_relu_pool"), 1);
    CHECK_INT(count_pattern("conv2d_pool_gradient"), 1);
    tutti_graph_destroy(g);
}

/* How many nodes allow products of bf16. */
static int count_rounded(void)
{
    int found = 0;
    for (size_t n = 0; n < g->nodes.count; n++) {
        const tutti_node *node = g->nodes.data[n];
        found += tutti_attr_find(node->attrs, node->attr_count, "products") != NULL &&
                 strcmp(tutti__str(node, "products"), "bf16") == 0;
    }
    return found;
}

/* Between others of 16 bits it is widened and rounded once; what they share is widened once. */
TUTTI_TEST(widen_rounds_at_the_edges)
{
    g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_BF16, 2, 4, 4, 3));
    tutti_sym kernel = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_BF16, 2, 2, 3, 3));
    tutti__test_result(tutti_relu(tutti_nn_conv2d(x, kernel)));
    tutti__test_result(tutti_nn_conv2d(x, tutti_neg(kernel)));
    tutti__test_passes(1, (const tutti_pass *[]){&tutti_pass_widen}, tutti__test_on_cpu(), g, NULL,
                       NULL, 0.02);
    CHECK_INT(count("conv2d", TUTTI_F32), 2);
    CHECK_INT(count_rounded(), 2);
    CHECK_INT(count("cast", TUTTI_F32), 3); /* x, the kernel and the turned one */
    CHECK_INT(count("cast", TUTTI_BF16), 2);
    CHECK_INT(count("relu", TUTTI_BF16), 1); /* nobody wants it in 32 bits */
    tutti_graph_destroy(g);
}

/* Recurrent networks and their gradients stay in 32 bits but for what they multiply. */
TUTTI_TEST(widen_lets_recurrent_networks_multiply_16_bits)
{
    g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3, 2, 4));
    tutti_sym h = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 3, 8));
    tutti_sym kernel = tutti__test_input(g, 2, TUTTI_TYPE(TUTTI_F32, 4, 24));
    tutti_sym recurrent = tutti__test_input(g, 3, TUTTI_TYPE(TUTTI_F32, 8, 24));
    tutti_sym bias = tutti__test_input(g, 4, TUTTI_TYPE(TUTTI_F32, 2, 24));
    tutti_sym y =
        tutti_nn_gru(narrow(x), narrow(h), narrow(kernel), narrow(recurrent), narrow(bias));
    tutti_sym loss = tutti_sum(tutti_cast(y, TUTTI_F32));
    tutti_grad grad;
    tutti_gradients(loss, 1, &kernel, &grad);
    tutti__test_result(loss);
    tutti__test_result(grad.value);
    tutti__test_passes(1, (const tutti_pass *[]){&tutti_pass_widen}, tutti__test_on_cpu(), g, NULL,
                       NULL, 0.05);
    CHECK_INT(count("gru", TUTTI_F32), 1);
    CHECK_INT(count("gru_backward", TUTTI_F32), 1);
    CHECK_INT(count_rounded(), 2);
    tutti_graph_destroy(g);
}

/* What has a kernel of its own stays, and so does rounding that somebody asked for. */
TUTTI_TEST(widen_leaves_others)
{
    g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 4, 8));
    tutti__test_result(tutti_cast(tutti_tanh(narrow(x)), TUTTI_F32));
    tutti__test_result(tutti_cast(narrow(x), TUTTI_F32));
    CHECK_INT(tutti__test_passes(1, (const tutti_pass *[]){&tutti_pass_widen}, tutti__test_on_cpu(),
                                 g, NULL, NULL, 0),
              0);
    CHECK_INT(count("cast", TUTTI_BF16), 2);
    CHECK_INT(count("cast", TUTTI_F32), 2);
    tutti_graph_destroy(g);
}
