/* onnx_limits_test.c: operators of ONNX at the ends of their types, at infinities, with open
 * dimensions, in older opsets. */
#include "bridge/formulas.h"
#include "bridge/onnx_hand_test.h"
#include "ops/reference.h"
#include "tutti/gradients.h"

/* ---- formulas ---- */

static void gives(int line, tutti_sym y, int count, const double *expected)
{
    tutti_tensor *value = NULL;
    tutti_edge edge = tutti__edge(y);
    CHECK_OK(tutti__reference_run(tutti_sym_graph(y), 0, NULL, 1, &edge, &value));
    CHECK_INT(tutti_tensor_count(value), count);
    for (int i = 0; i < count; i++) {
        double got = tutti_tensor_get(value, i), far = fabs(got - expected[i]);
        bool same = isnan(expected[i])   ? isnan(got)
                    : isinf(expected[i]) ? got == expected[i]
                                         : far <= 3e-7 * fabs(expected[i]);
        if (!same || signbit(got) != signbit(expected[i]))
            tutti__test_fail(__FILE__, line, "element %d is %.9g, expected %.9g", i, got,
                             expected[i]);
    }
    tutti_tensor_release(value);
}
#define GIVES(y, ...)                                                                              \
    gives(__LINE__, y, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)),                    \
          (double[]){__VA_ARGS__})

static tutti_sym vector(tutti_graph *graph, tutti_dtype dtype, int64_t count, const double *values)
{
    tutti_tensor *tensor = hand_tensor(dtype, 1, count, 0, values);
    tutti_sym sym = tutti_constant(graph, tensor);
    tutti_tensor_release(tensor);
    return sym;
}

TUTTI_TEST(formulas_of_inverse_functions_are_right_everywhere)
{
    tutti_graph *g;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = vector(g, TUTTI_F32, 6, NUMBERS(1e-8, -1e-5, 3, -1e20, INFINITY, -INFINITY));
    GIVES(tutti__formula_asinh(x), asinh((double)1e-8F), asinh((double)-1e-5F), asinh(3),
          asinh(-1e20), INFINITY, -INFINITY);
    x = vector(g, TUTTI_F32, 5, NUMBERS(1, 1.0001, 2, 1e20, INFINITY));
    GIVES(tutti__formula_acosh(x), 0, acosh((double)1.0001F), acosh(2), acosh(1e20), INFINITY);
    x = tutti__formula_acosh(vector(g, TUTTI_F32, 2, NUMBERS(0.5, -1e20)));
    GIVES(tutti_cast(tutti_is_nan(x), TUTTI_F32), 1, 1);
    x = vector(g, TUTTI_F32, 4, NUMBERS(0, -3, 1e20, -1e20));
    GIVES(tutti_gradient(tutti_sum(tutti__formula_asinh(x)), x), 1, sqrt(0.1), 1e-20, 1e-20);
    x = vector(g, TUTTI_F32, 2, NUMBERS(2, 1e20));
    GIVES(tutti_gradient(tutti_sum(tutti__formula_acosh(x)), x), sqrt(1.0 / 3), 1e-20);
    tutti_graph_destroy(g);
}

TUTTI_TEST(formulas_of_quotients_are_exact)
{
    tutti_graph *g;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym a = vector(g, TUTTI_I8, 5, NUMBERS(-128, -128, 7, -7, -127));
    tutti_sym b = vector(g, TUTTI_I8, 5, NUMBERS(2, 3, -2, 2, 2));
    GIVES(tutti__formula_quotient(a, b), -64, -42, -3, -3, -63);
    GIVES(tutti__formula_rest(a, b), 0, -2, 1, -1, -1);
    a = vector(g, TUTTI_F32, 5, NUMBERS(5, 3, 1e8, -7.5, 7.5));
    b = vector(g, TUTTI_F32, 5, NUMBERS(INFINITY, 0.1, 0.3, 2, -2));
    GIVES(tutti__formula_rest(a, b), 5, fmod(3, (double)0.1F), fmod(1e8, (double)0.3F), -1.5, 1.5);
    GIVES(tutti_gradient(tutti_sum(tutti__formula_rest(a, b)), a), 1, 1, 1, 1, 1);
    tutti_graph_destroy(g);
}

