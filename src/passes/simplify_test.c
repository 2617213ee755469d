/* Every rule: the graph before and after, and equal results. */
#include "passes/testing.h"

extern const tutti_pass tutti_pass_simplify;

static void check(tutti_graph *graph, const char *before, const char *after)
{
    tutti__test_pass(&tutti_pass_simplify, NULL, graph, before, after);
    tutti_graph_destroy(graph);
}

static tutti_graph *g;

static tutti_sym input(int index, tutti_type type)
{
    return tutti__test_input(g, index, type);
}

static tutti_sym number(double value)
{
    return tutti_scalar(g, TUTTI_F32, value);
}

TUTTI_TEST(simplify_neutral_numbers)
{
    g = tutti__test_graph();
    tutti_sym x = input(0, TUTTI_TYPE(TUTTI_F32, 2, 3));
    tutti__test_result(tutti_add(x, number(0)));
    tutti__test_result(tutti_add(number(0), x));
    tutti__test_result(tutti_sub(x, number(0)));
    tutti__test_result(tutti_mul(x, number(1)));
    tutti__test_result(tutti_mul(tutti_fill(g, TUTTI_F32, 1, 2, 3), x));
    tutti__test_result(tutti_div(x, number(1)));
    tutti__test_result(tutti_pow(x, number(1)));
    check(g,
          "return add(p0, 0), add(0, p0), sub(p0, 0), mul(p0, 1), "
          "mul(fill(){dims=[2,3] value=1}, p0), div(p0, 1), pow(p0, 1)",
          "return p0, p0, p0, p0, p0, p0, p0");
}

/* 0 - x is no x; x * 0 may be NaN; x + 0 in a wider shape is a broadcast; 1 / x is no x. */
TUTTI_TEST(simplify_leaves_what_is_not_neutral)
{
    g = tutti__test_graph();
    tutti_sym x = input(0, TUTTI_TYPE(TUTTI_F32, 3));
    tutti__test_result(tutti_sub(number(0), x));
    tutti__test_result(tutti_mul(x, number(0)));
    tutti__test_result(tutti_div(number(1), x));
    tutti__test_result(tutti_floordiv(x, number(1)));
    tutti__test_result(tutti_add(x, tutti_fill(g, TUTTI_F32, 0, 2, 3)));
    check(g, NULL,
          "return sub(0, p0), mul(p0, 0), div(1, p0), floordiv(p0, 1), "
          "add(p0, fill(){dims=[2,3]})");
}

TUTTI_TEST(simplify_integers)
{
    g = tutti__test_graph();
    tutti_sym x = input(0, TUTTI_TYPE(TUTTI_I32, 3)), zero = tutti_scalar(g, TUTTI_I32, 0);
    tutti__test_result(tutti_mul(x, zero));
    tutti__test_result(tutti_floordiv(x, tutti_scalar(g, TUTTI_I32, 1)));
    check(g, "return mul(p0, 0), floordiv(p0, 1)", "return fill(){dims=[3] dtype=i32}, p0");
}

TUTTI_TEST(simplify_division_by_a_power_of_two)
{
    g = tutti__test_graph();
    tutti_sym x = input(0, TUTTI_TYPE(TUTTI_F32, 3));
    tutti__test_result(tutti_div(x, number(64)));
    tutti__test_result(tutti_div(x, number(-0.25)));
    tutti__test_result(tutti_div(x, number(3)));
    tutti__test_result(tutti_div(x, number(0)));
    check(g, NULL, "return mul(p0, 0.015625), mul(p0, -4), div(p0, 3), div(p0, 0)");
}

/* The reciprocal of 2^-16 is no finite f16, that of 2^15 no normal one. */
TUTTI_TEST(simplify_division_stays_in_range)
{
    g = tutti__test_graph();
    tutti_sym x = input(0, TUTTI_TYPE(TUTTI_F16, 3));
    tutti__test_result(tutti_div(x, tutti_scalar(g, TUTTI_F16, 32768)));
    tutti__test_result(tutti_div(x, tutti_scalar(g, TUTTI_F16, 16384)));
    check(g, NULL, "return div(p0, 32768), mul(p0, 6.10352e-05)");
}

