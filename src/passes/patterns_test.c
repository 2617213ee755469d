/* Sub-graphs that a kernel claims. */
#include "passes/testing.h"

extern const tutti_pass tutti_pass_patterns, tutti_pass_fuse;

static int check(tutti_graph *graph, const char *before, const char *after)
{
    int changes =
        tutti__test_pass(&tutti_pass_patterns, tutti__test_on_cpu(), graph, before, after);
    tutti_graph_destroy(graph);
    return changes;
}

static tutti_graph *g;
static tutti_sym a, b, bias;

static void start(void)
{
    g = tutti__test_graph();
    a = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 4, 8));
    b = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 8, 6));
    bias = tutti__test_input(g, 2, TUTTI_TYPE(TUTTI_F32, 6));
}

TUTTI_TEST(pattern_matmul_bias_relu)
{
    start();
    tutti__test_result(tutti_relu(tutti_add(tutti_matmul(a, b), bias)));
    CHECK_INT(check(g, "return relu(add(matmul(p0, p1), p2))",
                    "return fused(p0, p1, p2){body=(return relu(add(matmul(p0, p1), p2))) "
                    "pattern=\"matmul_bias_activation\"}"),
              1);
}

TUTTI_TEST(pattern_matmul_bias)
{
    start();
    tutti_sym c = tutti__test_input(g, 3, TUTTI_TYPE(TUTTI_F32, 8, 4));
    tutti__test_result(
        tutti_add(tutti_reshape(bias, 1, 6), tutti_matmul(c, b, .transpose_a = true)));
    CHECK_INT(check(g, NULL,
                    "return fused(p3, p1, reshape(p2){dims=[1,6]}){body=(return add(p2, "
                    "matmul(p0, p1){transpose_a=true})) "
                    "pattern=\"matmul_bias_activation\"}"),
              1);
}

/* Layers on layers: each is one node. */
TUTTI_TEST(pattern_matmul_bias_activation_in_a_row)
{
    start();
    tutti_sym x = tutti__test_input(g, 3, TUTTI_TYPE(TUTTI_F32, 4, 4)), y = x;
    tutti_sym c = tutti__test_input(g, 4, TUTTI_TYPE(TUTTI_F32, 4));
    for (int i = 0; i < 5; i++)
        y = tutti_relu(tutti_add(tutti_matmul(y, x), c));
    tutti__test_result(y);
    CHECK_INT(check(g, NULL, NULL), 5);
}

/* A value inside is wanted, the bias is no row, work goes on, the type has no kernel. */
TUTTI_TEST(pattern_matmul_bias_leaves_the_rest)
{
    start();
    tutti_sym product = tutti_matmul(a, b),
              column = tutti__test_input(g, 3, TUTTI_TYPE(TUTTI_F32, 4, 1));
    tutti__test_result(tutti_relu(tutti_add(product, bias)));
    tutti__test_result(product);
    tutti__test_result(tutti_relu(tutti_add(tutti_matmul(a, b), column)));
    tutti__test_result(tutti_tanh(tutti_add(tutti_matmul(a, b), bias)));
    tutti_sym d = tutti__test_input(g, 4, TUTTI_TYPE(TUTTI_F64, 3, 3));
    tutti__test_result(tutti_relu(
        tutti_add(tutti_matmul(d, d), tutti__test_input(g, 5, TUTTI_TYPE(TUTTI_F64, 3)))));
    CHECK_INT(check(g, NULL, NULL), 0);
}

/* In a batch of one row everything is [1, n]; that makes no bias of it. */
TUTTI_TEST(pattern_matmul_bias_is_no_matter_of_the_number_of_rows)
{
    for (int rows = 1; rows < 3; rows++) {
        start();
        tutti_sym x = tutti__test_input(g, 3, TUTTI_TYPE(TUTTI_F32, rows, 8)),
                  residual = tutti__test_input(g, 4, TUTTI_TYPE(TUTTI_F32, rows, 6));
        tutti__test_result(tutti_add(tutti_matmul(x, b), residual));
        tutti__test_result(tutti_relu(tutti_add(residual, tutti_matmul(x, b))));
        CHECK_INT(check(g, NULL, NULL), 0);
        start();
        x = tutti__test_input(g, 3, TUTTI_TYPE(TUTTI_F32, rows, 8));
        tutti__test_result(tutti_add(tutti_matmul(x, b), bias));
        tutti__test_result(tutti_relu(tutti_add(tutti_expand_dims(bias, 0), tutti_matmul(x, b))));
        CHECK_INT(check(g, NULL, NULL), 2);
    }
}

TUTTI_TEST(pattern_only_where_kernels_run)
{
    start();
    tutti__test_result(tutti_relu(tutti_add(tutti_matmul(a, b), bias)));
    CHECK_INT(tutti__test_rewrite(&tutti_pass_patterns, tutti__test_on_whole(), g), 0);
    tutti_graph_destroy(g);
}

