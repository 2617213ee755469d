/* elementwise_test.c: edge values, refusals and gradients at the kinks. ops_test.c runs the
 * samples. */
#include <math.h>
#include <string.h>

#include "base/test.h"
#include "graph/autodiff.h"
#include "graph/graph.h"
#include "ops/reference.h"
#include "ops/sample.h"
#include "tutti/ops_elementwise.h"

/* Runs a sample; the caller releases the one output. */
static tutti_tensor *run(const char *op, const char *text)
{
    tutti_sample *sample = NULL;
    tutti_tensor *output = NULL;
    CHECK_OK(tutti__sample_parse(tutti_op_find(op), text, 1, &sample));
    CHECK_OK(tutti__sample_run(sample, &output));
    tutti__sample_free(sample);
    return output;
}

static void expect(const char *op, const char *text, int count, const double *values)
{
    tutti_tensor *output = run(op, text);
    CHECK_INT(tutti_tensor_count(output), count);
    for (int i = 0; i < count; i++) {
        double x = tutti_tensor_get(output, i);
        if (isnan(values[i])   ? !isnan(x)
            : isinf(values[i]) ? x != values[i]
                               : !(fabs(x - values[i]) <= 1e-6))
            tutti__test_fail(__FILE__, __LINE__, "%s \"%s\": element %d is %g, expected %g", op,
                             text, i, x, values[i]);
    }
    tutti_tensor_release(output);
}
#define EXPECT(op, text, ...)                                                                      \
    expect(op, text, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)),                      \
           (double[]){__VA_ARGS__})

TUTTI_TEST(elementwise_broadcasts)
{
    EXPECT("sub", "f32[2,1]{=10,20} f32[3]{=1,2,3}", 9, 8, 7, 19, 18, 17);
    EXPECT("add", "i32[2,2]{=1,2,3,4} i32[]{=10}", 11, 12, 13, 14);
    EXPECT("where", "bool[2]{=1,0} f32[2,1]{=1,2} f32[]{=9}", 1, 9, 2, 9);
}

TUTTI_TEST(elementwise_division_rounds_as_python_does)
{
    EXPECT("floordiv", "i32[4]{=7,-7,7,-7} i32[4]{=2,2,-2,-2}", 3, -4, -4, 3);
    EXPECT("mod", "i32[4]{=7,-7,7,-7} i32[4]{=3,3,-3,-3}", 1, 2, -2, -1);
    EXPECT("floordiv", "f32[4]{=7,-7,7,-7} f32[4]{=2,2,-2,-2}", 3, -4, -4, 3);
    EXPECT("mod", "f32[4]{=7,-7,7,-7} f32[4]{=3,3,-3,-3}", 1, 2, -2, -1);
    EXPECT("floordiv", "f32[3]{=1,-1,0} f32[]{=0}", INFINITY, -INFINITY, NAN);
    EXPECT("mod", "f32[1]{=1} f32[]{=0}", NAN);
    EXPECT("floordiv", "f32[1]{=-1} f32[]{=inf}", -1);
}

/* As Python, NumPy and PyTorch have it: the sign of a / b. */
TUTTI_TEST(elementwise_division_keeps_the_sign_of_zero)
{
    static const bool negative[] = {true, false, false, true, false, true, false};
    tutti_tensor *output =
        run("floordiv", "f32[7]{=-0,0,-0,0,0.3,-0,-0.3} f32[7]{=1,1,-1,-1,1,inf,-inf}");
    for (int i = 0; i < 7; i++) {
        CHECK_NEAR(tutti_tensor_get(output, i), 0, 0);
        CHECK_INT(signbit(tutti_tensor_get(output, i)) != 0, negative[i]);
    }
    tutti_tensor_release(output);
}

TUTTI_TEST(elementwise_integer_overflow_wraps)
{
    tutti_tensor *output = run("floordiv", "i64[1]{=-9223372036854775808} i64[1]{=-1}");
    CHECK_INT(tutti_tensor_get_int(output, 0), INT64_MIN);
    tutti_tensor_release(output);
    EXPECT("mod", "i64[1]{=-9223372036854775808} i64[1]{=-1}", 0);
    EXPECT("floordiv", "i32[1]{=-2147483648} i32[1]{=-1}", -2147483648.0);
    EXPECT("add", "u8[2]{=250,1} u8[]{=10}", 4, 11);
    EXPECT("neg", "i8[2]{=-128,5}", -128, -5);
    EXPECT("abs", "i8[1]{=-128}", -128);
    output = run("mul", "i64[1]{=9223372036854775807} i64[1]{=2}");
    CHECK_INT(tutti_tensor_get_int(output, 0), -2);
    tutti_tensor_release(output);
}