TUTTI_TEST(simplify_signs)
{
    g = tutti__test_graph();
    tutti_sym x = input(0, TUTTI_TYPE(TUTTI_F32, 3)), y = input(1, TUTTI_TYPE(TUTTI_F32, 3));
    tutti__test_result(tutti_neg(tutti_neg(x)));
    tutti__test_result(tutti_add(x, tutti_neg(y)));
    tutti__test_result(tutti_add(tutti_neg(x), y));
    tutti__test_result(tutti_sub(x, tutti_neg(y)));
    tutti__test_result(tutti_neg(tutti_sub(x, y)));
    tutti__test_result(tutti_neg(tutti_neg(tutti_neg(x))));
    check(g, NULL, "return p0, sub(p0, p1), sub(p1, p0), add(p0, p1), sub(p1, p0), neg(p0)");
}

TUTTI_TEST(simplify_twice_the_same)
{
    g = tutti__test_graph();
    tutti_sym x = input(0, TUTTI_TYPE(TUTTI_F32, 3)), c = input(1, TUTTI_TYPE(TUTTI_BOOL, 3));
    tutti__test_result(tutti_relu(tutti_relu(x)));
    tutti__test_result(tutti_abs(tutti_abs(x)));
    tutti__test_result(tutti_floor(tutti_ceil(x)));
    tutti__test_result(tutti_maximum(x, x));
    tutti__test_result(tutti_logical_and(c, c));
    tutti__test_result(tutti_logical_not(tutti_logical_not(c)));
    check(g, NULL, "return relu(p0), abs(p0), floor(ceil(p0)), p0, p1, p1");
}

TUTTI_TEST(simplify_casts)
{
    g = tutti__test_graph();
    tutti_sym x = input(0, TUTTI_TYPE(TUTTI_F32, 3)), i = input(1, TUTTI_TYPE(TUTTI_I32, 3));
    tutti__test_result(tutti_cast(x, TUTTI_F32));
    tutti__test_result(tutti_cast(tutti_cast(x, TUTTI_F64), TUTTI_F32));
    tutti__test_result(tutti_cast(tutti_cast(x, TUTTI_BF16), TUTTI_F32)); /* loses bits */
    tutti__test_result(tutti_cast(tutti_cast(i, TUTTI_I64), TUTTI_I32));
    tutti__test_result(tutti_cast(tutti_cast(i, TUTTI_F32), TUTTI_I32)); /* 2^24 + 1 */
    check(g, NULL,
          "return p0, p0, cast(cast(p0){dtype=bf16}){dtype=f32}, p1, "
          "cast(cast(p1){dtype=f32}){dtype=i32}");
}

TUTTI_TEST(simplify_positions_of_widened_values)
{
    g = tutti__test_graph();
    tutti_sym x = input(0, TUTTI_TYPE(TUTTI_BF16, 3)), y = input(1, TUTTI_TYPE(TUTTI_F32, 3));
    tutti__test_result(tutti_argmax(tutti_cast(x, TUTTI_F32), 0));
    tutti__test_result(tutti_argmax(tutti_cast(y, TUTTI_BF16), 0)); /* equal ones appear */
    check(g, NULL, "return argmax(p0){axis=0}, argmax(cast(p1){dtype=bf16}){axis=0}");
}

TUTTI_TEST(simplify_where_on_known_conditions)
{
    g = tutti__test_graph();
    tutti_sym x = input(0, TUTTI_TYPE(TUTTI_F32, 3)), y = input(1, TUTTI_TYPE(TUTTI_F32, 3));
    tutti__test_result(tutti_where(tutti_scalar(g, TUTTI_BOOL, 1), x, y));
    tutti__test_result(tutti_where(tutti_scalar(g, TUTTI_BOOL, 0), x, y));
    check(g, NULL, "return p0, p1");
}

TUTTI_TEST(simplify_views)
{
    g = tutti__test_graph();
    tutti_sym x = input(0, TUTTI_TYPE(TUTTI_F32, 2, 6));
    tutti__test_result(tutti_identity(tutti_stop_gradient(x)));
    tutti__test_result(tutti_reshape(tutti_reshape(x, 12), 3, 4));
    tutti__test_result(tutti_reshape(tutti_expand_dims(x, 0), 2, 6));
    tutti__test_result(tutti_squeeze(tutti_nn_flatten(tutti_reshape(x, 1, 3, 4))));
    check(g, NULL, "return p0, reshape(p0){dims=[3,4]}, p0, reshape(p0){dims=[12]}");
}

