/* Which nodes are fused, and that nothing else changes. */
#include <string.h>

#include "passes/testing.h"

extern const tutti_pass tutti_pass_fuse;

enum { MAX_NODES = 64, MAX_INPUTS = 16, MAX_OUTPUTS = 8 }; /* of one fused node */

static int check(tutti_graph *graph, const char *before, const char *after)
{
    return tutti__test_pass(&tutti_pass_fuse, tutti__test_on_cpu(), graph, before, after);
}

static int count_op(const tutti_graph *graph, const char *op)
{
    int count = 0;
    for (size_t n = 0; n < graph->nodes.count; n++)
        count += tutti__is(graph->nodes.data[n], op);
    return count;
}

static void check_limits(const tutti_graph *graph)
{
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        if (!tutti__is(node, "fused"))
            continue;
        const tutti_graph *body =
            tutti_attr_find(node->attrs, node->attr_count, "body")->value.graph;
        int members = 0;
        for (size_t i = 0; i < body->nodes.count; i++)
            members += body->nodes.data[i]->input_count > 0;
        CHECK(members >= 2 && members <= MAX_NODES);
        CHECK(node->input_count <= MAX_INPUTS && node->output_count <= MAX_OUTPUTS);
        CHECK_OK(tutti_graph_verify(body));
    }
}

TUTTI_TEST(fuse_chain)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 4, 8));
    tutti_sym bias = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 8));
    tutti__test_result(tutti_relu(tutti_add(tutti_mul(x, 2), bias)));
    CHECK_INT(
        check(
            g, "return relu(add(mul(p0, 2), p1))",
            "return fused(p0, p1){body=(return relu(add(mul(p0, 2), p1))) pattern=\"elementwise\"}"),
        1);
    tutti_graph_destroy(g);
}

TUTTI_TEST(fuse_keeps_the_place_of_the_last_node)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 4));
    tutti_sym y = tutti_exp(tutti_neg(x));
    y.node->file = "user.c";
    y.node->line = 7;
    tutti__test_result(y);
    check(g, NULL, NULL);
    const tutti_node *node = g->results.data[0].node;
    CHECK_STR(node->op->name, "fused");
    CHECK_STR(node->origin, "exp");
    CHECK_STR(node->file, "user.c");
    CHECK_INT(node->line, 7);
    tutti_graph_destroy(g);
}

/* A value that is also wanted outside becomes one more output. */
TUTTI_TEST(fuse_several_outputs)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 4, 4));
    tutti_sym y = tutti_exp(x), z = tutti_neg(y);
    tutti__test_result(z);
    tutti__test_result(tutti_matmul(y, y));
    CHECK_INT(
        check(g, NULL,
              "t0 = fused(p0){body=(t0 = exp(p0); return t0, neg(t0)) pattern=\"elementwise\"}\n"
              "return t0:1, matmul(t0:0, t0:0)"),
        1);
    tutti_graph_destroy(g);
}

TUTTI_TEST(fuse_leaves_single_nodes_and_other_shapes)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 4));
    tutti_sym y = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 3, 4));
    tutti__test_result(tutti_add(tutti_exp(x), y));
    CHECK_INT(check(g, NULL, "return add(exp(p0), p1)"), 0);
    tutti_graph_destroy(g);
}

/* exp and add cannot run together: the product stands between them. */
TUTTI_TEST(fuse_no_cycle_through_another_node)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 4, 4));
    tutti_sym y = tutti_exp(x);
    tutti__test_result(tutti_add(y, tutti_matmul(y, y)));
    CHECK_INT(check(g, NULL, "t0 = exp(p0)\nreturn add(t0, matmul(t0, t0))"), 0);
    tutti_graph_destroy(g);
}

/* exp does not lead to the product, so it can wait for it. */
TUTTI_TEST(fuse_what_can_wait)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 4, 4));
    tutti_sym y = tutti_exp(x);
    tutti__test_result(tutti_add(y, tutti_matmul(x, x)));
    CHECK_INT(
        check(
            g, NULL,
            "return fused(p0, matmul(p0, p0)){body=(return add(exp(p0), p1)) pattern=\"elementwise\"}"),
        1);
    tutti_graph_destroy(g);
}

/* {exp, a + m} is legal, {neg, b + n} is legal, both together would wait for each other. */
TUTTI_TEST(fuse_no_cycle_between_groups)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 4, 4));
    tutti_sym y = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 4, 4));
    tutti_sym a = tutti_exp(x), b = tutti_neg(y);
    tutti_sym from_a = tutti_matmul(a, a), from_b = tutti_matmul(b, b);
    tutti__test_result(tutti_add(a, from_b));
    tutti__test_result(tutti_sub(b, from_a));
    CHECK_INT(check(g, NULL, NULL), 1);
    tutti_graph_destroy(g);
}

