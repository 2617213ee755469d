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

/* A value of 16 bits that is widened first: the transposes cancel, rather than that one of them
 * goes where it moves half as many bytes. */
TUTTI_TEST(layout_cancels_behind_a_cast)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_BF16, 2, 3, 4, 5));
    tutti_sym wide = tutti_transpose(tutti_cast(x, TUTTI_F32), 0, 3, 1, 2);
    tutti__test_result(tutti_transpose(tutti_relu(wide), 0, 2, 3, 1));
    CHECK_INT(check(g, NULL, "return relu(cast(p0){dtype=f32})"), 1);
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

/* A value that is wanted in both orders is computed in the one that needs one transpose. */
TUTTI_TEST(layout_of_a_value_in_both_orders)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3, 4));
    tutti_sym y = tutti_exp(tutti_transpose(x));
    tutti__test_result(tutti_transpose(y));
    tutti__test_result(y);
    CHECK_INT(check(g, "t0 = exp(transpose(p0))\nreturn transpose(t0), t0",
                    "t0 = exp(p0)\nreturn t0, transpose(t0){order=[1,0]}"),
              1);
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

/* A convolution as a model has it that keeps channels before height and width. */
static tutti_sym conv_of(tutti_sym x, tutti_sym kernel)
{
    tutti_sym y = tutti_nn_conv2d(tutti_transpose(x, 0, 2, 3, 1), kernel, .padding = "same");
    return tutti_transpose(y, 0, 3, 1, 2);
}

/* Between convolutions stand a bias, relu and a residual, behind them a mean over the image: one
 * transpose of the input is left. */
TUTTI_TEST(layout_of_a_network)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 2, 3, 4, 5));
    tutti_sym first = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 3, 3, 3, 6)),
              second = tutti__test_input(g, 2, TUTTI_TYPE(TUTTI_F32, 3, 3, 6, 6)),
              bias = tutti__test_input(g, 3, TUTTI_TYPE(TUTTI_F32, 6, 1, 1));
    tutti_sym y = tutti_relu(tutti_add(conv_of(x, first), bias));
    tutti_sym z = tutti_relu(tutti_add(conv_of(y, second), y));
    tutti__test_result(tutti_mean(z, .axes = TUTTI_AXES(2, 3)));
    const tutti_pass *const passes[] = {&tutti_pass_layout};
    CHECK_INT(tutti__test_passes(
                  1, passes, NULL, g,
                  "t0 = relu(add(transpose(conv2d(transpose(p0){order=[0,2,3,1]}, "
                  "p1){padding=\"same\"}){order=[0,3,1,2]}, p3))\n"
                  "return mean(relu(add(transpose(conv2d(transpose(t0){order=[0,2,3,1]}, "
                  "p2){padding=\"same\"}){order=[0,3,1,2]}, t0))){axes=[2,3]}",
                  "t0 = relu(add(conv2d(transpose(p0){order=[0,2,3,1]}, p1){padding=\"same\"}, "
                  "reshape(p3){dims=[1,1,1,6]}))\n"
                  "return mean(relu(add(conv2d(t0, p2){padding=\"same\"}, t0))){axes=[1,2]}",
                  1e-5),
              1);
    tutti_graph_destroy(g);
}

/* A join names another axis, a constant is turned once and for all. */
TUTTI_TEST(layout_of_joins_and_constants)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 2, 3)),
              y = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 5, 3));
    tutti_tensor *values;
    CHECK_OK(
        tutti_tensor_from(TUTTI_F32, 2, (int64_t[]){3, 2}, (float[]){1, 2, 3, 4, 5, 6}, &values));
    tutti_sym constant = tutti_constant(g, values);
    tutti_sym sum = tutti_add(tutti_transpose(x), constant);
    tutti_sym joined = tutti_concatenate(TUTTI_SYMS(sum, tutti_transpose(y)), .axis = 1);
    tutti__test_result(tutti_transpose(joined));
    CHECK_INT(check(g, NULL,
                    "return concat(add(p0, constant(){value=f32[2,3](1 3 5 2 4 6)}), p1){axis=0}"),
              1);
    tutti_tensor_release(values);
}

/* Part of what hangs together is turned: exp and what follows, not the sums with
 * values that would have to be transposed. */
TUTTI_TEST(layout_takes_the_part_that_pays)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 3, 4)),
              row = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, 4, 1));
    tutti_sym y = tutti_exp(tutti_transpose(x));
    tutti__test_result(tutti_transpose(y));
    tutti_sym z = tutti_neg(tutti_mul(y, row));
    for (int i = 2; i < 5; i++)
        z = tutti_add(z, tutti__test_input(g, i, TUTTI_TYPE(TUTTI_F32, 4, 3)));
    tutti__test_result(z);
    CHECK_INT(check(g, NULL,
                    "t0 = exp(p0)\n"
                    "return t0, add(add(add(transpose(neg(mul(t0, "
                    "reshape(p1){dims=[1,4]}))){order=[1,0]}, p2), p3), p4)"),
              1);
}

static int64_t moved(const tutti_graph *graph)
{
    int64_t elements = 0;
    for (size_t n = 0; n < graph->nodes.count; n++)
        if (tutti__is(graph->nodes.data[n], "transpose"))
            elements += tutti_type_count(&graph->nodes.data[n]->types[0]);
    return elements;
}

/* Whatever the graph, values stay and transposes never move more. */
TUTTI_TEST(layout_of_random_graphs)
{
    static const char *const ops[] = {"add", "sub", "mul", "maximum"};
    int changes = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        tutti_graph *g = tutti__test_graph();
        tutti_sym pool[48] = {tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F64, 3, 3, 3)),
                              tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F64, 3, 3, 3)),
                              tutti__test_input(g, 2, TUTTI_TYPE(TUTTI_F64, 3, 1, 1))};
        uint64_t state = seed;
        for (int i = 3; i < 48; i++) {
            state = tutti__hash_mix(state, (uint64_t)i);
            int back = i < 6 ? i : 6;
            tutti_sym operands[] = {pool[i - 1 - (int)(state % (uint64_t)back)],
                                    pool[i - 1 - (int)(state / 64 % (uint64_t)back)]};
            if (state / 4096 % 3 == 0)
                pool[i] = state / 65536 % 2 ? tutti_transpose(operands[0], 2, 0, 1)
                                            : tutti_transpose(operands[0], 1, 2, 0);
            else
                pool[i] =
                    tutti_apply_op(g, ops[state / 65536 % TUTTI_COUNT(ops)], 2, operands, 0, NULL);
            if (i % 11 == 0 || i == 47)
                tutti__test_result(pool[i]);
        }
        int64_t before = moved(g);
        changes += tutti__test_pass(&tutti_pass_layout, NULL, g, NULL, NULL);
        CHECK(moved(g) <= before);
        tutti_graph_destroy(g);
    }
    CHECK(changes > 50);
}
