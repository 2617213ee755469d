/* partition_test.c: nodes get their devices, and a graph becomes one piece per device. */
#include <string.h>

#include "passes/pass.h"
#include "passes/testing.h"
#include "tutti/ops.h"

static tutti_sym input(tutti_graph *g, int index)
{
    return tutti__test_input(g, index, TUTTI_TYPE(TUTTI_F32, 4));
}

static void run_target(tutti_sym sym)
{
    CHECK(TUTTI_VEC_PUSH(&sym.node->graph->targets, sym.node));
}

typedef struct pieces {
    int count;
    tutti_piece_graph *list;
} pieces;

static pieces cut(tutti_graph *g)
{
    pieces p;
    CHECK_OK(tutti_graph_check(g));
    CHECK_OK(tutti__graph_prune(g));
    CHECK_OK(tutti__place(g, "cpu:0"));
    CHECK_OK(tutti__partition(g, &p.count, &p.list));
    for (int i = 0; i < p.count; i++)
        CHECK_OK(tutti_graph_verify(p.list[i].graph));
    return p;
}

static tutti_graph *piece_on(const pieces *p, const char *device)
{
    for (int i = 0; i < p->count; i++)
        if (strcmp(p->list[i].device, device) == 0)
            return p->list[i].graph;
    tutti__test_fail(__FILE__, __LINE__, "there is no piece on %s", device);
}

static void check_text(const pieces *p, const char *device, const char *text)
{
    CHECK_STR(tutti__test_text(piece_on(p, device)), text);
}

static int count_ops(const tutti_graph *g, const char *op)
{
    int count = 0;
    for (size_t n = 0; n < g->nodes.count; n++)
        count += tutti__is(g->nodes.data[n], op);
    return count;
}

static bool waits_for(const tutti_node *node, const tutti_node *before)
{
    for (int i = 0; i < node->control_count; i++)
        if (node->controls[i] == before)
            return true;
    return false;
}

static void end(pieces *p, tutti_graph *g)
{
    tutti__partition_free(p->count, p->list);
    tutti_graph_destroy(g);
}

TUTTI_TEST(partition_leaves_one_device_alone)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = input(g, 0);
    tutti__test_result(tutti_add(tutti_exp(x), input(g, 1)));
    pieces p = cut(g);
    CHECK_INT(p.count, 1);
    CHECK_INT(p.list[0].parameter_count, 2);
    check_text(&p, "cpu:0", tutti__test_text(g));
    end(&p, g);
}

/* One value used twice travels once; constants and parameters are copied, not sent. */
TUTTI_TEST(partition_sends_a_value_once_to_each_device)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = input(g, 0), y = input(g, 1), one = tutti_scalar(g, TUTTI_F32, 1), e,
              a = TUTTI_NO_SYM, b = TUTTI_NO_SYM;
    e = tutti_exp(x);
    TUTTI_WITH_DEVICE(g, "far:0")
        a = tutti_add(tutti_mul(e, e), tutti_add(e, tutti_mul(y, one)));
    TUTTI_WITH_DEVICE(g, "far:1")
        b = tutti_sub(e, one);
    tutti__test_result(b);
    tutti__test_result(a);
    pieces p = cut(g);
    CHECK_INT(p.count, 3);
    tutti_graph *home = piece_on(&p, "cpu:0"), *first = piece_on(&p, "far:0"),
                *second = piece_on(&p, "far:1");
    CHECK_INT(count_ops(home, "send"), 2);
    CHECK_INT(count_ops(first, "recv"), 1);
    CHECK_INT(count_ops(second, "recv"), 1);
    CHECK_INT(count_ops(first, "constant"), 1);
    CHECK_INT(count_ops(second, "constant"), 1);
    CHECK_INT(count_ops(home, "constant"), 0);
    for (int i = 0; i < p.count; i++) {
        if (p.list[i].graph == home)
            CHECK_INT(p.list[i].parameters[0], 0);
        if (p.list[i].graph == first) { /* its only parameter is the job's second, its result too */
            CHECK_INT(p.list[i].parameter_count, 1);
            CHECK_INT(p.list[i].parameters[0], 1);
            CHECK_INT(p.list[i].results[0], 1);
        }
        if (p.list[i].graph == second)
            CHECK_INT(p.list[i].results[0], 0);
    }
    end(&p, g);
}

TUTTI_TEST(partition_carries_control_edges)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = input(g, 0), v = tutti_variable(g, tutti_zeros(4), .name = "v"),
              add = tutti_assign_add(v, x), after = TUTTI_NO_SYM;
    TUTTI_WITH_DEVICE(g, "far:0")
        TUTTI_WITH_CONTROL(g, add)
            after = tutti_exp(x);
    tutti__test_result(after);
    pieces p = cut(g);
    tutti_graph *home = piece_on(&p, "cpu:0"), *far = piece_on(&p, "far:0");
    CHECK_INT(count_ops(home, "assign_add"), 1);
    CHECK_INT(count_ops(home, "send"), 1);
    CHECK_INT(count_ops(far, "recv"), 1);
    for (size_t n = 0; n < far->nodes.count; n++) {
        const tutti_node *node = far->nodes.data[n];
        if (tutti__is(node, "recv"))
            CHECK_INT(tutti__int(node, "late"), 1);
        if (tutti__is(node, "exp"))
            CHECK(node->control_count == 1 && tutti__is(node->controls[0], "recv"));
    }
    end(&p, g);
}