TUTTI_TEST(simplify_transposes)
{
    g = tutti__test_graph();
    tutti_sym x = input(0, TUTTI_TYPE(TUTTI_F32, 2, 3, 4));
    tutti__test_result(tutti_transpose(tutti_transpose(x)));
    tutti__test_result(tutti_transpose(tutti_transpose(x, 1, 2, 0), 1, 2, 0));
    tutti__test_result(tutti_transpose(x, 0, 1, 2));
    tutti__test_result(tutti_transpose(tutti_reshape(x, 6, 1, 4), 1, 0, 2)); /* moves a 1 */
    check(g, NULL, "return p0, transpose(p0){order=[2,0,1]}, p0, reshape(p0){dims=[1,6,4]}");
}

TUTTI_TEST(simplify_transposed_operands_of_matmul)
{
    g = tutti__test_graph();
    tutti_sym a = input(0, TUTTI_TYPE(TUTTI_F32, 4, 2)), b = input(1, TUTTI_TYPE(TUTTI_F32, 3, 4));
    tutti_sym c = input(2, TUTTI_TYPE(TUTTI_F32, 5, 4, 2)),
              d = input(3, TUTTI_TYPE(TUTTI_F32, 2, 5));
    tutti__test_result(tutti_matmul(tutti_transpose(a), tutti_transpose(b)));
    tutti__test_result(tutti_matmul(tutti_transpose(a), d, .transpose_a = true));
    tutti__test_result(tutti_matmul(b, tutti_transpose(c, 0, 2, 1), .transpose_b = true));
    tutti__test_result(tutti_matmul(tutti_transpose(c, 1, 0, 2), tutti_transpose(c, 1, 0, 2),
                                    .transpose_b = true));
    check(g, NULL,
          "return matmul(p0, p1){transpose_a=true transpose_b=true}, "
          "matmul(p0, p3), matmul(p1, p2), "
          "matmul(transpose(p2){order=[1,0,2]}, transpose(p2){order=[1,0,2]}){transpose_b=true}");
}

TUTTI_TEST(simplify_broadcasts)
{
    g = tutti__test_graph();
    tutti_sym x = input(0, TUTTI_TYPE(TUTTI_F32, 3)), y = input(1, TUTTI_TYPE(TUTTI_F32, 2, 3));
    tutti__test_result(tutti_broadcast_to(x, 3));
    tutti__test_result(tutti_broadcast_to(tutti_broadcast_to(x, 2, 3), 4, 2, 3));
    tutti__test_result(tutti_mul(tutti_broadcast_to(x, 2, 3), y));
    tutti__test_result(tutti_sub(y, tutti_fill(g, TUTTI_F32, 0.5, 2, 3)));
    tutti__test_result(tutti_exp(tutti_broadcast_to(x, 2, 3))); /* nobody else would widen it */
    check(g, NULL,
          "return p0, broadcast_to(p0){dims=[4,2,3]}, mul(p0, p1), sub(p1, 0.5), "
          "exp(broadcast_to(p0){dims=[2,3]})");
}

TUTTI_TEST(simplify_wholes)
{
    g = tutti__test_graph();
    tutti_sym x = input(0, TUTTI_TYPE(TUTTI_F32, 2, 3));
    tutti__test_result(tutti_concatenate(TUTTI_SYMS(x), .axis = 1));
    tutti__test_result(tutti_stack(TUTTI_SYMS(x)));
    tutti__test_result(tutti_pad(x, .before = TUTTI_INDEX(0, 0), .after = TUTTI_INDEX(0, 0)));
    tutti__test_result(tutti_tile(x, 1, 1));
    tutti__test_result(tutti_slice(x, .begin = TUTTI_INDEX(0, 0), .end = TUTTI_INDEX(9, 3)));
    tutti__test_result(tutti_slice(x, .step = TUTTI_INDEX(-1)));
    tutti__test_result(tutti_roll(x, 6, 1));
    tutti__test_result(tutti_roll(x, 1, 1));
    tutti__test_result(tutti_split_into(x, 0, 1));
    check(g, NULL,
          "return p0, reshape(p0){dims=[1,2,3]}, p0, p0, p0, slice(p0){step=[-1]}, p0, "
          "roll(p0){shift=1 axis=1}, p0");
}

