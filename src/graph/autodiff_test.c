#include "graph/autodiff.h"

#include <math.h>
#include <string.h>

#include "base/test.h"
#include "ops/reference.h"
#include "tutti/ops.h"

/* A graph with one f64 input x[n], whose value is given. */
typedef struct bench {
    tutti_graph *graph;
    tutti_sym x;
    tutti_tensor *value;
} bench;

static bench new_bench(int64_t n, const double *values)
{
    bench b = {0};
    CHECK_OK(tutti_graph_create(&b.graph));
    CHECK_OK(tutti_tensor_from(TUTTI_F64, 1, &n, values, &b.value));
    b.x = tutti_placeholder_named(b.graph, "x", TUTTI_F64, n);
    return b;
}

static void end_bench(bench *b)
{
    tutti_tensor_release(b->value);
    tutti_graph_destroy(b->graph);
}

/* The value of a node by the reference kernels; the caller releases it. */
static tutti_tensor *value_of(const bench *b, tutti_sym y)
{
    tutti_tensor *value = NULL;
    tutti_edge fetch = tutti__edge(y);
    tutti_reference_feed feed = {tutti__edge(b->x), b->value};
    CHECK_OK(tutti_graph_check(b->graph));
    CHECK_OK(tutti_graph_verify(b->graph));
    CHECK_OK(tutti__reference_run(b->graph, 1, &feed, 1, &fetch, &value));
    return value;
}

static double sum_of(const bench *b, tutti_sym y)
{
    tutti_tensor *value = value_of(b, y);
    double sum = 0;
    for (int64_t i = 0; i < tutti_tensor_count(value); i++)
        sum += tutti_tensor_get(value, i);
    tutti_tensor_release(value);
    return sum;
}

/* grad = d sum(y) / dx, element by element: (y(x + h) - y(x - h)) / 2h. */
static void agrees(const bench *b, tutti_sym y, tutti_sym grad, double tolerance)
{
    const double h = 1e-5;
    tutti_tensor *actual = value_of(b, grad);
    CHECK_INT(tutti_tensor_count(actual), tutti_tensor_count(b->value));
    for (int64_t i = 0; i < tutti_tensor_count(actual); i++) {
        double x = tutti_tensor_get(b->value, i);
        tutti_tensor_set(b->value, i, x + h);
        double above = sum_of(b, y);
        tutti_tensor_set(b->value, i, x - h);
        double below = sum_of(b, y);
        tutti_tensor_set(b->value, i, x);
        CHECK_NEAR(tutti_tensor_get(actual, i), (above - below) / (2 * h), tolerance);
    }
    tutti_tensor_release(actual);
}

TUTTI_TEST(a_chain_is_differentiated)
{
    bench b = new_bench(3, (double[]){0.3, -0.7, 1.2});
    tutti_sym y = tutti_exp(tutti_sin(tutti_mul(b.x, b.x)));
    agrees(&b, y, tutti_gradient(y, b.x), 1e-8);
    end_bench(&b);
}

TUTTI_TEST(contributions_of_several_users_add_up)
{
    bench b = new_bench(3, (double[]){0.3, -0.7, 1.2});
    tutti_sym a = tutti_sin(b.x), y = tutti_add(tutti_mul(a, b.x), tutti_sub(a, tutti_mul(a, a)));
    agrees(&b, y, tutti_gradient(y, b.x), 1e-8);
    agrees(&b, b.x, tutti_gradient(b.x, b.x), 1e-8); /* of itself: ones */
    end_bench(&b);
}

TUTTI_TEST(second_and_third_derivatives)
{
    bench b = new_bench(3, (double[]){0.3, -0.7, 1.2});
    tutti_sym y = tutti_tanh(tutti_mul(b.x, tutti_exp(b.x)));
    tutti_sym first = tutti_gradient(y, b.x), second = tutti_gradient(first, b.x);
    agrees(&b, y, first, 1e-8);
    agrees(&b, first, second, 1e-7);
    agrees(&b, second, tutti_gradient(second, b.x), 1e-6);
    end_bench(&b);
}

TUTTI_TEST(broadcasting_sums_back)
{
    bench b = new_bench(1, (double[]){0.3});
    tutti_tensor *rows = NULL;
    CHECK_OK(
        tutti_tensor_from(TUTTI_F64, 2, (int64_t[]){2, 3}, (double[]){1, 2, 3, 4, 5, 6}, &rows));
    tutti_sym y = tutti_mul(tutti_sin(b.x), tutti_constant(b.graph, rows));
    tutti_tensor_release(rows);
    agrees(&b, y, tutti_gradient(y, b.x), 1e-7);
    end_bench(&b);
}

