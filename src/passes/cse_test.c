/* What is computed twice is computed once. */
#include "passes/testing.h"

extern const tutti_pass tutti_pass_cse;

TUTTI_TEST(cse_merges_chains)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3));
    tutti_sym a = tutti_exp(tutti_neg(x)), b = tutti_exp(tutti_neg(x));
    tutti__test_result(tutti_sub(a, b));
    CHECK_INT(tutti__test_pass(&tutti_pass_cse, NULL, g, "return sub(exp(neg(p0)), exp(neg(p0)))",
                               "t0 = exp(neg(p0))\nreturn sub(t0, t0)"),
              2);
    tutti_graph_destroy(g);
}

TUTTI_TEST(cse_knows_which_operators_commute)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3));
    tutti_sym y = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 3));
    tutti__test_result(tutti_mul(x, y));
    tutti__test_result(tutti_mul(y, x));
    tutti__test_result(tutti_sub(x, y));
    tutti__test_result(tutti_sub(y, x));
    CHECK_INT(tutti__test_pass(&tutti_pass_cse, NULL, g, NULL,
                               "t0 = mul(p0, p1)\nreturn t0, t0, sub(p0, p1), sub(p1, p0)"),
              1);
    tutti_graph_destroy(g);
}

TUTTI_TEST(cse_looks_at_attributes)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3, 3));
    tutti__test_result(tutti_sum(x, .axes = TUTTI_AXES(0)));
    tutti__test_result(tutti_sum(x, .axes = TUTTI_AXES(1)));
    tutti__test_result(tutti_sum(x, .axes = TUTTI_AXES(0)));
    CHECK_INT(tutti__test_pass(&tutti_pass_cse, NULL, g, NULL,
                               "t0 = sum(p0){axes=[0]}\nreturn t0, sum(p0){axes=[1]}, t0"),
              1);
    tutti_graph_destroy(g);
}

TUTTI_TEST(cse_merges_constants_by_value)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3));
    tutti_sym a = tutti_mul(x, tutti_scalar(g, TUTTI_F32, 0.5));
    tutti_sym b = tutti_mul(x, tutti_scalar(g, TUTTI_F32, 0.5));
    tutti_sym c = tutti_mul(x, tutti_scalar(g, TUTTI_F32, 0.25));
    tutti__test_result(tutti_add(tutti_add(a, b), c));
    CHECK_INT(tutti__test_pass(&tutti_pass_cse, NULL, g, NULL,
                               "t0 = mul(p0, 0.5)\nreturn add(add(t0, t0), mul(p0, 0.25))"),
              2);
    tutti_graph_destroy(g);
}

TUTTI_TEST(cse_respects_device_wishes)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3));
    TUTTI_WITH_DEVICE(g, "/cpu:0") {
        tutti__test_result(tutti_exp(x));
    }
    TUTTI_WITH_DEVICE(g, "/far:0") {
        tutti__test_result(tutti_exp(x));
    }
    CHECK_INT(tutti__test_pass(&tutti_pass_cse, NULL, g, NULL, "return exp(p0), exp(p0)"), 0);
    tutti_graph_destroy(g);
}

TUTTI_TEST(cse_several_outputs)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 4));
    tutti_sym a = tutti_split_into(x, 0, 2), b = tutti_split_into(x, 0, 2);
    tutti__test_result(tutti_sub(tutti_sym_output(a, 0), tutti_sym_output(b, 1)));
    CHECK_INT(tutti__test_pass(&tutti_pass_cse, NULL, g, NULL,
                               "t0 = split(p0){outputs=2}\nreturn sub(t0:0, t0:1)"),
              1);
    tutti_graph_destroy(g);
}

/* Two reads before the update are one; the read that follows it is another. */
TUTTI_TEST(cse_reads_with_the_same_control_edges)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3)), after = TUTTI_NO_SYM;
    tutti_sym v = tutti_variable(g, tutti_zeros(3), .name = "v");
    tutti_sym first = tutti_read(v), second = tutti_read(v);
    TUTTI_WITH_CONTROL(g, tutti_assign_add(v, x)) {
        after = tutti_read(v);
    }
    tutti__test_result(tutti_add(tutti_add(first, second), after));
    CHECK_INT(tutti__test_rewrite(&tutti_pass_cse, NULL, g), 1);
    CHECK_STR(tutti__test_text(g),
              "t0 = read(v0)\nreturn add(add(t0, t0), read(v0) ^assign_add(v0, p0))");
    tutti_graph_destroy(g);
}

TUTTI_TEST(cse_never_merges_effects)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3));
    tutti_sym v = tutti_variable(g, tutti_zeros(3), .name = "v");
    tutti__test_result(tutti_assign_add(v, x));
    tutti__test_result(tutti_assign_add(v, x));
    tutti__test_result(tutti_print(x, "x"));
    tutti__test_result(tutti_print(x, "x"));
    CHECK_INT(tutti__test_rewrite(&tutti_pass_cse, NULL, g), 0);
    tutti_graph_destroy(g);
}

/* Two random nodes differ even with one seed. */
TUTTI_TEST(cse_keeps_random_nodes_apart)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym counter = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_I64));
    for (int i = 0; i < 2; i++)
        tutti__test_result(
            tutti_random_uniform(g, 0, 1, TUTTI_TYPE(TUTTI_F32, 2), .counter = counter));
    CHECK_INT(tutti__test_pass(&tutti_pass_cse, NULL, g, NULL, NULL), 0);
    tutti_graph_destroy(g);
}

static void below_nine(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                       void *context)
{
    ret[0] = tutti_less(args[0], tutti_scalar(body, TUTTI_F32, 9));
}

static void square_and_add(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                           void *context)
{
    tutti_sym x = *(const bool *)context ? tutti_print(args[0], "x") : args[0];
    ret[0] = tutti_add(tutti_square(x), args[1]);
}

/* A loop and its gradient: rewrites, and how many forward loops stay beside the history. */
static int merged_loops(bool prints, int *ret_loops)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32)), y, dx;
    tutti_sym a = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32));
    tutti_while(below_nine, square_and_add, &prints, TUTTI_SYMS(x), TUTTI_SYMS(a), &y);
    dx = tutti_gradient(y, x);
    tutti__test_result(y);
    tutti__test_result(dx);
    int changes = tutti__test_rewrite(&tutti_pass_cse, NULL, g);
    *ret_loops = -1; /* the loop of the gradient, backwards */
    for (size_t n = 0; n < g->nodes.count; n++)
        *ret_loops += tutti__is(g->nodes.data[n], "while");
    tutti_graph_destroy(g);
    return changes;
}

TUTTI_TEST(cse_a_loop_is_the_start_of_its_history)
{
    int loops;
    CHECK_INT(merged_loops(false, &loops), 1);
    CHECK_INT(loops, 0);
}

TUTTI_TEST(cse_keeps_loops_with_effects)
{
    int loops;
    CHECK_INT(merged_loops(true, &loops), 0);
    CHECK_INT(loops, 1);
}

TUTTI_TEST(cse_random_graphs)
{
    int changes = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        tutti_graph *g = tutti__test_random_graph(seed, 60);
        changes += tutti__test_pass(&tutti_pass_cse, NULL, g, NULL, NULL);
        CHECK_INT(tutti__test_pass(&tutti_pass_cse, NULL, g, NULL, NULL), 0); /* all in one run */
        tutti_graph_destroy(g);
    }
    CHECK(changes > 100);
}