TUTTI_TEST(simplify_reductions_of_nothing)
{
    g = tutti__test_graph();
    tutti_sym x = input(0, TUTTI_TYPE(TUTTI_F32, 2, 1, 3)), s = input(1, TUTTI_TYPE(TUTTI_F32));
    tutti__test_result(tutti_sum(x, .axes = TUTTI_AXES(1)));
    tutti__test_result(tutti_max(x, .axes = TUTTI_AXES(1), .keepdims = true));
    tutti__test_result(tutti_mean(s));
    tutti__test_result(tutti_sum(x, .axes = TUTTI_AXES(0)));
    check(g, NULL, "return reshape(p0){dims=[2,3]}, p0, p1, sum(p0){axes=[0]}");
}

/* One rule opens the way for the next. */
TUTTI_TEST(simplify_chains_of_rules)
{
    g = tutti__test_graph();
    tutti_sym x = input(0, TUTTI_TYPE(TUTTI_F32, 2, 3));
    tutti_sym y = tutti_mul(tutti_identity(tutti_add(x, number(0))), number(1));
    tutti__test_result(tutti_transpose(tutti_transpose(tutti_neg(tutti_neg(y)))));
    check(g, NULL, "return p0");
}

/* An identity that waits for an update is not a mere identity. */
TUTTI_TEST(simplify_leaves_nodes_that_wait)
{
    g = tutti__test_graph();
    tutti_sym x = input(0, TUTTI_TYPE(TUTTI_F32, 2)), y = TUTTI_NO_SYM;
    tutti_sym v = tutti_variable(g, tutti_zeros(2), .name = "v");
    TUTTI_WITH_CONTROL(g, tutti_assign(v, x)) {
        y = tutti_identity(x);
    }
    tutti__test_result(y);
    CHECK_INT(tutti__test_rewrite(&tutti_pass_simplify, NULL, g), 0);
    CHECK_STR(tutti__test_text(g), "return identity(p0) ^assign(v0, p0)");
    tutti_graph_destroy(g);
}

TUTTI_TEST(simplify_random_graphs)
{
    int changes = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        tutti_graph *graph = tutti__test_random_graph(seed, 60);
        changes += tutti__test_pass(&tutti_pass_simplify, NULL, graph, NULL, NULL);
        tutti_graph_destroy(graph);
    }
    CHECK(changes > 100);
}

/* Over all axes it does not matter how they are cut; over some it does. */
TUTTI_TEST(simplify_reductions_of_views)
{
    g = tutti__test_graph();
    tutti_sym x = input(0, TUTTI_TYPE(TUTTI_F32, 2, 3)), y = tutti_reshape(x, 3, 2);
    tutti__test_result(tutti_mean(y));
    tutti__test_result(tutti_sum(y, .axes = TUTTI_AXES(0, 1), .keepdims = true));
    tutti__test_result(tutti_max(y, .axes = TUTTI_AXES(0)));
    check(g, NULL,
          "return mean(p0), reshape(sum(p0)){dims=[1,1]}, max(reshape(p0){dims=[3,2]}){axes=[0]}");
}

/* So that the broadcast meets the operator that does without it. */
TUTTI_TEST(simplify_views_of_a_repeated_number)
{
    g = tutti__test_graph();
    tutti_sym x = input(0, TUTTI_TYPE(TUTTI_F32, 2, 3)), one = input(1, TUTTI_TYPE(TUTTI_F32));
    tutti__test_result(tutti_mul(x, tutti_reshape(tutti_broadcast_to(one, 6), 2, 3)));
    tutti__test_result(tutti_reshape(tutti_broadcast_to(one, 6), 3, 2));
    check(g, NULL, "return mul(p0, p1), broadcast_to(p1){dims=[3,2]}");
}