/* The second 2 is outside its axis, though there is a place 1 * 2 + 2. */
TUTTI_TEST(formulas_of_scattering_refuse_places_that_are_not_there)
{
    tutti_graph *g;
    tutti_tensor *value = NULL;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_reshape(tutti_range(g, 0, 6, 1, TUTTI_F32), 3, 2);
    tutti_sym update = tutti_fill(g, TUTTI_F32, 9, 1);
    tutti_sym there = tutti_reshape(tutti_ints(g, 1, 1), 1, 2);
    GIVES(tutti__formula_scatter(x, there, update, NULL), 0, 1, 2, 9, 4, 5);
    tutti_sym y = tutti__formula_scatter(x, tutti_reshape(tutti_ints(g, 1, 2), 1, 2), update, NULL);
    tutti_edge edge = tutti__edge(y);
    CHECK_STATUS(tutti__reference_run(g, 0, NULL, 1, &edge, &value), TUTTI_OUT_OF_RANGE);
    tutti_graph_destroy(g);
}

/* ---- nodes ---- */

/* One node from x, as wide as all of its dims, to y of any shape. */
static tutti_onnx *one(const char *type, int opset, tutti_dtype dtype, int rank, int64_t dim)
{
    tutti_onnx *onnx = hand_begin();
    onnx->opset = opset;
    int64_t dims[] = {dim, dim, dim};
    hand_port(onnx, &onnx->graph, true, "x", tutti_type_make(dtype, rank, dims));
    hand_port(onnx, &onnx->graph, false, "y", tutti_type_make(dtype, rank, dims));
    hand_node(onnx, &onnx->graph, type, "x", "y");
    return onnx;
}

static tutti_onnx_node *node_of(tutti_onnx *onnx)
{
    return &onnx->graph.nodes.items[onnx->graph.nodes.count - 1];
}

/* Before opset 13 all dimensions from axis on are one, also where none of them is known. */
TUTTI_TEST(onnx_softmax_of_older_files_is_over_all_later_axes)
{
    tutti_tensor *x;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 3, (int64_t[]){1, 2, 2}, (float[]){0, 0, 0, 1}, &x));
    double all = 3 + exp(1);
    for (int64_t dim = -1; dim <= 2; dim += 3) {
        static const int64_t known[] = {1, 2, 2};
        tutti_onnx *onnx = one("Softmax", 11, TUTTI_F32, 3, -1);
        if (dim > 0)
            onnx->graph.inputs.items[0].type = tutti_type_make(TUTTI_F32, 3, known);
        hand_gives(onnx, 1, &x, 4, NUMBERS(1 / all, 1 / all, 1 / all, exp(1) / all));
        node_of(onnx)->type = "Hardmax";
        hand_gives(onnx, 1, &x, 4, NUMBERS(0, 0, 0, 1));
        onnx->opset = 13;
        hand_gives(onnx, 1, &x, 4, NUMBERS(1, 0, 0, 1));
        tutti__onnx_free(onnx);
    }
    tutti_tensor_release(x);
}

TUTTI_TEST(onnx_top_k_finds_the_smallest_integers)
{
    for (int signs = 0; signs < 2; signs++) {
        tutti_dtype dtype = signs ? TUTTI_I8 : TUTTI_U8;
        double least = signs ? -128 : 0;
        tutti_onnx *onnx = one("TopK", 17, dtype, 1, 3);
        hand_constant(onnx, &onnx->graph, "k", TUTTI_I64, 1, 1, NUMBERS(2));
        hand_names(onnx, &node_of(onnx)->inputs, "k");
        hand_names(onnx, &node_of(onnx)->outputs, "places");
        hand_attr(onnx, node_of(onnx), "largest", ONNX_INT)->i = 0;
        tutti_tensor *x = hand_tensor(dtype, 1, 3, 0, NUMBERS(3, least, 7));
        hand_gives(onnx, 1, &x, 2, NUMBERS(least, 3));
        tutti_tensor_release(x);
        tutti__onnx_free(onnx);
    }
}

/* What is left of a reduction over no axes is a function of each element. */
TUTTI_TEST(onnx_reductions_over_no_axes_apply_their_function)
{
    static const struct {
        const char *type;
        double y[2];
    } cases[] = {{"ReduceL1", {2, 3}},
                 {"ReduceL2", {2, 3}},
                 {"ReduceSumSquare", {4, 9}},
                 {"ReduceSum", {-2, 3}}};
    tutti_tensor *x = hand_tensor(TUTTI_F32, 1, 2, 0, NUMBERS(-2, 3));
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        tutti_onnx *onnx = one(cases[i].type, 18, TUTTI_F32, 1, 2);
        hand_attr(onnx, node_of(onnx), "noop_with_empty_axes", ONNX_INT)->i = 1;
        hand_gives(onnx, 1, &x, 2, cases[i].y);
        tutti__onnx_free(onnx);
    }
    tutti_tensor_release(x);
}

