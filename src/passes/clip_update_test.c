/* Clipping that goes into updates. */
#include "passes/testing.h"

extern const tutti_pass tutti_pass_clip_update;

static tutti_graph *g;
static tutti_sym v, grad, rate, factor;

static void start(void)
{
    g = tutti__test_graph();
    v = tutti_variable(g, tutti_zeros(4, 3), .name = "v");
    grad = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 4, 3));
    rate = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32));
    factor = tutti__test_input(g, 2, TUTTI_TYPE(TUTTI_F32));
}

static int check(const char *before, const char *after)
{
    int changes = tutti__test_pass(&tutti_pass_clip_update, tutti__test_on_cpu(), g, before, after);
    tutti_graph_destroy(g);
    return changes;
}

TUTTI_TEST(clip_update_takes_a_factor)
{
    start();
    tutti__test_result(tutti_sgd_update(v, tutti_mul(factor, grad), rate));
    CHECK_INT(check("return sgd_update(v0, mul(p2, p0), p1)",
                    "return sgd_update(v0, p0, p1, p2){scaled=true}"),
              1);
}

TUTTI_TEST(clip_update_takes_bounds_after_a_factor)
{
    start();
    tutti__test_result(tutti_sgd_update(v, tutti_clip(tutti_mul(grad, factor), -0.5, 0.5), rate));
    CHECK_INT(check(NULL, "return sgd_update(v0, p0, p1, p2){scaled=true clip=0.5}"), 1);
    start();
    tutti__test_result(tutti_sgd_update(v, tutti_mul(tutti_clip(grad, -0.5, 0.5), factor), rate));
    CHECK_INT(check(NULL, "return sgd_update(v0, clip(p0){min=-0.5 max=0.5}, p1, p2){scaled=true}"),
              1);
}

/* Before the flag that says whether anything changes. */
TUTTI_TEST(clip_update_keeps_the_flag_last)
{
    start();
    tutti_sym apply = tutti__test_input(g, 3, TUTTI_TYPE(TUTTI_BOOL));
    tutti_sym inputs[] = {v, tutti_mul(grad, factor), rate, apply};
    tutti__test_result(tutti_apply_op(g, "sgd_update", 4, inputs, 0, NULL));
    CHECK_INT(check(NULL, "return sgd_update(v0, p0, p1, p2, p3){scaled=true}"), 1);
}

/* Rows of one index are summed by the update: a bound of each is none of the sum. */
TUTTI_TEST(clip_update_cuts_rows_before_they_are_summed)
{
    start();
    tutti_sym at = tutti__test_input(g, 3, TUTTI_TYPE(TUTTI_I64, 4));
    tutti__test_result(tutti_sgd_update_rows(v, at, tutti_clip(grad, -0.5, 0.5), rate));
    CHECK_INT(tutti__test_rewrite(&tutti_pass_clip_update, tutti__test_on_cpu(), g), 0);
    tutti_graph_destroy(g);
    start();
    at = tutti__test_input(g, 3, TUTTI_TYPE(TUTTI_I64, 4));
    tutti__test_result(tutti_sgd_update_rows(v, at, tutti_mul(grad, factor), rate));
    CHECK_INT(check(NULL, "return sgd_update_rows(v0, p3, p0, p1, p2){scaled=true}"), 1);
}

/* The clipped gradient is wanted, the factor is no number, the bounds are not even. */
TUTTI_TEST(clip_update_leaves_the_rest)
{
    start();
    tutti_sym scaled = tutti_mul(grad, factor);
    tutti__test_result(tutti_sgd_update(v, scaled, rate));
    tutti__test_result(scaled);
    tutti_sym row = tutti__test_input(g, 3, TUTTI_TYPE(TUTTI_F32, 3));
    tutti__test_result(tutti_sgd_update(v, tutti_mul(grad, row), rate));
    tutti__test_result(tutti_sgd_update(v, tutti_clip(grad, -0.5, 1), rate));
    CHECK_INT(tutti__test_rewrite(&tutti_pass_clip_update, tutti__test_on_cpu(), g), 0);
    tutti_graph_destroy(g);
}

TUTTI_TEST(clip_update_only_where_kernels_run)
{
    start();
    tutti__test_result(tutti_sgd_update(v, tutti_mul(grad, factor), rate));
    CHECK_INT(tutti__test_rewrite(&tutti_pass_clip_update, tutti__test_on_whole(), g), 0);
    tutti_graph_destroy(g);
}
