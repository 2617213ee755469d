/* whole_test.c: the target that takes whole partitions gives what cpu gives. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "base/world.h"
#include "device/far/suite.h"
#include "passes/pass.h"
#include "program/program.h"

static const double tolerance = 2e-5; /* reference kernels round once, fast ones in every step */

TUTTI_TEST(whole_trains_like_cpu)
{
    tutti__suite_trains("whole:0", tolerance);
}
TUTTI_TEST(whole_trains_cut_from_cpu)
{
    tutti__suite_trains_cut("whole:0", "cpu:0", tolerance);
}
TUTTI_TEST(whole_trains_cut_in_two)
{
    tutti__suite_trains_cut("whole:1", "whole:0", tolerance);
}
TUTTI_TEST(whole_trains_cut_from_far)
{
    tutti__suite_trains_cut("far:0", "whole:0", tolerance);
}
TUTTI_TEST(whole_variables)
{
    tutti__suite_variables("whole:0");
}
TUTTI_TEST(whole_results)
{
    tutti__suite_results("whole:0");
}
TUTTI_TEST(whole_errors)
{
    tutti__suite_errors("whole:0");
}
TUTTI_TEST(whole_late)
{
    tutti__suite_delayed("whole:0", "whole:1");
    tutti__suite_delayed("whole:0", "cpu:0");
    tutti__suite_delayed("far:0", "whole:0");
}
TUTTI_TEST(whole_control)
{
    tutti__suite_control("whole:0", tolerance);
}
TUTTI_TEST(whole_threads)
{
    tutti__suite_threads("whole:0");
}
TUTTI_TEST(whole_dynamic)
{
    tutti__suite_dynamic("whole:0");
}
TUTTI_TEST(whole_strings_and_queues)
{
    tutti__suite_strings_and_queues("whole:0");
}

TUTTI_TEST(whole_refuses_arena_offsets)
{
    tutti_graph *g, *piece;
    tutti_device *device;
    tutti_program *program;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 3), y = tutti_exp(x);
    tutti_edge feed = tutti__edge(x), fetch = tutti__edge(y);
    tutti_type type = tutti_sym_type(x);
    tutti_extract wanted = {
        .feed_count = 1, .fetch_count = 1, .feeds = &feed, .fetches = &fetch, .feed_types = &type};
    CHECK_OK(tutti__graph_extract(g, &wanted, &piece));
    CHECK_OK(tutti__specialize(piece));
    CHECK_OK(tutti__device_open("whole:0", &device));
    CHECK_STATUS(tutti__program_create(device, &(tutti_partition){.graph = piece}, &program),
                 TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "whole:0");
    tutti_graph_destroy(piece);
    tutti_graph_destroy(g);
}

/* A wish that cannot be met is an error that names the node; without a wish it runs on the host. */
TUTTI_TEST(whole_says_what_it_cannot_run)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *value, *out;
    tutti_sym wished = TUTTI_NO_SYM;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32), free_node = tutti_mul(tutti_print(x, "x"), 2);
    TUTTI_WITH_DEVICE(g, "whole:0")
        wished = tutti_print(x, "wished");
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, &(float){4}, &value));
    CHECK_OK(tutti_session_open(&s, g, .device = "whole:0"));
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, value}), .fetch = TUTTI_FETCH({free_node, &out})));
    CHECK_NEAR(tutti_tensor_get(out, 0), 8, 0);
    tutti_tensor_release(out);
    CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, value}), .fetch = TUTTI_FETCH({wished, &out})),
                 TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "print");
    CHECK_CONTAINS(tutti_error_message(), "whole:0");
    tutti_tensor_release(value);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

static void always(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                   void *context)
{
    TUTTI_UNUSED(count), TUTTI_UNUSED(context);
    ret[0] = tutti_less(args[0], tutti_scalar(body, TUTTI_F32, INFINITY));
}

static void grow(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret, void *context)
{
    TUTTI_UNUSED(body), TUTTI_UNUSED(count), TUTTI_UNUSED(context);
    ret[0] = tutti_tanh(args[0]);
}

TUTTI_TEST(whole_loop_ends_at_the_deadline)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *out;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym v = tutti_variable(g, tutti_full(1), .name = "v");
    tutti_sym end = tutti_while(always, grow, NULL, TUTTI_SYMS(tutti_read(v)), 0, NULL, NULL);
    CHECK_OK(tutti_session_open(&s, g, .device = "whole:0"));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    CHECK_STATUS(tutti_run(s, .fetch = TUTTI_FETCH({end, &out}), .deadline_seconds = 0.1),
                 TUTTI_DEADLINE);
    CHECK_CONTAINS(tutti_error_message(), "while");
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* Updates give new buffers: what was read before stays what it was. */
TUTTI_TEST(whole_replaces_buffers)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *old, *new;
    char *text;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym v = tutti_variable(g, tutti_full(1, 4), .name = "v"),
              add = tutti_assign_add(v, tutti_ones_like(tutti_read(v)));
    CHECK_OK(tutti_session_open(&s, g, .device = "whole:0"));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({v, &old}, {add, &new})));
    CHECK_NEAR(tutti_tensor_get(old, 3), 1, 0);
    CHECK_NEAR(tutti_tensor_get(new, 3), 2, 0);
    CHECK_OK(tutti_session_print(s, &text));
    CHECK_CONTAINS(text, "whole partition on whole:0");
    CHECK(strstr(text, "arena") == NULL);
    free(text);
    tutti_tensor_release(old);
    tutti_tensor_release(new);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}