static void keep_int(tutti_onnx *onnx, const char *name, int64_t value)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){1}, &value, &tensor));
    CHECK_OK(tutti__onnx_keep(onnx, tensor));
    tutti_onnx_tensor *slot = ONNX_PUSH(&onnx->arena, &onnx->graph.initializers);
    CHECK(slot != NULL);
    *slot = (tutti_onnx_tensor){name, tensor};
}

static void ends_with(const tutti_onnx *onnx, tutti_tensor *x, int64_t expected)
{
    tutti_tensor *y;
    CHECK_OK(hand_run(onnx, 1, &x, &y));
    CHECK(tutti_tensor_get_int(y, tutti_tensor_count(y) - 1) == expected);
    tutti_tensor_release(y);
}

/* A double does not hold them. */
TUTTI_TEST(onnx_large_integers_stay_exact)
{
    const int64_t large = ((int64_t)1 << 53) + 1;
    tutti_tensor *x = hand_tensor(TUTTI_I64, 1, 2, 0, NUMBERS(1, 2));
    tutti_onnx *onnx = one("Pad", 17, TUTTI_I64, 1, -1);
    hand_constant(onnx, &onnx->graph, "pads", TUTTI_I64, 1, 2, NUMBERS(0, 1));
    keep_int(onnx, "value", large);
    hand_names(onnx, &node_of(onnx)->inputs, "pads value");
    ends_with(onnx, x, large);
    tutti__onnx_free(onnx);
    onnx = one("ConstantOfShape", 17, TUTTI_I64, 1, 2);
    hand_attr(onnx, node_of(onnx), "value", ONNX_TENSOR)->tensor = NULL;
    tutti_tensor *value;
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){1}, &large, &value));
    CHECK_OK(tutti__onnx_keep(onnx, value));
    node_of(onnx)->attrs.items[0].tensor = value;
    ends_with(onnx, x, large);
    tutti__onnx_free(onnx);
    tutti_tensor_release(x);
}

/* The axis is open, and 7 is no multiple of 3. */
TUTTI_TEST(onnx_split_into_pieces_that_are_almost_equal)
{
    static const char *const names[] = {"a", "b", "c"};
    static const int64_t sizes[] = {3, 3, 1};
    tutti_tensor *x = hand_tensor(TUTTI_F32, 1, 7, 0, NUMBERS(0, 1, 2, 3, 4, 5, 6));
    for (int i = 0; i < 3; i++) {
        tutti_onnx *onnx = hand_begin();
        onnx->opset = 18;
        hand_port(onnx, &onnx->graph, true, "x", hand_type(TUTTI_F32, 1, -1, 0));
        hand_port(onnx, &onnx->graph, false, names[i], hand_type(TUTTI_F32, 1, -1, 0));
        tutti_onnx_node *split = hand_node(onnx, &onnx->graph, "Split", "x", "a b c");
        hand_attr(onnx, split, "num_outputs", ONNX_INT)->i = 3;
        hand_gives(onnx, 1, &x, sizes[i], (const double[][3]){{0, 1, 2}, {3, 4, 5}, {6}}[i]);
        tutti__onnx_free(onnx);
    }
    tutti_tensor_release(x);
}

TUTTI_TEST(onnx_resize_takes_sizes_or_scales)
{
    tutti_onnx *onnx = one("Resize", 17, TUTTI_F32, 2, 2);
    hand_constant(onnx, &onnx->graph, "scales", TUTTI_F32, 1, 1, NUMBERS(2));
    hand_constant(onnx, &onnx->graph, "sizes", TUTTI_I64, 1, 1, NUMBERS(4));
    hand_names(onnx, &node_of(onnx)->inputs, "- scales sizes");
    tutti_tensor *x = hand_tensor(TUTTI_F32, 2, 2, 2, NUMBERS(1, 2, 3, 4)), *y;
    CHECK_STATUS(hand_run(onnx, 1, &x, &y), TUTTI_INVALID);
    CHECK(strstr(tutti_error_message(), "1 sizes and 1 scales") != NULL);
    tutti_tensor_release(x);
    tutti__onnx_free(onnx);
}