/* Gradients with respect to nodes in the middle, and to several at once. */
TUTTI_TEST(several_xs_are_differentiated_at_once)
{
    bench b = new_bench(2, (double[]){0.3, -0.7});
    tutti_sym a = tutti_sin(b.x), c = tutti_exp(a), y = tutti_mul(c, b.x);
    tutti_sym xs[] = {b.x, a, y};
    tutti_grad grads[3];
    tutti_gradients(y, 3, xs, grads);
    CHECK_OK(tutti_graph_check(b.graph));
    agrees(&b, y, grads[0].value, 1e-8);
    tutti_tensor *da = value_of(&b, grads[1].value), *dy = value_of(&b, grads[2].value);
    for (int i = 0; i < 2; i++) {
        double x = tutti_tensor_get(b.value, i);
        CHECK_NEAR(tutti_tensor_get(da, i), exp(sin(x)) * x, 1e-12); /* dy/da = e^a x */
        CHECK_NEAR(tutti_tensor_get(dy, i), 1, 0);
    }
    tutti_tensor_release(da);
    tutti_tensor_release(dy);
    end_bench(&b);
}

TUTTI_TEST(weights_of_the_outputs_are_taken)
{
    bench b = new_bench(2, (double[]){0.3, -0.7});
    tutti_sym ys[] = {tutti_sin(b.x), tutti_exp(b.x)};
    tutti_sym weights[] = {tutti_scalar(b.graph, TUTTI_F64, 0), TUTTI_NO_SYM}, grad = TUTTI_NO_SYM;
    weights[0] = tutti_mul(tutti_scalar(b.graph, TUTTI_F64, 3), ys[1]);
    CHECK_OK(tutti__gradients(b.graph, 2, ys, weights, 1, &b.x, &grad, NULL));
    tutti_tensor *dx = value_of(&b, grad);
    for (int i = 0; i < 2; i++) { /* 3 e^x cos x + e^x */
        double x = tutti_tensor_get(b.value, i);
        CHECK_NEAR(tutti_tensor_get(dx, i), 3 * exp(x) * cos(x) + exp(x), 1e-12);
    }
    tutti_tensor_release(dx);
    end_bench(&b);
}

TUTTI_TEST(an_x_that_does_not_matter_gets_no_node)
{
    bench b = new_bench(2, (double[]){0.3, -0.7});
    tutti_sym other = tutti_placeholder_named(b.graph, "other", TUTTI_F64, 2);
    tutti_sym whole = tutti_placeholder_named(b.graph, "whole", TUTTI_I64, 2);
    tutti_sym y = tutti_add(tutti_sin(b.x), tutti_cast(whole, TUTTI_F64));
    tutti_sym stopped = tutti_mul(tutti_stop_gradient(other), y);
    tutti_sym xs[] = {b.x, other, whole};
    tutti_grad grads[3];
    tutti_gradients(stopped, 3, xs, grads);
    CHECK_OK(tutti_graph_check(b.graph));
    CHECK(tutti_grad_ok(grads[0]));
    CHECK(!tutti_grad_ok(grads[1]) && !tutti_grad_ok(grads[2]));
    size_t nodes = tutti_graph_node_count(b.graph);
    tutti_sym zeros = tutti_gradient(tutti_sin(b.x), other);
    CHECK_OK(tutti_graph_check(b.graph));
    CHECK(tutti_graph_node_count(b.graph) <= nodes + 3);
    CHECK_STR(tutti_node_op(zeros.node), "zeros_like");
    end_bench(&b);
}

TUTTI_TEST(gradient_nodes_stand_in_their_own_scope)
{
    bench b = new_bench(2, (double[]){0.3, -0.7});
    tutti_sym grad = tutti_gradient(tutti_sin(b.x), b.x);
    CHECK(strncmp(tutti_node_name(grad.node), "gradients/", 10) == 0);
    CHECK_CONTAINS(grad.node->file, "autodiff_test.c");
    end_bench(&b);
}

static tutti_grad ten_times(tutti_sym forward, tutti_grad grad, void *context)
{
    ++*(int *)context;
    grad.value = tutti_mul(grad.value, tutti_scalar(tutti_sym_graph(forward), TUTTI_F64, 10));
    return grad;
}