/* Patterns take theirs, element-wise fusion what is left. */
TUTTI_TEST(pattern_before_elementwise_fusion)
{
    start();
    const tutti_pass *const passes[] = {&tutti_pass_patterns, &tutti_pass_fuse};
    tutti_sym y = tutti_relu(tutti_add(tutti_matmul(a, b), bias));
    tutti__test_result(tutti_matmul(y, y, .transpose_b = true));
    tutti__test_result(tutti_exp(tutti_neg(y)));
    tutti__test_passes(2, passes, tutti__test_on_cpu(), g, NULL,
                       "t0 = fused(p0, p1, p2){body=(return relu(add(matmul(p0, p1), p2))) "
                       "pattern=\"matmul_bias_activation\"}\n"
                       "return matmul(t0, t0){transpose_b=true}, "
                       "fused(t0){body=(return exp(neg(p0))) pattern=\"elementwise\"}",
                       0);
    tutti_graph_destroy(g);
}

static tutti_sym backward_of(tutti_sym logits, tutti_sym labels, tutti_sym grad)
{
    return tutti_apply_op(g, "sparse_softmax_cross_entropy_backward", 3,
                          ((tutti_sym[]){logits, labels, grad}), 0, NULL);
}

static tutti_sym loss_of(tutti_sym logits, tutti_sym labels)
{
    return tutti_apply_op(g, "sparse_softmax_cross_entropy", 2, ((tutti_sym[]){logits, labels}), 0,
                          NULL);
}

TUTTI_TEST(pattern_loss_and_gradient)
{
    start();
    tutti_sym labels = tutti__test_input(g, 3, TUTTI_TYPE(TUTTI_I64, 4)),
              logits = tutti_matmul(a, b), grad = tutti_fill(g, TUTTI_F32, 0.25, 4);
    tutti__test_result(tutti_mean(loss_of(logits, labels)));
    tutti__test_result(backward_of(logits, labels, grad));
    CHECK_INT(
        check(g, NULL,
              "t0 = fused_checked(matmul(p0, p1), p3, fill(){dims=[4] value=0.25}){body=(return "
              "sparse_softmax_cross_entropy_backward(p0, p1, p2), "
              "sparse_softmax_cross_entropy(p0, p1)) pattern=\"loss_and_gradient\"}\n"
              "return mean(t0:1), t0:0"),
        1);
}

/* The gradient depends on the loss; other labels; no loss beside. */
TUTTI_TEST(pattern_loss_and_gradient_leaves_the_rest)
{
    start();
    tutti_sym labels = tutti__test_input(g, 3, TUTTI_TYPE(TUTTI_I64, 4)),
              others = tutti__test_input(g, 4, TUTTI_TYPE(TUTTI_I64, 4)),
              grad = tutti_fill(g, TUTTI_F32, 0.25, 4), loss = loss_of(a, labels);
    tutti__test_result(loss);
    tutti__test_result(backward_of(a, labels, tutti_square(loss)));
    tutti__test_result(backward_of(a, others, grad));
    tutti__test_result(backward_of(tutti_neg(a), labels, grad));
    CHECK_INT(check(g, NULL, NULL), 0);
}

/* A sum of three products: the second and the third accumulate. */
TUTTI_TEST(pattern_matmul_add)
{
    g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 32, 32)),
              y = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 32, 32)),
              z = tutti__test_input(g, 2, TUTTI_TYPE(TUTTI_F32, 32, 32));
    /* One after the other: C does not say which argument is made first. */
    tutti_sym first = tutti_matmul(x, y), second = tutti_matmul(y, z);
    tutti_sym third = tutti_matmul(z, x, .transpose_b = true);
    tutti__test_result(tutti_transpose(tutti_add(tutti_add(first, second), third)));
    CHECK_INT(check(g, NULL,
                    "return transpose(fused(p2, p0, fused(p1, p2, matmul(p0, p1)){body=(return "
                    "add(p2, matmul(p0, p1))) pattern=\"matmul_add\"}){body=(return add(p2, "
                    "matmul(p0, p1){transpose_b=true})) pattern=\"matmul_add\"})"),
              2);
}

/* What is added to is needed elsewhere, or is better fused with what makes it. */
TUTTI_TEST(pattern_matmul_add_leaves_the_rest)
{
    g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 32, 32));
    tutti_sym first = tutti_matmul(x, x);
    tutti__test_result(first);
    tutti__test_result(tutti_add(first, tutti_matmul(x, x, .transpose_b = true)));
    tutti__test_result(tutti_add(tutti_exp(x), tutti_matmul(x, x, .transpose_a = true)));
    CHECK_INT(check(g, NULL, NULL), 0);
}

/* In a block, with its gradient: one node forward; backward nothing is added. */
TUTTI_TEST(pattern_dropout_add)
{
    start();
    tutti_sym counter = tutti__test_input(g, 3, (tutti_type){.dtype = TUTTI_I64});
    tutti_sym x = tutti_tanh(a);
    tutti_sym y =
        tutti_add(x, tutti_nn_dropout(tutti_square(a), 0.3, .counter = counter, .salt = 5));
    tutti__test_result(y);
    CHECK_INT(check(g, NULL,
                    "return fused(square(p0), p3, tanh(p0)){body=(return add(p2, dropout(p0, "
                    "p1){rate=0.3 salt=5})) pattern=\"dropout_add\"}"),
              1);
    start();
    counter = tutti__test_input(g, 3, (tutti_type){.dtype = TUTTI_I64});
    x = tutti_nn_dropout(a, 0.3, .counter = counter, .salt = 5);
    tutti__test_result(tutti_add(x, a));
    tutti__test_result(tutti_neg(x)); /* is wanted by itself */
    CHECK_INT(check(g, NULL, NULL), 0);
}