static void expect_failure(const char *op, const char *text, const char *part)
{
    tutti_sample *sample = NULL;
    tutti_tensor *output = NULL;
    CHECK_OK(tutti__sample_parse(tutti_op_find(op), text, 1, &sample));
    CHECK_STATUS(tutti__sample_run(sample, &output), TUTTI_INVALID);
    CHECK(output == NULL);
    CHECK_CONTAINS(tutti_error_message(), part);
    tutti__sample_free(sample);
}

TUTTI_TEST(elementwise_integer_division_by_zero_is_a_message)
{
    expect_failure("floordiv", "i32[3] i32[3]{=1,0,2}",
                   "floordiv 'sample': integer division by zero at element 1 of input 1");
    expect_failure("mod", "i64[2] i64[]{=0}", "mod 'sample': integer modulo zero at element 0");
    expect_failure("pow", "i32[2] i32[2]{=2,-3}", "negative power -3 at element 1");
}

TUTTI_TEST(elementwise_keeps_nan)
{
    EXPECT("maximum", "f32[3]{=nan,1,2} f32[3]{=1,nan,3}", NAN, NAN, 3);
    EXPECT("minimum", "f32[3]{=nan,1,2} f32[3]{=1,nan,3}", NAN, NAN, 2);
    EXPECT("relu", "f32[3]{=nan,-1,inf}", NAN, 0, INFINITY);
    EXPECT("relu6", "f32[3]{=nan,-1,inf}", NAN, 0, 6);
    EXPECT("clip", "f32[3]{=nan,-inf,inf} | min=-1 max=2", NAN, -1, 2);
    EXPECT("sign", "f32[4]{=nan,-3,0,4}", NAN, -1, 0, 1);
    EXPECT("softplus", "f32[3]{=nan,-inf,1000}", NAN, 0, 1000);
    EXPECT("hard_sigmoid", "f32[3]{=nan,-inf,0}", NAN, 0, 0.5);
    EXPECT("gelu", "f32[4]{=nan,-inf,-100,inf}", NAN, 0, 0, INFINITY);
}

TUTTI_TEST(elementwise_functions_at_known_points)
{
    EXPECT("pow", "i32[4]{=2,-3,0,5} i32[4]{=10,3,0,1}", 1024, -27, 1, 5);
    EXPECT("round", "f32[6]{=-1.5,-0.5,0.5,1.5,2.5,2.6}", -2, 0, 0, 2, 2, 3);
    EXPECT("sigmoid", "f64[3]{=-1000,0,1000}", 0, 0.5, 1);
    EXPECT("silu", "f64[3]{=-1000,1,1000}", 0, 0.7310585786, 1000);
    EXPECT("gelu", "f64[3]{=-1,0,2}", -0.158655254, 0, 1.954499736);
    EXPECT("gelu", "f64[2]{=-1,2} | approximate=true", -0.158808009, 1.954597694);
    EXPECT("selu", "f64[2]{=-1,1}", -1.111330738, 1.050700987);
    EXPECT("elu", "f64[2]{=-1,1} | alpha=2", -1.264241118, 1);
    EXPECT("leaky_relu", "f64[2]{=-1,1}", -0.2, 1);
    EXPECT("softsign", "f64[3]{=-inf,1,-3}", -1, 0.5, -0.75);
    EXPECT("hard_sigmoid", "f64[3]{=-3,1,4}", 0, 2.0 / 3, 1);
    EXPECT("erf", "f64[2]{=0.5,-2}", 0.520499878, -0.995322265);
    EXPECT("clip", "i32[4]{=-9,-1,3,9} | min=-2.5 max=4.5", -2, -1, 3, 4);
}

TUTTI_TEST(elementwise_cast_saturates_floats_and_keeps_low_bits_of_integers)
{
    EXPECT("cast", "f32[6]{=-300,-1.9,1.9,300,nan,inf} | dtype=i8", -128, -1, 1, 127, 0, 127);
    EXPECT("cast", "f32[3]{=-1,0,nan} | dtype=bool", 1, 0, 1);
    EXPECT("cast", "i32[3]{=-1,256,300} | dtype=u8", 255, 0, 44);
    EXPECT("cast", "bool[2]{=1,0} | dtype=f32", 1, 0);
    tutti_tensor *output = run("cast", "f32[2]{=1e30,-1e30} | dtype=i64");
    CHECK_INT(tutti_tensor_get_int(output, 0), INT64_MAX);
    CHECK_INT(tutti_tensor_get_int(output, 1), INT64_MIN);
    tutti_tensor_release(output);
}