/* Work that does not need a sum comes before it, wherever the graph has it: a device that met first
 * and one that worked first would take turns. */
TUTTI_TEST(partition_has_devices_meet_when_there_is_nothing_else_to_do)
{
    static const char *const devices[] = {"far:0", "far:1"};
    tutti_graph *g = tutti__test_graph();
    for (int i = 0; i < 2; i++)
        TUTTI_WITH_DEVICE(g, devices[i]) {
            tutti_sym e = tutti_exp(input(g, 0)), worked = i ? tutti_tanh(e) : TUTTI_NO_SYM;
            tutti_sym sum = tutti_all_reduce(e, "batch", 2, TUTTI_SUM);
            tutti__test_result(tutti_sqrt(sum));
            tutti__test_result(i ? worked : tutti_tanh(e));
        }
    pieces p = cut(g);
    for (int i = 0; i < 2; i++) {
        const tutti_graph *piece = piece_on(&p, devices[i]);
        const char *const order[] = {"exp", "tanh", "all_reduce", "sqrt"};
        size_t found = 0;
        for (size_t n = 0; n < piece->nodes.count; n++)
            found += found < TUTTI_COUNT(order) && tutti__is(piece->nodes.data[n], order[found]);
        CHECK_INT(found, TUTTI_COUNT(order));
    }
    end(&p, g);
}

/* Of two sums that do not need each other the second device wants something from the first device
 * in between. Nothing but its place keeps that send from being put off until after the second sum,
 * where the first device would wait for the second, and the second for what is sent. */
TUTTI_TEST(partition_sends_before_a_collective_what_stands_before_it)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym first[2], second[2], sent = TUTTI_NO_SYM;
    static const char *const devices[] = {"far:0", "far:1"};
    for (int i = 0; i < 2; i++)
        TUTTI_WITH_DEVICE(g, devices[i])
            first[i] = tutti_all_reduce(tutti_exp(input(g, 0)), "batch", 2, TUTTI_SUM);
    TUTTI_WITH_DEVICE(g, devices[0])
        sent = tutti_tanh(first[0]);
    TUTTI_WITH_DEVICE(g, devices[1])
        tutti__test_result(tutti_add(first[1], sent));
    for (int i = 0; i < 2; i++)
        TUTTI_WITH_DEVICE(g, devices[i]) {
            second[i] = tutti_all_reduce(tutti_sqrt(input(g, 0)), "batch", 2, TUTTI_SUM);
            tutti__test_result(second[i]);
        }
    pieces p = cut(g);
    const tutti_node *send = NULL, *recv = NULL, *sums[2][2] = {{0}};
    for (int i = 0; i < 2; i++) {
        const tutti_graph *piece = piece_on(&p, devices[i]);
        int found = 0;
        for (size_t n = 0; n < piece->nodes.count; n++) {
            const tutti_node *node = piece->nodes.data[n];
            send = tutti__is(node, "send") ? node : send;
            recv = tutti__is(node, "recv") ? node : recv;
            if (tutti__is(node, "all_reduce") && found < 2)
                sums[i][found++] = node;
        }
        CHECK_INT(found, 2);
    }
    CHECK(send != NULL && recv != NULL);
    CHECK(waits_for(sums[0][1], send));
    CHECK(waits_for(sums[0][1], sums[0][0]));
    CHECK(waits_for(sums[1][1], sums[1][0]));
    CHECK(waits_for(recv, sums[1][0]));
    end(&p, g);
}

TUTTI_TEST(partition_says_when_a_failure_may_follow_an_update)
{
    for (int fails = 0; fails < 2; fails++) {
        tutti_graph *g = tutti__test_graph();
        tutti_sym x = input(g, 0), v = tutti_variable(g, tutti_zeros(4), .name = "v"),
                  add = tutti_assign_add(v, x), last = TUTTI_NO_SYM;
        TUTTI_WITH_DEVICE(g, "far:0")
            last = fails ? tutti_check_numerics(add, "new")
                         : tutti_exp(tutti_check_numerics(x, "input"));
        run_target(add);
        tutti__test_result(last);
        pieces p = cut(g);
        for (int i = 0; i < p.count; i++)
            CHECK_INT(p.list[i].shadows, fails);
        end(&p, g);
    }
}