static tutti_grad nothing(tutti_sym forward, tutti_grad grad, void *context)
{
    TUTTI_UNUSED(forward);
    TUTTI_UNUSED(grad);
    TUTTI_UNUSED(context);
    return (tutti_grad){0};
}

TUTTI_TEST(hooks_replace_complete_gradients)
{
    bench b = new_bench(2, (double[]){0.3, -0.7});
    tutti_sym a = tutti_sin(b.x), y = tutti_add(tutti_mul(a, a), a);
    int calls = 0;
    tutti_on_gradient(a, ten_times, &calls);
    tutti_sym grad = tutti_gradient(y, b.x);
    CHECK_INT(calls, 1); /* once, with the sum of both uses */
    tutti_tensor *dx = value_of(&b, grad);
    for (int i = 0; i < 2; i++) {
        double x = tutti_tensor_get(b.value, i);
        CHECK_NEAR(tutti_tensor_get(dx, i), 10 * (2 * sin(x) + 1) * cos(x), 1e-12);
    }
    tutti_tensor_release(dx);
    tutti_on_gradient(a, nothing, NULL);
    tutti_sym xs[] = {b.x};
    tutti_grad none;
    tutti_gradients(y, 1, xs, &none);
    CHECK_OK(tutti_graph_check(b.graph));
    CHECK(!tutti_grad_ok(none));
    CHECK_INT(calls, 2);
    end_bench(&b);
}

static tutti_grad in_f32(tutti_sym forward, tutti_grad grad, void *context)
{
    TUTTI_UNUSED(forward);
    TUTTI_UNUSED(context);
    return (tutti_grad){.value = tutti_cast(grad.value, TUTTI_F32)};
}

TUTTI_TEST(hooks_that_give_something_else_are_refused)
{
    bench b = new_bench(2, (double[]){0.3, -0.7});
    tutti_sym a = tutti_sin(b.x);
    tutti_on_gradient(a, in_f32, NULL);
    tutti_gradient(tutti_mul(a, a), b.x);
    CHECK_STATUS(tutti_graph_check(b.graph), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "a hook gives f32[2]");
    CHECK_CONTAINS(tutti_error_message(), "as the gradient of 'sin' of f64[2]");
    end_bench(&b);
}

static tutti_grad of_another_graph(tutti_sym forward, tutti_grad grad, void *context)
{
    TUTTI_UNUSED(forward);
    TUTTI_UNUSED(grad);
    return (tutti_grad){.value = *(tutti_sym *)context};
}

TUTTI_TEST(hooks_that_give_what_belongs_to_another_graph_are_refused)
{
    bench b = new_bench(2, (double[]){0.3, -0.7}), other = new_bench(2, (double[]){0, 0});
    tutti_sym a = tutti_sin(b.x);
    tutti_on_gradient(a, of_another_graph, &other.x);
    tutti_gradient(tutti_mul(a, a), b.x);
    CHECK_STATUS(tutti_graph_check(b.graph), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "of another graph as the gradient of 'sin'");
    end_bench(&b);
    end_bench(&other);
}

static tutti_status never(const tutti_kernel_call *call)
{
    return tutti_fail(TUTTI_UNSUPPORTED, "%s is never run", call->op->name);
}

TUTTI_TEST(an_operator_without_gradient_is_a_mistake)
{
    static const tutti_op rough = {.struct_size = sizeof(tutti_op),
                                   .name = "test.rough",
                                   .version = 1,
                                   .min_inputs = 1,
                                   .max_inputs = 1,
                                   .outputs = 1,
                                   .infer = tutti_infer_same,
                                   .reference = never};
    bench b = new_bench(2, (double[]){0.3, -0.7});
    CHECK_OK(tutti_op_register(&rough));
    tutti_sym y = tutti_apply_op(b.graph, "test.rough", 1, &b.x, 0, NULL);
    CHECK(tutti_sym_ok(tutti_gradient(tutti_stop_gradient(y), b.x)));
    CHECK_OK(tutti_graph_check(b.graph));
    CHECK(!tutti_sym_ok(tutti_gradient(y, b.x)));
    CHECK_STATUS(tutti_graph_check(b.graph), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "test.rough 'test.rough' (");
    CHECK_CONTAINS(tutti_error_message(), "has no gradient; put tutti_stop_gradient before it");
    CHECK_CONTAINS(tutti_error_message(), "autodiff_test.c:");
    end_bench(&b);
}