TUTTI_TEST(elementwise_comparisons_of_large_integers_are_exact)
{
    EXPECT("equal", "i64[1]{=9007199254740993} i64[1]{=9007199254740992}", 0);
    EXPECT("less", "i64[1]{=9007199254740992} i64[1]{=9007199254740993}", 1);
    EXPECT("equal", "f32[2]{=nan,1} f32[2]{=nan,1}", 0, 1);
    EXPECT("not_equal", "f32[2]{=nan,1} f32[2]{=nan,1}", 1, 0);
    EXPECT("less_equal", "bool[2]{=0,1} bool[2]{=1,0}", 1, 0);
}

/* A graph with one placeholder per type. */
static tutti_sym input(tutti_graph *graph, tutti_dtype dtype, int rank, const int64_t *dims)
{
    tutti_attr attrs[] = {TUTTI_INT("dtype", dtype), TUTTI_INTS("dims", rank, dims)};
    return tutti_apply_op(graph, "placeholder", 0, NULL, 2, attrs);
}

static void refuse(tutti_graph *graph, tutti_sym sym, const char *part, const char *advice)
{
    CHECK(!tutti_sym_ok(sym));
    CHECK_STATUS(tutti_graph_check(graph), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), part);
    CHECK_CONTAINS(tutti_error_message(), advice);
    CHECK_CONTAINS(tutti_error_message(), "elementwise_test.c:");
    tutti_graph_destroy(graph);
}

#define REFUSE(expression, part, advice)                                                           \
    do {                                                                                           \
        tutti_graph *g = NULL;                                                                     \
        CHECK_OK(tutti_graph_create(&g));                                                          \
        tutti_sym f = input(g, TUTTI_F32, 2, (int64_t[]){2, 3}),                                   \
                  i = input(g, TUTTI_I32, 1, (int64_t[]){3}), b = input(g, TUTTI_BOOL, 0, NULL),   \
                  s = input(g, TUTTI_STRING, 0, NULL), w = input(g, TUTTI_F32, 1, (int64_t[]){4}); \
        (void)f, (void)i, (void)b, (void)s, (void)w;                                               \
        refuse(g, expression, part, advice);                                                       \
    } while (0)

TUTTI_TEST(elementwise_refuses_with_advice)
{
    REFUSE(tutti_add(f, i), "input 0 is f32[2,3], input 1 is i32[3]", "tutti_cast");
    REFUSE(tutti_add(f, w), "f32[2,3] and f32[4] do not broadcast", "tutti_reshape");
    REFUSE(tutti_div(i, i), "input 0 is i32[3]", "tutti_floordiv");
    REFUSE(tutti_add(b, b), "input 0 is bool[]", "tutti_logical_and");
    REFUSE(tutti_mul(s, s), "input 0 is string[]", "needs floats or integers");
    REFUSE(tutti_exp(i), "input is i32[3], needs floats", "tutti_cast(x, TUTTI_F32)");
    REFUSE(tutti_where(f, f, f), "the condition is f32[2,3]", "tutti_cast(x, TUTTI_BOOL)");
    REFUSE(tutti_where(b, f, i), "input 1 is f32[2,3], input 2 is i32[3]", "tutti_cast");
    REFUSE(tutti_logical_and(f, f), "input 0 is f32[2,3], needs bools", "tutti_not_equal");
    REFUSE(tutti_equal(s, s), "not strings", "string[]");
    REFUSE(tutti_clip(f, 2, 1), "min is 2 and max is 1", "min <= max");
    REFUSE(tutti_cast(f, (tutti_dtype)99), "99 is no element type", "TUTTI_F32");
    REFUSE(tutti_cast(s, TUTTI_F32), "input is string[]", "strings do not convert");
    REFUSE(tutti_mul(i, 0.5), "0.5 cannot be a constant of type i32", "tutti_cast");
    REFUSE(tutti_is_nan(i), "input is i32[3]", "needs floats");
    REFUSE(tutti_add(f, TUTTI_NO_SYM), "input 1 is not a symbol", "builder call");
}

