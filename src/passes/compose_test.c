/* Reductions without a kernel become others; what they give stays what it was. */
#include <math.h>

#include "passes/testing.h"
#include "tutti/tutti.h"

extern const tutti_pass tutti_pass_compose;

static tutti_device *cpu(void)
{
    tutti_device *device;
    CHECK_OK(tutti__device_open("cpu:0", &device));
    return device;
}

TUTTI_TEST(compose_takes_reductions_apart)
{
    tutti_pass_context context = {.device = cpu()};
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 2, 3));
    tutti__test_result(tutti_variance(x, .axes = TUTTI_AXES(1)));
    tutti__test_result(tutti_norm(x, .axes = TUTTI_AXES(0), .ord = 1, .keepdims = true));
    CHECK_INT(tutti__test_pass(
                  &tutti_pass_compose, &context, g,
                  "return variance(p0){axes=[1]}, norm(p0){axes=[0] keepdims=true ord=1}",
                  "return reshape(mean(square(sub(p0, mean(p0){axes=[1] keepdims=true}))){axes=[1] "
                  "keepdims=true}){dims=[2]}, sum(abs(p0)){axes=[0] keepdims=true}"),
              2);
    tutti_graph_destroy(g);
}

/* Nothing to reduce, and a device without kernels. */
TUTTI_TEST(compose_leaves_what_it_cannot_help)
{
    tutti_pass_context context = {.device = cpu()};
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, 2, 0));
    tutti__test_result(tutti_logsumexp(x, .axes = TUTTI_AXES(1)));
    CHECK_INT(tutti__test_rewrite(&tutti_pass_compose, &context, g), 0);
    CHECK_INT(tutti__test_rewrite(&tutti_pass_compose, NULL, g), 0);
    tutti_graph_destroy(g);
}

enum { ROWS = 9, COLUMNS = 4, WAYS = 12 };

static const double numbers[ROWS][COLUMNS] = {
    {1, 2, 3, 4},        {-1, 0.5, 0, -3},      {0, 0, 0, 0},
    {INFINITY, 1, 2, 3}, {-INFINITY, 1, 2, 3},  {-INFINITY, -INFINITY, -INFINITY, -INFINITY},
    {NAN, 1, 2, 3},      {3e4, -3e4, 2e4, 1e4}, {1e-5, -2e-5, 1e-5, 3e-5},
};

static int build(tutti_sym x, tutti_sym *ret)
{
    tutti_sym all[] = {tutti_logsumexp(x, .axes = TUTTI_AXES(1)),
                       tutti_logsumexp(x, .axes = TUTTI_AXES(0), .keepdims = true),
                       tutti_logsumexp(x),
                       tutti_variance(x, .axes = TUTTI_AXES(1)),
                       tutti_variance(x, .axes = TUTTI_AXES(-2)),
                       tutti_variance(x),
                       tutti_norm(x, .axes = TUTTI_AXES(1)),
                       tutti_norm(x, .axes = TUTTI_AXES(0), .keepdims = true),
                       tutti_norm(x),
                       tutti_norm(x, .axes = TUTTI_AXES(1), .ord = 1),
                       tutti_norm(x, .ord = 1),
                       tutti_sum(tutti_logsumexp(tutti_square(x), .axes = TUTTI_AXES(1)))};
    for (int i = 0; i < WAYS; i++)
        ret[i] = all[i];
    return WAYS;
}

static void run_on(const char *device, tutti_tensor *x, tutti_tensor **ret)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_sym ways[WAYS];
    tutti_fetch fetches[WAYS];
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym in = tutti_placeholder(g, tutti_tensor_dtype(x), ROWS, COLUMNS);
    int count = build(in, ways);
    CHECK_OK(tutti_session_open(&s, g, .device = device));
    for (int i = 0; i < count; i++)
        fetches[i] = (tutti_fetch){ways[i], &ret[i]};
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({in, x}), .fetch = {count, fetches}));
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* `least` is a number below which only the distance counts. */
static void check_numbers(tutti_dtype dtype, double least, double tolerance)
{
    tutti_tensor *x, *fast[WAYS], *slow[WAYS];
    CHECK_OK(tutti_tensor_create(dtype, 2, (int64_t[]){ROWS, COLUMNS}, &x));
    for (int64_t i = 0; i < ROWS * COLUMNS; i++)
        tutti_tensor_set(x, i, numbers[i / COLUMNS][i % COLUMNS]);
    run_on("cpu:0", x, fast);
    run_on("whole:0", x, slow);
    for (int w = 0; w < WAYS; w++) {
        for (int64_t i = 0; i < tutti_tensor_count(slow[w]); i++) {
            double is = tutti_tensor_get(fast[w], i), should = tutti_tensor_get(slow[w], i);
            if (isfinite(should))
                CHECK_NEAR(is, should, tolerance * fmax(least, fabs(should)));
            else
                CHECK(isnan(should) ? isnan(is) : is == should);
        }
        tutti_tensor_release(fast[w]);
        tutti_tensor_release(slow[w]);
    }
    tutti_tensor_release(x);
}

TUTTI_TEST(compose_gives_what_the_reference_does)
{
    check_numbers(TUTTI_F32, 1e-12, 1e-5);
    check_numbers(TUTTI_F64, 1e-12, 1e-12);
    check_numbers(TUTTI_BF16, 1e-12, 1e-2);
    check_numbers(TUTTI_F16, 0.03, 2e-3);
}

/* Whose squares f32 does not hold. */
TUTTI_TEST(compose_norms_do_not_overflow)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *x, *y;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){2}, &x));
    tutti_tensor_set(x, 0, 3e30);
    tutti_tensor_set(x, 1, 4e30);
    tutti_sym in = tutti_placeholder(g, TUTTI_F32, 2);
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({in, x}), .fetch = TUTTI_FETCH({tutti_norm(in), &y})));
    CHECK_NEAR(tutti_tensor_get(y, 0), 5e30, 1e25);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}
