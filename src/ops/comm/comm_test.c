/* comm_test.c: shapes along an axis of several devices, and which collective is whose gradient. */
#include <stdio.h>

#include "ops/state/testing.h"

static void check_dims(tutti_sym sym, int64_t first, int64_t second)
{
    tutti_type type = tutti_sym_type(sym);
    CHECK_INT(type.rank, 2);
    CHECK_INT(type.dims[0], first);
    CHECK_INT(type.dims[1], second);
}

TUTTI_TEST(collectives_know_the_size_of_their_axis)
{
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 8, 3),
              open = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 3);
    check_dims(tutti_all_reduce(x, "data", 4, TUTTI_SUM), 8, 3);
    check_dims(tutti_all_gather(x, "data", 4, -1), 8, 12);
    check_dims(tutti_reduce_scatter(x, "data", 4, 0, TUTTI_MEAN), 2, 3);
    check_dims(tutti_all_to_all(x, "data", 4, 0, 1), 2, 12);
    check_dims(tutti_all_to_all(x, "data", 4, 0, 0), 8, 3);
    check_dims(tutti_all_gather(open, "data", 4, 0), TUTTI_ANY, 3);
    check_dims(tutti_broadcast(x, "data", 4, 3), 8, 3);
    tutti_sym y = tutti_recv(g, "cut_1", "far:0", TUTTI_TYPE(TUTTI_F32, 8, 3));
    check_dims(y, 8, 3);
    CHECK_INT(tutti_sym_output_count(tutti_send(x, "cut_1", "far:1")), 0);
    CHECK_OK(tutti_graph_check(g));
    tutti_graph_destroy(g);
}

static void expect(tutti_sym (*build)(tutti_sym x), const char *part)
{
    tutti_graph *g = new_graph();
    CHECK(!tutti_sym_ok(build(tutti_placeholder(g, TUTTI_I32, 7, 3))));
    check_mistake(g, TUTTI_INVALID, part);
}

static tutti_sym uneven(tutti_sym x)
{
    return tutti_reduce_scatter(x, "data", 4, 0, TUTTI_SUM);
}
static tutti_sym no_dim(tutti_sym x)
{
    return tutti_all_gather(x, "data", 4, 2);
}
static tutti_sym no_axis(tutti_sym x)
{
    return tutti_all_reduce(x, "", 4, TUTTI_SUM);
}
static tutti_sym no_size(tutti_sym x)
{
    return tutti_all_reduce(x, "data", 0, TUTTI_SUM);
}
static tutti_sym no_root(tutti_sym x)
{
    return tutti_broadcast(x, "data", 4, 4);
}
static tutti_sym int_mean(tutti_sym x)
{
    return tutti_all_reduce(x, "data", 4, TUTTI_MEAN);
}

TUTTI_TEST(collectives_refuse_what_does_not_fit)
{
    expect(uneven, "dimension 0 of i32[7,3] is not divisible by the 4 devices of axis 'data'");
    expect(no_dim, "axis 2 is outside [-2, 2)");
    expect(no_axis, "needs the name of a mesh axis");
    expect(no_size, "has size 0");
    expect(no_root, "root 4 is no rank");
    expect(int_mean, "a mean of i32 is not defined");
}

/* The operator that made the gradient of x when y = collective(x). */
static const char *gradient_op(tutti_sym (*build)(tutti_sym x))
{
    static char name[64];
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 8, 4);
    tutti_sym grad = tutti_gradient(tutti_sum(build(x)), x);
    CHECK_OK(tutti_graph_check(g));
    check_dims(grad, 8, 4);
    snprintf(name, sizeof name, "%s", tutti_node_op(grad.node));
    tutti_graph_destroy(g);
    return name;
}

static tutti_sym reduce_all(tutti_sym x)
{
    return tutti_all_reduce(x, "data", 4, TUTTI_SUM);
}
static tutti_sym gather_all(tutti_sym x)
{
    return tutti_all_gather(x, "data", 4, 1);
}
static tutti_sym scatter(tutti_sym x)
{
    return tutti_reduce_scatter(x, "data", 4, 1, TUTTI_SUM);
}
static tutti_sym scatter_mean(tutti_sym x)
{
    return tutti_reduce_scatter(x, "data", 4, 1, TUTTI_MEAN);
}
static tutti_sym from_root(tutti_sym x)
{
    return tutti_broadcast(x, "data", 4, 2);
}
static tutti_sym to_root(tutti_sym x)
{
    return tutti_reduce(x, "data", 4, 2, TUTTI_SUM);
}
static tutti_sym exchange(tutti_sym x)
{
    return tutti_all_to_all(x, "data", 4, 0, 1);
}

TUTTI_TEST(collectives_have_collectives_as_gradients)
{
    CHECK_STR(gradient_op(reduce_all), "all_reduce");
    CHECK_STR(gradient_op(gather_all), "reduce_scatter");
    CHECK_STR(gradient_op(scatter), "all_gather");
    CHECK_STR(gradient_op(scatter_mean), "mul");
    CHECK_STR(gradient_op(from_root), "reduce");
    CHECK_STR(gradient_op(to_root), "broadcast");
    CHECK_STR(gradient_op(exchange), "all_to_all");
}

TUTTI_TEST(collectives_of_several_devices_need_a_program)
{
    tutti_graph *g = new_graph();
    tutti_tensor *none = NULL;
    tutti_sym y = tutti_all_reduce(tutti_scalar(g, TUTTI_F32, 1), "data", 4, TUTTI_SUM);
    CHECK_STATUS(try_fetch(y, 0, NULL, &none), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "axis 'data' has 4 devices");
    tutti_sym x = tutti_placeholder(g, TUTTI_F32);
    tutti_gradient(tutti_all_reduce(x, "data", 4, TUTTI_MAX), x);
    check_mistake(g, TUTTI_UNSUPPORTED, "a max over devices has no gradient");
}