TUTTI_TEST(fuse_leaves_nodes_that_wait)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 4)), y = tutti_neg(x),
              z = TUTTI_NO_SYM;
    tutti_sym v = tutti_variable(g, tutti_zeros(4), .name = "v");
    TUTTI_WITH_CONTROL(g, tutti_assign(v, x)) {
        z = tutti_exp(y);
    }
    tutti__test_result(z);
    CHECK_INT(tutti__test_rewrite(&tutti_pass_fuse, tutti__test_on_cpu(), g), 0);
    tutti_graph_destroy(g);
}

TUTTI_TEST(fuse_only_where_kernels_run)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 4));
    tutti__test_result(tutti_exp(tutti_neg(x)));
    CHECK_INT(tutti__test_rewrite(&tutti_pass_fuse, tutti__test_on_whole(), g), 0);
    CHECK_INT(tutti__test_rewrite(&tutti_pass_fuse, NULL, g), 0);
    tutti_graph_destroy(g);
}

TUTTI_TEST(fuse_cuts_long_chains)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 4));
    tutti_sym y = x;
    for (int i = 0; i < 200; i++)
        y = i % 2 ? tutti_abs(y) : tutti_sub(y, x);
    tutti__test_result(y);
    check(g, NULL, NULL);
    CHECK_INT(count_op(g, "fused"), 4); /* 64 + 64 + 64 + 8 */
    CHECK_INT(g->nodes.count, 5);
    check_limits(g);
    tutti_graph_destroy(g);
}

TUTTI_TEST(fuse_cuts_groups_of_many_inputs_and_outputs)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym sum = tutti_neg(tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 4)));
    for (int i = 1; i < 30; i++) {
        sum = tutti_add(sum, tutti__test_input(g, i, TUTTI_TYPE(TUTTI_F32, 4)));
        tutti__test_result(sum);
    }
    check(g, NULL, NULL);
    CHECK(count_op(g, "fused") >= 4);
    CHECK_INT(count_op(g, "add"), 0);
    check_limits(g);
    tutti_graph_destroy(g);
}

TUTTI_TEST(fuse_bools_and_casts)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 8)),
              none = tutti_scalar(g, TUTTI_F32, 0);
    tutti_sym positive = tutti_greater(x, none);
    tutti__test_result(tutti_where(positive, tutti_square(x), none));
    tutti__test_result(tutti_cast(positive, TUTTI_F32));
    CHECK_INT(check(g, NULL, NULL), 1);
    CHECK_INT(count_op(g, "where"), 0);
    tutti_graph_destroy(g);
}

TUTTI_TEST(fuse_random_graphs)
{
    int fused = 0;
    for (uint64_t seed = 0; seed < 150; seed++) {
        tutti_graph *g = tutti__test_random_graph(seed, 10 + (int)(seed % 90));
        fused += check(g, NULL, NULL);
        check_limits(g);
        tutti_graph_destroy(g);
    }
    CHECK(fused > 200);
}

/* The same with products between, over which groups must not reach. */
TUTTI_TEST(fuse_random_graphs_with_products)
{
    static const char *const ops[] = {"add", "sub", "mul", "maximum", "matmul", "matmul"};
    int fused = 0;
    for (uint64_t seed = 0; seed < 150; seed++) {
        tutti_graph *g = tutti__test_graph();
        tutti_sym pool[64] = {tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F64, 3, 3)),
                              tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F64, 3, 3))};
        uint64_t state = seed;
        for (int i = 2; i < 64; i++) {
            state = tutti__hash_mix(state, (uint64_t)i);
            int back = i < 8 ? i : 8; /* near ones, so that paths are long */
            tutti_sym operands[] = {pool[i - 1 - (int)(state % (uint64_t)back)],
                                    pool[i - 1 - (int)(state / 64 % (uint64_t)back)]};
            pool[i] = tutti_apply_op(g, ops[state / 4096 % TUTTI_COUNT(ops)], 2, operands, 0, NULL);
            if (i % 9 == 0 || i == 63)
                tutti__test_result(pool[i]);
        }
        fused += check(g, NULL, NULL);
        check_limits(g);
        tutti_graph_destroy(g);
    }
    CHECK(fused > 300);
}

