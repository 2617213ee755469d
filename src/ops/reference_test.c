/* reference_test.c: the reference interpreter on small graphs. */
#include "ops/build.h"
#include "ops/reference.h"

#include <string.h>

#include "base/test.h"
#include "tutti/ops.h"

static tutti_graph *new_graph(void)
{
    tutti_graph *graph = NULL;
    CHECK_OK(tutti_graph_create(&graph));
    return graph;
}

static tutti_tensor *scalar(double value)
{
    tutti_tensor *tensor = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 0, NULL, &tensor));
    tutti_tensor_set(tensor, 0, value);
    return tensor;
}

static tutti_tensor *vector(int count, const float *values)
{
    tutti_tensor *tensor = NULL;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){count}, values, &tensor));
    return tensor;
}

static tutti_sym placeholder(tutti_graph *graph, int rank, const int64_t *dims)
{
    tutti_attr attrs[] = {TUTTI_INT("dtype", TUTTI_F32), TUTTI_INTS("dims", rank, dims)};
    return tutti_apply_op(graph, "placeholder", 0, NULL, 2, attrs);
}

TUTTI_TEST(reference_runs_what_is_fetched_and_infers_shapes)
{
    tutti_graph *graph = new_graph();
    tutti_sym x = placeholder(graph, 1, (int64_t[]){TUTTI_ANY});
    tutti_sym y = tutti_mul(tutti_add(x, 1), x);
    tutti_sym unfed = tutti_exp(placeholder(graph, 0, NULL)); /* not needed, so not missed */
    CHECK(tutti_sym_ok(unfed));
    tutti_tensor *value = vector(3, (float[]){1, 2, 3}), *result = NULL;
    tutti_reference_feed feed = {tutti__edge(x), value};
    CHECK_OK(tutti__reference_run(graph, 1, &feed, 1, (tutti_edge[]){tutti__edge(y)}, &result));
    CHECK_INT(tutti_tensor_count(result), 3);
    CHECK_NEAR(tutti_tensor_get(result, 2), 12, 0);
    tutti_tensor_release(result);

    /* An edge inside the graph can be fed, and a fed edge fetched. */
    tutti_reference_feed inner = {tutti__edge(y), value};
    tutti_edge both[] = {tutti__edge(tutti_neg(y)), tutti__edge(y)};
    tutti_tensor *results[2];
    CHECK_OK(tutti__reference_run(graph, 1, &inner, 2, both, results));
    CHECK_NEAR(tutti_tensor_get(results[0], 1), -2, 0);
    CHECK(results[1] == value);
    tutti_tensor_release(results[0]);
    tutti_tensor_release(results[1]);
    tutti_tensor_release(value);
    tutti_graph_destroy(graph);
}

TUTTI_TEST(reference_names_what_is_missing)
{
    tutti_graph *graph = new_graph();
    tutti_sym x = placeholder(graph, 0, NULL);
    tutti_tensor *result = NULL, *value = scalar(1);
    tutti_edge fetch = tutti__edge(tutti_exp(x));
    CHECK_STATUS(tutti__reference_run(graph, 0, NULL, 1, &fetch, &result), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "placeholder");
    tutti_reference_feed twice[] = {{tutti__edge(x), value}, {tutti__edge(x), value}};
    CHECK_STATUS(tutti__reference_run(graph, 2, twice, 1, &fetch, &result), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "fed twice");
    CHECK(result == NULL);
    tutti_tensor_release(value);
    tutti_graph_destroy(graph);
}

TUTTI_TEST(reference_takes_strided_inputs)
{
    tutti_graph *graph = new_graph();
    tutti_sym x = placeholder(graph, 1, (int64_t[]){TUTTI_ANY});
    tutti_tensor *whole = vector(6, (float[]){0, 1, 2, 3, 4, 5}), *odd = NULL, *result = NULL;
    CHECK_OK(tutti_tensor_slice(whole, 0, 5, 3, -2, &odd));
    tutti_reference_feed feed = {tutti__edge(x), odd};
    CHECK_OK(tutti__reference_run(graph, 1, &feed, 1, (tutti_edge[]){tutti__edge(tutti_square(x))},
                                  &result));
    CHECK_NEAR(tutti_tensor_get(result, 0), 25, 0);
    CHECK_NEAR(tutti_tensor_get(result, 2), 1, 0);
    tutti_tensor_release(whole);
    tutti_tensor_release(odd);
    tutti_tensor_release(result);
    tutti_graph_destroy(graph);
}

TUTTI_TEST(reference_updates_variables_in_place_and_in_order)
{
    tutti_graph *graph = new_graph();
    tutti_attr attrs[] = {TUTTI_INT("dtype", TUTTI_F32), TUTTI_INTS("dims", 0, NULL)};
    tutti_sym v = tutti_apply_op(graph, "variable", 0, NULL, 2, attrs),
              x = placeholder(graph, 0, NULL);
    tutti_sym add = tutti_apply_op(graph, "assign_add", 2, (tutti_sym[]){v, x}, 0, NULL),
              after = TUTTI_NO_SYM;
    TUTTI_WITH_CONTROL(graph, add)
        after = tutti_square(v);
    CHECK_OK(tutti_graph_check(graph));
    tutti_tensor *state = scalar(2), *value = scalar(3), *result = NULL;
    tutti_reference_feed feeds[] = {{tutti__edge(v), state}, {tutti__edge(x), value}};
    CHECK_OK(tutti__reference_run(graph, 2, feeds, 1, (tutti_edge[]){tutti__edge(after)}, &result));
    CHECK_NEAR(tutti_tensor_get(result, 0), 25, 0);
    CHECK_NEAR(tutti_tensor_get(state, 0), 5, 0);
    tutti_tensor_release(state);
    tutti_tensor_release(value);
    tutti_tensor_release(result);
    tutti_graph_destroy(graph);
}

