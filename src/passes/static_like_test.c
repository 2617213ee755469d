/* Operators that looked at a shape no longer depend on the tensor that has it. */
#include "passes/testing.h"

extern const tutti_pass tutti_pass_static_like;

static void check(tutti_graph *graph, const char *before, const char *after)
{
    CHECK_INT(tutti__test_pass(&tutti_pass_static_like, NULL, graph, before, after), 1);
    tutti_graph_destroy(graph);
}

TUTTI_TEST(static_like_reshapes)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 2, 6));
    tutti_sym like = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_I32, 3, 4));
    tutti__test_result(tutti_reshape_like(x, like));
    check(g, "return reshape_like(p0, p1)", "return reshape(p0){dims=[3,4]}");
}

TUTTI_TEST(static_like_broadcasts)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3, 1));
    tutti_sym like = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 2, 3, 4));
    tutti__test_result(tutti_broadcast_like(x, tutti_exp(like)));
    check(g, "return broadcast_like(p0, exp(p1))", "return broadcast_to(p0){dims=[2,3,4]}");
}

TUTTI_TEST(static_like_fills)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F64, 2, 3));
    tutti__test_result(tutti_zeros_like(x));
    tutti__test_result(tutti_ones_like(tutti_neg(x)));
    int changes = tutti__test_pass(&tutti_pass_static_like, NULL, g,
                                   "return zeros_like(p0), ones_like(neg(p0))",
                                   "return fill(){dims=[2,3] dtype=f64}, "
                                   "fill(){dims=[2,3] value=1 dtype=f64}");
    CHECK_INT(changes, 2);
    tutti_graph_destroy(g);
}

TUTTI_TEST(static_like_keeps_strings)
{
    tutti_graph *g = tutti__test_graph();
    tutti__test_result(tutti_zeros_like(tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_STRING, 2))));
    CHECK_INT(tutti__test_rewrite(&tutti_pass_static_like, NULL, g), 0);
    CHECK_STR(tutti__test_text(g), "return zeros_like(p0)");
    tutti_graph_destroy(g);
}

TUTTI_TEST(static_like_sums)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 2, 3, 4));
    tutti_sym row = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 4));
    tutti_sym column = tutti__test_input(g, 2, TUTTI_TYPE(TUTTI_F32, 3, 1));
    tutti__test_result(tutti_sum_like(x, row));
    tutti__test_result(tutti_sum_like(x, column));
    tutti__test_result(tutti_sum_like(x, x));
    tutti__test_pass(&tutti_pass_static_like, NULL, g,
                     "return sum_like(p0, p1), sum_like(p0, p2), sum_like(p0, p0)",
                     "return sum(p0){axes=[0,1]}, "
                     "reshape(sum(p0){axes=[0,2]}){dims=[3,1]}, p0");
    tutti_graph_destroy(g);
}

TUTTI_TEST(static_like_sum_over_axes_of_one_is_a_reshape)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 1, 3));
    tutti_sym like = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 3));
    tutti__test_result(tutti_sum_like(x, like));
    check(g, "return sum_like(p0, p1)", "return reshape(p0){dims=[3]}");
}

TUTTI_TEST(static_like_pads_instead_of_slice_grad)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3, 3));
    tutti_sym like = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 5, 4));
    tutti__test_result(
        tutti_slice_grad(x, like, .begin = TUTTI_INDEX(-4, 0), .end = TUTTI_INDEX(4, 3)));
    check(g, NULL, "return pad(p0){paddings=[1,1,0,1]}");
}

TUTTI_TEST(static_like_keeps_slice_grad_with_steps)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3));
    tutti_sym like = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 6));
    tutti__test_result(tutti_slice_grad(x, like, .step = TUTTI_INDEX(2)));
    CHECK_INT(tutti__test_pass(&tutti_pass_static_like, NULL, g, NULL,
                               "return slice_grad(p0, p1){step=[2]}"),
              0);
    tutti_graph_destroy(g);
}

TUTTI_TEST(static_like_splits)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 2, 5));
    tutti_sym a = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 2, 3));
    tutti_sym b = tutti__test_input(g, 2, TUTTI_TYPE(TUTTI_F32, 2, 2));
    tutti_sym pieces = tutti_split_like(x, -1, a, b);
    tutti__test_result(tutti_sym_output(pieces, 1));
    tutti__test_result(tutti_sym_output(pieces, 0));
    check(g, "t0 = split_like(p0, p1, p2){axis=-1 outputs=2}\nreturn t0:1, t0:0",
          "t0 = split(p0){axis=1 sizes=[3,2] outputs=2}\nreturn t0:1, t0:0");
}

TUTTI_TEST(static_like_scatters)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym at = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_I64, 2, 1));
    tutti_sym updates = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 2, 3));
    tutti_sym like = tutti__test_input(g, 2, TUTTI_TYPE(TUTTI_F32, 4, 3));
    tutti__test_result(tutti_scatter_nd_like(at, updates, like));
    check(g, NULL, "return scatter_nd(p0, p1){dims=[4,3]}");
}

TUTTI_TEST(static_like_random_draws_the_same_numbers)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym like = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 4, 3));
    tutti_sym counter = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_I64));
    tutti__test_result(
        tutti_random_normal(g, 0, 1, TUTTI_TYPE(TUTTI_F32), .like = like, .counter = counter));
    CHECK_INT(tutti__test_pass(&tutti_pass_static_like, NULL, g, NULL, NULL), 1);
    CHECK_INT(g->results.data[0].node->input_count, 1);
    tutti_graph_destroy(g);
}

TUTTI_TEST(static_like_convolution_gradients)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym kernel = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 2, 2, 1, 3));
    tutti_sym grad = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 1, 2, 2, 3));
    tutti_sym x = tutti__test_input(g, 2, TUTTI_TYPE(TUTTI_F32, 1, 3, 3, 1));
    tutti__test_result(
        tutti_apply_op(g, "conv2d_backward_input", 3, (tutti_sym[]){kernel, grad, x}, 0, NULL));
    tutti__test_result(
        tutti_apply_op(g, "conv2d_backward_kernel", 3, (tutti_sym[]){x, grad, kernel}, 0, NULL));
    tutti__test_pass(&tutti_pass_static_like, NULL, g, NULL,
                     "return conv2d_backward_input(p0, p1){size=[3,3]}, "
                     "conv2d_backward_kernel(p2, p1){size=[2,2]}");
    tutti_graph_destroy(g);
}

/* What was needed only for a shape is pruned, but what it did on the way still happens. */
TUTTI_TEST(static_like_keeps_effects)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3));
    tutti_sym v = tutti_variable(g, tutti_zeros(3), .name = "v");
    tutti_sym update = tutti_assign_add(v, x);
    tutti__test_result(tutti_zeros_like(tutti_exp(update)));
    CHECK_INT(tutti__test_rewrite(&tutti_pass_static_like, NULL, g), 1);
    CHECK_STR(tutti__test_text(g), "return fill(){dims=[3]} ^assign_add(v0, p0)");
    tutti_graph_destroy(g);
}