/* y = x, of which nobody told how it is differentiated. */
static tutti_sym opaque(tutti_sym x)
{
    static tutti_op op;
    if (!op.name) {
        op = *tutti_op_find("identity");
        op.name = "test.opaque";
        op.gradient = NULL;
        CHECK_OK(tutti_op_register(&op));
    }
    return tutti_apply_op(tutti_sym_graph(x), "test.opaque", 1, &x, 0, NULL);
}

/* Checks that the gradient is factor x^power, element by element. */
static void is_power(const bench *b, tutti_sym grad, double factor, double power)
{
    tutti_tensor *value = value_of(b, grad);
    for (int64_t i = 0; i < tutti_tensor_count(b->value); i++)
        CHECK_NEAR(tutti_tensor_get(value, i), factor * pow(tutti_tensor_get(b->value, i), power),
                   1e-12);
    tutti_tensor_release(value);
}

TUTTI_TEST(no_gradient_is_asked_of_what_stands_behind_stop_gradient)
{
    bench b = new_bench(2, (double[]){0.3, 0.7});
    tutti_sym stopped = tutti_stop_gradient(b.x);
    tutti_sym held[] = {opaque(stopped), tutti_stop_gradient(opaque(b.x)), opaque(opaque(stopped)),
                        opaque(tutti_neg(tutti_neg(stopped)))};
    for (int i = 0; i < 4; i++) {
        tutti_sym y = tutti_mul(tutti_mul(b.x, tutti_mul(b.x, b.x)), held[i]);
        tutti_sym first = tutti_gradient(y, b.x), second = tutti_gradient(first, b.x);
        CHECK_OK(tutti_graph_check(b.graph));
        is_power(&b, first, 3, 3);
        is_power(&b, second, 6, 2);
    }
    tutti_sym whole = tutti_cast(tutti_cast(b.x, TUTTI_I64), TUTTI_F64);
    is_power(&b, tutti_gradient(tutti_add(b.x, opaque(whole)), b.x), 1, 0);
    is_power(&b, tutti_gradient(tutti_mul(stopped, stopped), stopped), 2, 1);
    end_bench(&b);
}

static void half_opaque(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                        void *context)
{
    TUTTI_UNUSED(body);
    TUTTI_UNUSED(context);
    tutti_sym held = count > 1 ? args[1] : tutti_stop_gradient(args[0]);
    ret[0] = tutti_mul(args[0], opaque(held));
}

static void above_half(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                       void *context)
{
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_greater(tutti_max(args[0]), tutti_scalar(body, TUTTI_F64, 0.5));
}

/* In the body, and before the argument that leads there. */
TUTTI_TEST(stop_gradient_holds_in_branches_and_loops)
{
    bench b = new_bench(2, (double[]){0.3, 0.7});
    tutti_sym args[] = {b.x, tutti_stop_gradient(b.x)};
    for (int count = 1; count <= 2; count++) {
        tutti_sym pred = tutti_cast(tutti_scalar(b.graph, TUTTI_F64, 1), TUTTI_BOOL);
        tutti_sym y = tutti_cond(pred, half_opaque, half_opaque, NULL, count, args, 1, NULL);
        is_power(&b, tutti_gradient(y, b.x), 1, 1);
        y = tutti_while(above_half, half_opaque, NULL, 1, args, count - 1, args + 1, NULL);
        is_power(&b, tutti_gradient(y, b.x), 1, 1); /* one round */
    }
    end_bench(&b);
}

/* A hook on what stands behind stop_gradient is called as one before it is. */
TUTTI_TEST(hooks_behind_stop_gradient_see_gradients)
{
    bench b = new_bench(2, (double[]){0.3, 0.7});
    tutti_sym held = tutti_stop_gradient(b.x), behind = tutti_neg(held);
    tutti_sym y = tutti_add(tutti_mul(b.x, b.x), tutti_mul(behind, behind));
    int calls = 0;
    tutti_on_gradient(held, ten_times, &calls);
    tutti_on_gradient(behind, ten_times, &calls);
    is_power(&b, tutti_gradient(y, b.x), 2, 1);
    CHECK_INT(calls, 2);
    end_bench(&b);
}

static tutti_status sums_up(tutti_gradient_call *rule)
{
    rule->input_grads[0] = tutti_sum(rule->output_grads[0]);
    return TUTTI_OK;
}