TUTTI_TEST(reference_moves_strings_and_lets_results_own_them)
{
    tutti_graph *graph = new_graph();
    tutti_attr strings[] = {TUTTI_INT("dtype", TUTTI_STRING), TUTTI_INTS("dims", 0, NULL)};
    tutti_attr bools[] = {TUTTI_INT("dtype", TUTTI_BOOL), TUTTI_INTS("dims", 0, NULL)};
    tutti_sym c = tutti_apply_op(graph, "placeholder", 0, NULL, 2, bools);
    tutti_sym a = tutti_apply_op(graph, "placeholder", 0, NULL, 2, strings);
    tutti_sym b = tutti_apply_op(graph, "placeholder", 0, NULL, 2, strings);
    tutti_tensor *yes = NULL, *one = NULL, *two = NULL, *result = NULL;
    CHECK_OK(tutti_tensor_from(TUTTI_BOOL, 0, NULL, &(bool){true}, &yes));
    CHECK_OK(tutti_tensor_from(TUTTI_STRING, 0, NULL, &(tutti_string){"one", 3}, &one));
    CHECK_OK(tutti_tensor_from(TUTTI_STRING, 0, NULL, &(tutti_string){"two", 3}, &two));
    tutti_reference_feed feeds[] = {
        {tutti__edge(c), yes}, {tutti__edge(a), one}, {tutti__edge(b), two}};
    CHECK_OK(tutti__reference_run(graph, 3, feeds, 1,
                                  (tutti_edge[]){tutti__edge(tutti_where(c, a, b))}, &result));
    tutti_tensor_release(yes);
    tutti_tensor_release(one);
    tutti_tensor_release(two);
    tutti_string text = tutti_tensor_get_string(result, 0);
    CHECK(text.size == 3 && memcmp(text.data, "one", 3) == 0);
    tutti_tensor_release(result);
    tutti_graph_destroy(graph);
}

static void half(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret, void *context)
{
    ret[0] = tutti_mul(args[0], 0.5);
}

static void twice(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                  void *context)
{
    ret[0] = tutti_mul(args[0], 2);
}

static double run_one(tutti_graph *graph, tutti_sym x, double value, tutti_sym y)
{
    tutti_tensor *tensor = scalar(value), *result = NULL;
    tutti_reference_feed feed = {tutti__edge(x), tensor};
    CHECK_OK(tutti_graph_check(graph));
    CHECK_OK(tutti__reference_run(graph, 1, &feed, 1, (tutti_edge[]){tutti__edge(y)}, &result));
    double number = tutti_tensor_get(result, 0);
    tutti_tensor_release(tensor);
    tutti_tensor_release(result);
    return number;
}

TUTTI_TEST(reference_runs_one_branch)
{
    tutti_graph *graph = new_graph();
    tutti_sym x = placeholder(graph, 0, NULL);
    tutti_sym y = tutti_cond(tutti_greater(x, 1), half, twice, NULL, 1, &x, 1, NULL);
    CHECK_NEAR(run_one(graph, x, 8, y), 4, 0);
    CHECK_NEAR(run_one(graph, x, 0.5, y), 1, 0);
    tutti_graph_destroy(graph);
}

/* variables: i; captures: limit */
static void below(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                  void *context)
{
    ret[0] = tutti_less(args[0], args[2]);
}

/* i = 2 i, n = n + 1 */
static void grow(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret, void *context)
{
    ret[0] = tutti_mul(args[0], 2);
    ret[1] = tutti_add(args[1], 1);
}

TUTTI_TEST(reference_runs_loops)
{
    tutti_graph *graph = new_graph();
    tutti_sym limit = placeholder(graph, 0, NULL), results[2];
    tutti_sym start[] = {tutti__scalar_like(limit, 1), tutti__scalar_like(limit, 0)};
    tutti_while(below, grow, NULL, 2, start, 1, &limit, results);
    CHECK_NEAR(run_one(graph, limit, 100, results[0]), 128, 0);
    CHECK_NEAR(run_one(graph, limit, 100, results[1]), 7, 0);
    CHECK_NEAR(run_one(graph, limit, 0, results[0]), 1, 0); /* no round at all */
    tutti_graph_destroy(graph);
}

TUTTI_TEST(reference_runs_the_gradient_of_a_loop)
{
    tutti_graph *graph = new_graph();
    tutti_sym x = placeholder(graph, 0, NULL), results[2];
    tutti_sym start[] = {x, tutti__scalar_like(x, 0)}, limit = tutti__scalar_like(x, 10);
    tutti_while(below, grow, NULL, 2, start, 1, &limit, results);
    tutti_sym grad = tutti_gradient(tutti_square(results[0]), x);
    /* x = 3: 3, 6, 12 = 4 x, so d (4 x)^2 / d x = 32 x */
    CHECK_NEAR(run_one(graph, x, 3, grad), 96, 1e-4);
    tutti_graph_destroy(graph);
}
