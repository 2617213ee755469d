/* Transposes that cancel across element-wise operators. */
#include "passes/testing.h"

extern const tutti_pass tutti_pass_layout, tutti_pass_simplify;

static int check(tutti_graph *graph, const char *before, const char *after)
{
    int changes = tutti__test_pass(&tutti_pass_layout, NULL, graph, before, after);
    tutti_graph_destroy(graph);
    return changes;
}

/* NHWC to NCHW, work, and back. */
TUTTI_TEST(layout_cancels_across_one_operator)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 2, 3, 4, 5));
    tutti__test_result(tutti_transpose(tutti_relu(tutti_transpose(x, 0, 3, 1, 2)), 0, 2, 3, 1));
    CHECK_INT(check(g, "return transpose(relu(transpose(p0){order=[0,3,1,2]})){order=[0,2,3,1]}",
                    "return relu(p0)"),
              1);
}

TUTTI_TEST(layout_cancels_across_a_tree)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3, 4));
    tutti_sym y = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 3, 4));
    tutti_sym sum = tutti_add(tutti_exp(tutti_transpose(x)),
                              tutti_mul(tutti_transpose(y), tutti_scalar(g, TUTTI_F32, 2)));
    tutti__test_result(tutti_transpose(sum));
    check(g, NULL, "return add(exp(p0), mul(p1, 2))");
}

/* A bias along one axis is reshaped, not moved. */
TUTTI_TEST(layout_turns_small_operands_for_nothing)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 2, 4, 5, 3));
    tutti_sym bias = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 3, 1, 1));
    tutti_sym y = tutti_add(tutti_transpose(x, 0, 3, 1, 2), bias);
    tutti__test_result(tutti_transpose(y, 0, 2, 3, 1));
    check(g, NULL, "return add(p0, reshape(p1){dims=[1,1,1,3]})");
}

/* One transpose is gone, one has come: nothing is gained. */
TUTTI_TEST(layout_leaves_what_would_only_move)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3, 4));
    tutti_sym y = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 3, 4));
    tutti__test_result(tutti_transpose(tutti_add(x, y)));
    tutti__test_result(tutti_transpose(tutti_neg(x)));
    CHECK_INT(check(g, NULL, "return transpose(add(p0, p1)), transpose(neg(p0))"), 0);
}

/* Of two full operands one comes transposed: two transposes become one. */
TUTTI_TEST(layout_adds_a_transpose_where_it_saves_two)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3, 4));
    tutti_sym y = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 4, 3));
    tutti__test_result(tutti_transpose(tutti_add(tutti_transpose(x), y)));
    CHECK_INT(check(g, NULL, "return add(p0, transpose(p1){order=[1,0]})"), 1);
}

/* The inner value is wanted as it is, so the work would be done twice. */
TUTTI_TEST(layout_leaves_shared_values)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3, 4));
    tutti_sym y = tutti_exp(tutti_transpose(x));
    tutti__test_result(tutti_transpose(y));
    tutti__test_result(y);
    CHECK_INT(check(g, NULL, "t0 = exp(transpose(p0))\nreturn transpose(t0), t0"), 0);
}

TUTTI_TEST(layout_leaves_transposes_that_are_no_inverses)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 2, 3, 4));
    tutti__test_result(tutti_transpose(tutti_exp(tutti_transpose(x, 1, 2, 0)), 1, 2, 0));
    CHECK_INT(check(g, NULL, NULL), 0);
}

/* A chain of blocks, each with its transposes: all of them go in one run. */
TUTTI_TEST(layout_cancels_in_a_chain)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 2, 3, 4));
    tutti_sym y = x;
    for (int i = 0; i < 3; i++)
        y = tutti_transpose(tutti_tanh(tutti_transpose(y, 2, 0, 1)), 1, 2, 0);
    tutti__test_result(y);
    CHECK_INT(check(g, NULL, "return tanh(tanh(tanh(p0)))"), 3);
}