TUTTI_TEST(rules_that_give_another_shape_are_refused)
{
    static const tutti_op odd = {.struct_size = sizeof(tutti_op),
                                 .name = "test.odd",
                                 .version = 1,
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .outputs = 1,
                                 .infer = tutti_infer_same,
                                 .gradient = sums_up,
                                 .reference = never};
    bench b = new_bench(2, (double[]){0.3, -0.7});
    CHECK_OK(tutti_op_register(&odd));
    tutti_gradient(tutti_apply_op(b.graph, "test.odd", 1, &b.x, 0, NULL), b.x);
    CHECK_STATUS(tutti_graph_check(b.graph), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "test.odd gives f64[]");
    CHECK_CONTAINS(tutti_error_message(), "of f64[2]");
    end_bench(&b);
}

TUTTI_TEST(only_floats_are_differentiated)
{
    bench b = new_bench(2, (double[]){0.3, -0.7});
    tutti_sym whole = tutti_cast(b.x, TUTTI_I32);
    tutti_gradient(whole, b.x);
    CHECK_STATUS(tutti_graph_check(b.graph), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "is i32; only floats have gradients");
    CHECK(!tutti_sym_ok(tutti_gradient(TUTTI_NO_SYM, b.x)));
    end_bench(&b);
}

TUTTI_TEST(queues_are_not_differentiated)
{
    bench b = new_bench(2, (double[]){0.3, -0.7});
    tutti_sym queue = tutti_fifo_queue(b.graph, 4, TUTTI_TYPE(TUTTI_F32));
    CHECK(!tutti_sym_ok(tutti_gradient(tutti_sin(b.x), queue)));
    CHECK_STATUS(tutti_graph_check(b.graph), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "x 'queue' is a queue; values and variables have");
    end_bench(&b);
}

TUTTI_TEST(strangers_are_not_differentiated)
{
    bench b = new_bench(2, (double[]){0.3, -0.7}), other = new_bench(1, (double[]){1});
    tutti_gradient(tutti_sin(b.x), other.x);
    CHECK_STATUS(tutti_graph_check(b.graph), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "x 0 ('x') belongs to another graph");
    CHECK_OK(tutti_graph_check(other.graph));
    end_bench(&b);
    end_bench(&other);
}

/* Rows of a table w[4, 2], picked twice: the gradient is rows and their indices, not the table. */
TUTTI_TEST(gathers_give_rows)
{
    bench b = new_bench(8, (double[]){1, 2, 3, 4, 5, 6, 7, 8});
    tutti_sym w = tutti_variable(b.graph, tutti_zeros(4, 2), .dtype = TUTTI_F64, .name = "w");
    tutti_sym first = tutti_gather(w, tutti_ints(b.graph, 3, 1, 3), 0);
    tutti_sym second = tutti_gather(w, tutti_ints(b.graph, 0, 1), 0);
    tutti_sym y = tutti_add(tutti_sum(tutti_mul(first, first)), tutti_sum(second));
    tutti_grad grad = {0};
    tutti_gradients(y, 1, &w, &grad);
    CHECK_OK(tutti_graph_check(b.graph));
    CHECK(tutti_grad_ok(grad) && tutti_sym_ok(grad.rows));
    tutti_type rows = tutti_sym_type(grad.value), indices = tutti_sym_type(grad.rows);
    CHECK_INT(rows.rank, 2);
    CHECK_INT(rows.dims[0], 5); /* both gathers' rows */
    CHECK_INT(rows.dims[1], 2);
    CHECK_INT(indices.rank, 1);
    CHECK_INT(indices.dims[0], 5);
    tutti_sym dense = tutti_grad_dense(grad, w);
    CHECK_OK(tutti_graph_check(b.graph));
    tutti_tensor *table = NULL, *value = NULL;
    CHECK_OK(
        tutti_tensor_from(TUTTI_F64, 2, (int64_t[]){4, 2}, tutti_tensor_data(b.value), &table));
    tutti_edge fetch = tutti__edge(dense);
    tutti_reference_feed feed = {tutti__edge(w), table};
    CHECK_OK(tutti__reference_run(b.graph, 1, &feed, 1, &fetch, &value));
    /* d/dw: row 0 once by the sum, row 1 twice w plus one, row 3 twice w each time it was picked */
    const double expected[] = {1, 1, 2 * 3 + 1, 2 * 4 + 1, 0, 0, 2 * 2 * 7, 2 * 2 * 8};
    for (int i = 0; i < 8; i++)
        CHECK_NEAR(tutti_tensor_get(value, i), expected[i], 1e-12);
    tutti_tensor_release(table);
    tutti_tensor_release(value);
    end_bench(&b);
}

