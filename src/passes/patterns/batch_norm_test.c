/* batch_norm_test.c: batch norm with residual and activation is one node, forward and backward. */
#include <string.h>

#include "passes/testing.h"

extern const tutti_pass tutti_pass_static_like, tutti_pass_simplify, tutti_pass_cse,
    tutti_pass_patterns;

static const tutti_pass *const passes[] = {&tutti_pass_static_like, &tutti_pass_simplify,
                                           &tutti_pass_cse, &tutti_pass_patterns};

static tutti_graph *g;
static tutti_sym x, scale, offset, weights;

static void start(void)
{
    g = tutti__test_graph();
    x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 2, 3, 3, 5));
    scale = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 5));
    offset = tutti__test_input(g, 2, TUTTI_TYPE(TUTTI_F32, 5));
    weights = tutti__test_input(g, 3, TUTTI_TYPE(TUTTI_F32, 2, 3, 3, 5));
}

static int count_pattern(const char *pattern)
{
    int count = 0;
    for (size_t n = 0; n < g->nodes.count; n++)
        count += tutti__is(g->nodes.data[n], "fused") &&
                 strcmp(tutti__str(g->nodes.data[n], "pattern"), pattern) == 0;
    return count;
}

static void train(tutti_sym y)
{
    tutti_sym loss = tutti_sum(tutti_mul(y, weights));
    tutti_grad grads[3];
    tutti_gradients(loss, 3, (tutti_sym[]){x, scale, offset}, grads);
    tutti__test_result(loss);
    for (int i = 0; i < 3; i++)
        tutti__test_result(grads[i].value);
    tutti__test_passes(4, passes, tutti__test_on_cpu(), g, NULL, NULL, 1e-5);
}

TUTTI_TEST(pattern_batch_norm_activation)
{
    start();
    tutti_sym norm = tutti_nn_batch_norm(x, scale, offset);
    tutti__test_result(tutti_relu(norm));
    tutti__test_passes(4, passes, tutti__test_on_cpu(), g, NULL,
                       "return fused(p0, p1, p2){body=(return relu(batch_norm(p0, p1, p2):0)) "
                       "pattern=\"batch_norm_activation\"}",
                       1e-5);
    tutti_graph_destroy(g);
}

/* A step with moving averages, which use the mean. */
TUTTI_TEST(pattern_batch_norm_gradient)
{
    start();
    tutti_sym norm = tutti_nn_batch_norm(x, scale, offset);
    tutti__test_result(tutti_mul(tutti_sym_output(norm, 1), 0.1));
    train(tutti_relu(norm));
    CHECK_INT(count_pattern("batch_norm_activation"), 1);
    CHECK_INT(count_pattern("batch_norm_gradient"), 1);
    tutti_graph_destroy(g);
}

/* Blocks of a residual network: two norms meet, and y is used by two. */
TUTTI_TEST(pattern_batch_norm_in_blocks)
{
    start();
    tutti_sym y = x;
    for (int i = 0; i < 3; i++) {
        tutti_sym a = tutti_relu(tutti_nn_batch_norm(tutti_mul(y, 2), scale, offset));
        tutti_sym b = tutti_nn_batch_norm(tutti_square(a), offset, scale);
        tutti_sym c = i == 1 ? y : tutti_nn_batch_norm(tutti_sin(y), scale, offset);
        y = tutti_relu(tutti_add(c, b));
    }
    train(y);
    CHECK_INT(count_pattern("batch_norm_activation"), 6);
    CHECK_INT(count_pattern("batch_norm_gradient"), 6);
    tutti_graph_destroy(g);
}

/* The value before the activation is wanted; a residual that depends on the norm. */
TUTTI_TEST(pattern_batch_norm_leaves_others)
{
    start();
    tutti_sym norm = tutti_nn_batch_norm(x, scale, offset);
    tutti__test_result(tutti_relu(norm));
    tutti__test_result(tutti_neg(norm));
    tutti_sym other = tutti_nn_batch_norm(weights, scale, offset);
    tutti_sym later = tutti_mul(weights, tutti_sym_output(other, 1));
    tutti__test_result(tutti_relu(tutti_add(other, later)));
    tutti__test_passes(4, passes, tutti__test_on_cpu(), g, NULL, NULL, 1e-5);
    CHECK_INT(count_pattern("batch_norm_activation"), 0);
    tutti_graph_destroy(g);
}