static tutti_sym reduced(const char *op, tutti_sym x, int64_t axis)
{
    tutti_attr attrs[] = {TUTTI_INTS("axes", 1, &axis), TUTTI_INT("keepdims", true)};
    return tutti_apply_op(tutti_sym_graph(x), op, 1, &x, 2, attrs);
}

/* A bias's gradient is summed while the activation's gradient is in the tile. */
TUTTI_TEST(fuse_sum_over_rows)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym y = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 8, 6)),
              dy = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 8, 6)),
              none = tutti_scalar(g, TUTTI_F32, 0);
    tutti_sym dx = tutti_where(tutti_greater(y, none), dy, none);
    tutti__test_result(tutti_sum(dx, .axes = TUTTI_AXES(0)));
    tutti__test_result(tutti_matmul(dx, dx, .transpose_b = true));
    CHECK_INT(check(g, NULL,
                    "t0 = fused(p0, p1){body=(t0 = where(greater(p0, 0), p1, 0); return t0, "
                    "sum(t0){axes=[0]}) pattern=\"reduce\"}\n"
                    "return t0:1, matmul(t0:0, t0:0){transpose_b=true}"),
              1);
    tutti_graph_destroy(g);
}

/* Not written at all where only the sum is wanted; one operator is enough. */
TUTTI_TEST(fuse_sum_of_everything)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 8, 6));
    tutti__test_result(tutti_mean(tutti_square(x)));
    CHECK_INT(check(g, NULL, "return fused(p0){body=(return mean(square(p0))) pattern=\"reduce\"}"),
              1);
    tutti_graph_destroy(g);
}

/* Layer norm written out: rows are whole in the tile, so that their mean is used at once. */
TUTTI_TEST(fuse_rows_used_at_once)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 8, 6));
    tutti_sym centred = tutti_sub(x, reduced("mean", x, -1));
    tutti_sym variance = reduced("mean", tutti_square(centred), -1);
    tutti__test_result(
        tutti_mul(centred, tutti_rsqrt(tutti_add(variance, tutti_scalar(g, TUTTI_F32, 0.5)))));
    CHECK_INT(check(g, NULL, NULL), 1);
    CHECK_INT(g->nodes.count, 2);
    tutti_graph_destroy(g);
}

/* Layer norm is faster by its own kernel. */
TUTTI_TEST(fuse_leaves_operators_over_rows)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 8, 6)),
              scale = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 6));
    tutti_sym sum = tutti_add(tutti_neg(x), scale);
    tutti__test_result(sum);
    tutti__test_result(tutti_nn_layer_norm(sum, scale, scale));
    CHECK_INT(check(g, NULL,
                    "t0 = fused(p0, p1){body=(return add(neg(p0), p1)) pattern=\"elementwise\"}\n"
                    "return t0, layer_norm(t0, p1, p1)"),
              1);
    tutti_graph_destroy(g);
}

/* A mean over the batch that the same values are shifted by needs two walks. */
TUTTI_TEST(fuse_no_sum_over_rows_that_is_used_at_once)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 8, 6));
    tutti_sym y = tutti_exp(x);
    tutti__test_result(tutti_square(tutti_sub(y, reduced("mean", y, 0))));
    CHECK_INT(check(g, NULL,
                    "t0 = fused(p0){body=(t0 = exp(p0); return t0, mean(t0){axes=[0] "
                    "keepdims=true}) pattern=\"reduce\"}\n"
                    "return fused(t0:0, t0:1){body=(return square(sub(p0, p1))) "
                    "pattern=\"elementwise\"}"),
              2);
    tutti_graph_destroy(g);
}

/* No kernel sums over a middle axis, or the batch in a deterministic session: the rest is fused. */
TUTTI_TEST(fuse_leaves_sums_that_no_kernel_takes)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 4, 8, 6));
    tutti__test_result(tutti_sum(tutti_exp(tutti_neg(x)), .axes = TUTTI_AXES(1)));
    CHECK_INT(check(g, NULL,
                    "return sum(fused(p0){body=(return exp(neg(p0))) "
                    "pattern=\"elementwise\"}){axes=[1]}"),
              1);
    tutti_graph_destroy(g);
    tutti_pass_context strict = *tutti__test_on_cpu();
    strict.deterministic = true;
    g = tutti__test_graph();
    x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 4, 8));
    tutti__test_result(tutti_sum(tutti_square(x), .axes = TUTTI_AXES(0)));
    CHECK_INT(
        tutti__test_pass(&tutti_pass_fuse, &strict, g, NULL, "return sum(square(p0)){axes=[0]}"),
        0);
    tutti_graph_destroy(g);
}