TUTTI_TEST(place_follows_scopes_handles_and_inputs)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = input(g, 0), v = TUTTI_NO_SYM, near = TUTTI_NO_SYM, wish = TUTTI_NO_SYM;
    TUTTI_WITH_DEVICE(g, "/job:ps/task:3/far:1")
        v = tutti_variable(g, tutti_zeros(4), .name = "v");
    tutti_sym add = tutti_assign_add(v, x), next = tutti_exp(add), free_one = tutti_neg(x);
    TUTTI_WITH_COLOCATION(g, v)
        near = tutti_exp(x);
    TUTTI_WITH_DEVICE(g, "/job:worker")
        wish = tutti_sin(x);
    run_target(next);
    run_target(free_one);
    run_target(near);
    run_target(wish);
    CHECK_OK(tutti_graph_check(g));
    CHECK_OK(tutti__place(g, "far:5"));
    CHECK_STR(v.node->device, "far:1");
    CHECK_STR(add.node->device, "far:1");
    CHECK_STR(next.node->device, "far:1");
    CHECK_STR(near.node->device, "far:1");
    CHECK_STR(free_one.node->device, "far:5");
    CHECK_STR(wish.node->device, "far:5");
    CHECK_STR(x.node->device, "");
    tutti_graph_destroy(g);
}

TUTTI_TEST(place_names_a_device_that_does_not_exist)
{
    tutti_graph *g = tutti__test_graph();
    TUTTI_WITH_DEVICE(g, "nowhere:9")
        tutti__test_result(tutti_exp(input(g, 0)));
    CHECK_STATUS(tutti__place(g, "cpu:0"), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "nowhere:9");
    CHECK_CONTAINS(tutti_error_message(), "exp");
    CHECK_CONTAINS(tutti_error_message(), "partition_test.c");
    tutti_graph_destroy(g);
}

/* A device that cannot run a node leaves it to the cpu, unless the user wished it there. */
TUTTI_TEST(place_leaves_to_the_cpu_what_a_device_cannot_run)
{
    for (int wished = 0; wished < 2; wished++) {
        tutti_graph *g = tutti__test_graph();
        tutti_sym x = input(g, 0), inner = TUTTI_NO_SYM, odd = TUTTI_NO_SYM;
        tutti_sym queue = tutti_fifo_queue(g, 2, TUTTI_TYPE(TUTTI_F32, 4));
        TUTTI_WITH_DEVICE(g, "whole:0")
            inner = tutti_exp(x);
        if (wished)
            tutti_device_push(g, "whole:0");
        odd = tutti_print(inner, "seen");
        if (wished)
            tutti_device_pop(g);
        run_target(tutti_enqueue(queue, odd));
        tutti_device *whole;
        CHECK_OK(tutti__device_open("whole:0", &whole));
        bool supported = !whole->target->supports || whole->target->supports(whole, odd.node);
        tutti_status status = tutti__place(g, "cpu:0");
        if (wished && !supported) {
            CHECK_INT(status, TUTTI_UNSUPPORTED);
            CHECK_CONTAINS(tutti_error_message(), "partition_test.c");
        } else {
            CHECK_OK(status);
            CHECK_STR(odd.node->device, supported ? "whole:0" : "cpu:0");
        }
        tutti_graph_destroy(g);
    }
}

TUTTI_TEST(specialize_makes_shapes_known)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, TUTTI_ANY, 3)),
              y = tutti_reshape(tutti_exp(x), -1);
    tutti_sym size = tutti_mul(tutti_size(x), tutti_scalar(g, TUTTI_I64, 2));
    tutti__test_result(y);
    tutti__test_result(tutti_shape(y));
    tutti__test_result(size);
    CHECK_INT(y.node->types[0].dims[0], TUTTI_ANY);
    x.node->types[0].dims[0] = 5;
    CHECK_OK(tutti__specialize(g));
    CHECK_INT(tutti__edge_type(g->results.data[0])->dims[0], 15);
    for (int i = 1; i < 3; i++) {
        const tutti_node *node = g->results.data[i].node;
        CHECK(tutti__is(node, "constant"));
        CHECK_INT(tutti_tensor_get_int(
                      tutti_attr_find(node->attrs, node->attr_count, "value")->value.tensor, 0),
                  i == 1 ? 15 : 30);
    }
    tutti_graph_destroy(g);
}

TUTTI_TEST(specialize_names_the_users_line)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti__test_input(g, 0, TUTTI_TYPE(TUTTI_F32, TUTTI_ANY)),
              y = tutti__test_input(g, 1, TUTTI_TYPE(TUTTI_F32, TUTTI_ANY));
    tutti__test_result(tutti_add(x, y));
    x.node->types[0].dims[0] = 5;
    y.node->types[0].dims[0] = 4;
    CHECK_STATUS(tutti__specialize(g), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "partition_test.c:");
    CHECK_CONTAINS(tutti_error_message(), "add");
    tutti_graph_destroy(g);
}