/* d sum(y) / d x for y = op(x, other), at given values of both. */
typedef tutti_sym binary_fn(tutti_sym a, tutti_sym b);
static void gradients_at(binary_fn *fn, double a, double b, double *ret_da, double *ret_db)
{
    tutti_graph *graph = NULL;
    tutti_tensor *va = NULL, *vb = NULL, *values[2];
    CHECK_OK(tutti_graph_create(&graph));
    tutti_sym xs[] = {input(graph, TUTTI_F64, 0, NULL), input(graph, TUTTI_F64, 0, NULL)}, grads[2];
    tutti_sym y = fn(xs[0], xs[1]), weight = input(graph, TUTTI_F64, 0, NULL);
    CHECK_OK(tutti__gradients(graph, 1, &y, &weight, 2, xs, grads, NULL));
    CHECK_OK(tutti_tensor_from(TUTTI_F64, 0, NULL, &a, &va));
    CHECK_OK(tutti_tensor_from(TUTTI_F64, 0, NULL, &b, &vb));
    tutti_tensor *one = NULL;
    CHECK_OK(tutti_tensor_from(TUTTI_F64, 0, NULL, &(double){1}, &one));
    tutti_reference_feed feeds[] = {
        {tutti__edge(xs[0]), va}, {tutti__edge(xs[1]), vb}, {tutti__edge(weight), one}};
    tutti_edge fetches[] = {tutti__edge(grads[0]), tutti__edge(grads[1])};
    CHECK_OK(tutti__reference_run(graph, 3, feeds, 2, fetches, values));
    *ret_da = tutti_tensor_get(values[0], 0);
    *ret_db = tutti_tensor_get(values[1], 0);
    tutti_tensor_release(va);
    tutti_tensor_release(vb);
    tutti_tensor_release(one);
    tutti_tensor_release(values[0]);
    tutti_tensor_release(values[1]);
    tutti_graph_destroy(graph);
}

TUTTI_TEST(elementwise_gradients_at_the_kinks)
{
    double da, db;
    gradients_at((tutti_pow), 0, 0, &da, &db);
    CHECK_NEAR(da, 0, 0);
    CHECK_NEAR(db, 0, 0);
    gradients_at((tutti_pow), -2, 3, &da, &db);
    CHECK_NEAR(da, 12, 1e-12);
    CHECK_NEAR(db, 0, 0);
    gradients_at((tutti_pow), 0, 2, &da, &db);
    CHECK_NEAR(da, 0, 0);
    CHECK_NEAR(db, 0, 0);
    gradients_at((tutti_pow), 0, -1, &da, &db); /* y is infinite */
    CHECK_NEAR(db, 0, 0);
    gradients_at((tutti_pow), -2, 0.5, &da, &db); /* y is no number */
    CHECK_NEAR(db, 0, 0);
    gradients_at((tutti_maximum), 1, 1, &da, &db);
    CHECK_NEAR(da, 1, 0);
    CHECK_NEAR(db, 0, 0);
    gradients_at((tutti_minimum), 1, 1, &da, &db);
    CHECK_NEAR(da, 1, 0);
    CHECK_NEAR(db, 0, 0);
}

static tutti_sym sum_of_gelus(tutti_sym a, tutti_sym b)
{
    return tutti_add(tutti_gelu(a, .approximate = true), tutti_gelu(b, .approximate = true));
}

TUTTI_TEST(elementwise_gradients_of_gelu_far_out)
{
    static const double far[] = {20, 1e3, 1e160, INFINITY};
    double da, db;
    for (size_t i = 0; i < TUTTI_COUNT(far); i++) {
        gradients_at(sum_of_gelus, far[i], -far[i], &da, &db);
        CHECK_NEAR(da, 1, 0);
        CHECK_NEAR(db, 0, 0);
    }
}

TUTTI_TEST(elementwise_gradient_nodes_name_the_users_place)
{
    tutti_graph *graph = NULL;
    CHECK_OK(tutti_graph_create(&graph));
    tutti_sym x = input(graph, TUTTI_F32, 1, (int64_t[]){TUTTI_ANY}), grad;
    tutti_sym y = tutti_gelu(x, .approximate = true);
    tutti_sym weight = input(graph, TUTTI_F32, 1, (int64_t[]){TUTTI_ANY});
    CHECK_OK(tutti__gradients(graph, 1, &y, &weight, 1, &x, &grad, NULL));
    for (size_t n = 0; n < graph->nodes.count; n++)
        if (graph->nodes.data[n]->file != NULL)
            CHECK_CONTAINS(graph->nodes.data[n]->file, "elementwise_test.c");
    CHECK_CONTAINS(y.node->file, "elementwise_test.c");
    tutti_graph_destroy(graph);
}
