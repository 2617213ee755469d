/* A job that draws advances the counter once. */
#include "passes/testing.h"

extern const tutti_pass tutti_pass_random_step;

static tutti_graph *pruned(tutti_sym result)
{
    tutti_graph *graph = tutti_sym_graph(result);
    tutti__test_result(result);
    CHECK_OK(tutti__graph_prune(graph));
    return graph;
}

TUTTI_TEST(random_step_adds_one_target)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym a = tutti_random_uniform(g, 0, 1, TUTTI_TYPE(TUTTI_F32, 2));
    tutti_sym b = tutti_random_uniform(g, 0, 1, TUTTI_TYPE(TUTTI_F32, 2));
    pruned(tutti_add(a, b));
    CHECK_INT(tutti__test_rewrite(&tutti_pass_random_step, NULL, g), 1);
    CHECK_INT(g->targets.count, 1);
    CHECK_CONTAINS(tutti__test_text(g), "run assign_add(v0, 1)");
    CHECK(g->targets.data[0]->colocate == g->targets.data[0]->inputs[0].node);
    CHECK_INT(tutti__test_rewrite(&tutti_pass_random_step, NULL, g), 0); /* it updates now */
    CHECK_INT(g->targets.count, 1);
    tutti_graph_destroy(g);
}

TUTTI_TEST(random_step_leaves_jobs_that_do_not_draw)
{
    tutti_graph *g = tutti__test_graph();
    tutti_random_uniform(g, 0, 1, TUTTI_TYPE(TUTTI_F32, 2));
    pruned(tutti_exp(tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3))));
    CHECK_INT(tutti__test_rewrite(&tutti_pass_random_step, NULL, g), 0);
    CHECK_STR(tutti__test_text(g), "return exp(p0)");
    tutti_graph_destroy(g);
}

/* Initialising the counter writes it and reads nothing. */
TUTTI_TEST(random_step_leaves_initialisation)
{
    tutti_graph *g = tutti__test_graph();
    tutti_random_uniform(g, 0, 1, TUTTI_TYPE(TUTTI_F32, 2));
    tutti_sym all = tutti_initialize_variables(g);
    CHECK(TUTTI_VEC_PUSH(&g->targets, all.node));
    CHECK_OK(tutti__graph_prune(g));
    CHECK_INT(tutti__test_rewrite(&tutti_pass_random_step, NULL, g), 0);
    CHECK_INT(g->targets.count, 1);
    tutti_graph_destroy(g);
}

TUTTI_TEST(random_step_leaves_a_counter_of_the_users)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym counter = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_I64));
    pruned(tutti_random_uniform(g, 0, 1, TUTTI_TYPE(TUTTI_F32, 2), .counter = counter));
    CHECK_INT(tutti__test_rewrite(&tutti_pass_random_step, NULL, g), 0);
    tutti_graph_destroy(g);
}
