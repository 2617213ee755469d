/* Constants in, constant out. */
#include "passes/testing.h"

extern const tutti_pass tutti_pass_fold;

TUTTI_TEST(fold_computes_constants)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3));
    tutti_sym half = tutti_div(tutti_scalar(g, TUTTI_F32, 3), tutti_scalar(g, TUTTI_F32, 6));
    tutti__test_result(tutti_mul(x, tutti_neg(half)));
    CHECK_INT(tutti__test_pass(&tutti_pass_fold, NULL, g, "return mul(p0, neg(div(3, 6)))",
                               "return mul(p0, -0.5)"),
              2);
    CHECK_INT(g->nodes.count, 3);
    tutti_graph_destroy(g);
}

TUTTI_TEST(fold_keeps_place_of_the_node)
{
    tutti_graph *g = tutti__test_graph();
    TUTTI_WITH_DEVICE(g, "/cpu:0") {
        tutti__test_result(tutti_neg(tutti_scalar(g, TUTTI_F32, 3)));
    }
    g->results.data[0].node->file = "user.c";
    g->results.data[0].node->line = 12;
    tutti__test_rewrite(&tutti_pass_fold, NULL, g);
    const tutti_node *node = g->results.data[0].node;
    CHECK_STR(node->op->name, "constant");
    CHECK_STR(node->origin, "neg");
    CHECK_STR(node->device, "/cpu:0");
    CHECK_STR(node->file, "user.c");
    CHECK_INT(node->line, 12);
    tutti_graph_destroy(g);
}

TUTTI_TEST(fold_knows_shapes)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti_exp(tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3, 2, 5)));
    tutti__test_result(tutti_shape(x));
    tutti__test_result(tutti_size(x));
    tutti__test_result(tutti_size(x, 0, -1));
    tutti__test_pass(&tutti_pass_fold, NULL, g, NULL,
                     "return constant(){value=i64[3](3 2 5)}, 30, 15");
    CHECK_INT(g->nodes.count, 4); /* with the parameter, which stays */
    tutti_graph_destroy(g);
}

/* Folding all of a large broadcast would keep a megabyte for what a scalar says. */
TUTTI_TEST(fold_does_not_blow_up)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti_scalar(g, TUTTI_F32, 2);
    tutti__test_result(tutti_broadcast_to(x, 64, 128));
    tutti__test_result(tutti_fill(g, TUTTI_F32, 1, 4096));
    tutti__test_result(tutti_fill(g, TUTTI_F32, 1, 2));
    CHECK_INT(
        tutti__test_pass(&tutti_pass_fold, NULL, g, NULL,
                         "return broadcast_to(2){dims=[64,128]}, fill(){dims=[4096] value=1}, "
                         "constant(){value=f32[2](1 1)}"),
        1);
    tutti_graph_destroy(g);
}

/* An effect, a random number and a mistake are left for the run. */
TUTTI_TEST(fold_leaves_what_is_not_pure)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym zero = tutti_scalar(g, TUTTI_I32, 0);
    tutti__test_result(tutti_print(zero, "here"));
    tutti__test_result(tutti_floordiv(zero, zero));
    tutti__test_result(tutti_random_uniform(g, 0, 1, TUTTI_TYPE(TUTTI_F32, 2),
                                            .counter = tutti_scalar(g, TUTTI_I64, 0)));
    CHECK_INT(tutti__test_rewrite(&tutti_pass_fold, NULL, g), 0);
    tutti_graph_destroy(g);
}

TUTTI_TEST(fold_leaves_nodes_that_wait)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 2)), y = TUTTI_NO_SYM;
    tutti_sym v = tutti_variable(g, tutti_zeros(2), .name = "v");
    TUTTI_WITH_CONTROL(g, tutti_assign(v, x)) {
        y = tutti_neg(tutti_scalar(g, TUTTI_F32, 1));
    }
    tutti__test_result(y);
    CHECK_OK(tutti__graph_prune(g));
    CHECK_INT(tutti__test_rewrite(&tutti_pass_fold, NULL, g), 0);
    tutti_graph_destroy(g);
}

TUTTI_TEST(fold_several_outputs)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym pieces = tutti_split_into(tutti_ints(g, 1, 2, 3, 4), 0, 2);
    tutti__test_result(tutti_sym_output(pieces, 1));
    tutti__test_result(tutti_sym_output(pieces, 0));
    tutti__test_pass(&tutti_pass_fold, NULL, g, NULL,
                     "return constant(){value=i64[2](3 4)}, constant(){value=i64[2](1 2)}");
    tutti_graph_destroy(g);
}

TUTTI_TEST(fold_random_graphs)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        tutti_graph *g = tutti__test_random_graph(seed, 40);
        tutti__test_pass(&tutti_pass_fold, NULL, g, NULL, NULL);
        tutti_graph_destroy(g);
    }
}