/* One table, looked up by indices of both types. */
TUTTI_TEST(rows_of_i32_and_i64_add_up)
{
    bench b = new_bench(4, (double[]){1, 2, 3, 4});
    tutti_sym wide = tutti_ints(b.graph, 3, 1), narrow = tutti_cast(wide, TUTTI_I32);
    tutti_sym ids[][3] = {{narrow, wide, narrow}, {narrow, narrow, narrow}, {wide, narrow, narrow}};
    for (int i = 0; i < 3; i++) {
        tutti_sym y = tutti_scalar(b.graph, TUTTI_F64, 0);
        for (int k = 0; k < 3; k++) {
            tutti_sym picked = tutti_gather(b.x, ids[i][k], 0);
            y = tutti_add(y, tutti_sum(tutti_mul(picked, picked)));
        }
        tutti_grad grad = {0};
        tutti_gradients(y, 1, &b.x, &grad);
        CHECK_OK(tutti_graph_check(b.graph));
        CHECK_INT(tutti_sym_type(grad.rows).dtype, i == 1 ? TUTTI_I32 : TUTTI_I64);
        CHECK_INT(tutti_sym_type(grad.rows).dims[0], 6);
        agrees(&b, y, tutti_grad_dense(grad, b.x), 1e-7);
    }
    end_bench(&b);
}

/* Where one use is dense, the whole gradient is. */
TUTTI_TEST(rows_and_dense_gradients_add_up)
{
    bench b = new_bench(4, (double[]){1, 2, 3, 4});
    tutti_sym picked = tutti_gather(b.x, tutti_ints(b.graph, 2, 2), 0);
    tutti_sym y = tutti_add(tutti_sum(tutti_mul(picked, picked)), tutti_sum(tutti_sin(b.x)));
    tutti_grad grad = {0};
    tutti_gradients(y, 1, &b.x, &grad);
    CHECK_OK(tutti_graph_check(b.graph));
    CHECK(tutti_grad_ok(grad) && !tutti_sym_ok(grad.rows));
    agrees(&b, y, grad.value, 1e-7);
    end_bench(&b);
}

/* The same variable as handle and as value. */
TUTTI_TEST(variables_are_differentiated_through_their_reads)
{
    bench b = new_bench(2, (double[]){0.3, -0.7});
    tutti_sym v = tutti_variable(b.graph, tutti_zeros(2), .dtype = TUTTI_F64, .name = "v");
    tutti_sym y = tutti_mul(tutti_sin(v), b.x), grad = tutti_gradient(y, v);
    tutti_tensor *state = NULL, *value = NULL;
    CHECK_OK(tutti_tensor_from(TUTTI_F64, 1, (int64_t[]){2}, (double[]){0.1, 0.2}, &state));
    tutti_edge fetch = tutti__edge(grad);
    tutti_reference_feed feeds[] = {{tutti__edge(b.x), b.value}, {tutti__edge(v), state}};
    CHECK_OK(tutti_graph_check(b.graph));
    CHECK_OK(tutti__reference_run(b.graph, 2, feeds, 1, &fetch, &value));
    CHECK_NEAR(tutti_tensor_get(value, 0), 0.3 * cos(0.1), 1e-12);
    CHECK_NEAR(tutti_tensor_get(value, 1), -0.7 * cos(0.2), 1e-12);
    tutti_tensor_release(state);
    tutti_tensor_release(value);
    end_bench(&b);
}

static void twice_sin(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                      void *context)
{
    TUTTI_UNUSED(body);
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_sin(tutti_mul(args[0], args[0]));
}

static void exponential(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                        void *context)
{
    TUTTI_UNUSED(body);
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_exp(args[0]);
}

static void small(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                  void *context)
{
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_less(tutti_sum(tutti_mul(args[0], args[0])), tutti_scalar(body, TUTTI_F64, 30));
}

TUTTI_TEST(branches_and_loops_are_differentiated)
{
    for (int side = 0; side < 2; side++) {
        bench b = new_bench(2, (double[]){0.3, -0.7});
        tutti_sym pred = tutti_cast(tutti_scalar(b.graph, TUTTI_F64, side), TUTTI_BOOL);
        tutti_sym y = tutti_cond(pred, twice_sin, exponential, NULL, 1, &b.x, 1, NULL);
        agrees(&b, y, tutti_gradient(y, b.x), 1e-7);
        end_bench(&b);
    }
    bench b = new_bench(2, (double[]){0.3, 0.2});
    tutti_sym y = tutti_while(small, exponential, NULL, 1, &b.x, 0, NULL, NULL);
    agrees(&b, y, tutti_gradient(y, b.x), 1e-3);
    end_bench(&b);
}
