/* places_test.c: failures at run time name the line of the user's that built what failed. */
#include <stdio.h>

#include "base/test.h"
#include "tutti/tutti.h"

static const char *const devices[] = {"cpu:0", "far:0", "whole:0"};

/* The last message names that line of this file. */
static void check_place(int line)
{
    char place[64];
    snprintf(place, sizeof place, "places_test.c:%d", line);
    CHECK_CONTAINS(tutti_error_message(), place);
}

/* Runs the target and expects a message with all of these words and that line of this file. */
static void expect(tutti_graph *g, const char *device, tutti_sym target, tutti_status status,
                   const char *words, int line)
{
    tutti_session *s;
    CHECK_OK(tutti_session_open(&s, g, .device = device));
    CHECK_STATUS(tutti_run(s, .target = target, .deadline_seconds = 0.1), status);
    CHECK_CONTAINS(tutti_error_message(), words);
    check_place(line);
    tutti_session_close(s);
}

TUTTI_TEST(variables_without_values_are_named_with_their_place)
{
    for (size_t d = 0; d < TUTTI_COUNT(devices); d++) {
        tutti_graph *g;
        CHECK_OK(tutti_graph_create(&g));
        tutti_sym v = tutti_variable(g, tutti_zeros(2), .name = "v");
        int line = __LINE__ - 1;
        expect(g, devices[d], tutti_exp(v), TUTTI_UNINITIALIZED, "variable 'v' (", line);
        expect(g, devices[d], tutti_assign_add(v, tutti_fill(g, TUTTI_F32, 1, 2)),
               TUTTI_UNINITIALIZED, "variable 'v' (", line);
        tutti_graph_destroy(g);
    }
}

TUTTI_TEST(queues_at_the_deadline_are_named_with_their_place)
{
    for (size_t d = 0; d < TUTTI_COUNT(devices); d++) {
        tutti_graph *g;
        CHECK_OK(tutti_graph_create(&g));
        tutti_sym queue = tutti_fifo_queue_named(g, "q", 2, TUTTI_TYPE(TUTTI_F32, 2));
        tutti_sym taken = tutti_dequeue(queue);
        expect(g, devices[d], taken, TUTTI_DEADLINE, "queue 'q': still empty", __LINE__ - 1);
        tutti_graph_destroy(g);
    }
}

static void always(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                   void *context)
{
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_less(args[0], tutti_scalar(body, TUTTI_F32, 1));
}

static void same(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret, void *context)
{
    TUTTI_UNUSED(body);
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_mul(args[0], 0.5);
}

TUTTI_TEST(loops_at_the_deadline_are_named_with_their_place)
{
    for (size_t d = 0; d < TUTTI_COUNT(devices); d++) {
        tutti_graph *g;
        tutti_sym end;
        CHECK_OK(tutti_graph_create(&g));
        tutti_sym start = tutti_scalar(g, TUTTI_F32, 0.5);
        tutti_while(always, same, NULL, TUTTI_SYMS(start), TUTTI_SYMS(start), &end);
        expect(g, devices[d], end, TUTTI_DEADLINE, "still looping", __LINE__ - 1);
        tutti_graph_destroy(g);
    }
}

TUTTI_TEST(sends_on_one_channel_are_named_with_their_places)
{
    tutti_graph *g;
    tutti_sym sent[2];
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_fill(g, TUTTI_F32, 1, 2);
    sent[0] = tutti_send(x, "c", "far:1");
    int line = __LINE__ - 1;
    sent[1] = tutti_send(tutti_exp(x), "c", "far:1");
    tutti_sym both = tutti_group(g, sent[0], sent[1]);
    expect(g, "far:0", both, TUTTI_INVALID, "use the same channel 'c'", line);
    expect(g, "far:0", both, TUTTI_INVALID, "use the same channel 'c'", line + 2);
    tutti_graph_destroy(g);
}

TUTTI_TEST(what_cannot_be_fetched_is_said_plainly)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *value;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_fill(g, TUTTI_F32, 1, 2), sum = tutti_add(x, x);
    tutti_sym queue = tutti_fifo_queue_named(g, "q", 2, TUTTI_TYPE(TUTTI_F32, 2));
    tutti_sym group = tutti_group(g, sum);
    CHECK_OK(tutti_session_open(&s, g));
    sum.index = 5;
    CHECK_STATUS(tutti_run(s, .fetch = TUTTI_FETCH({sum, &value})), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "add 'add' has no output 5; the last is 0");
    CHECK_STATUS(tutti_run(s, .fetch = TUTTI_FETCH({group, &value})), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "has no output; name it as a target (");
    CHECK_STATUS(tutti_run(s, .fetch = TUTTI_FETCH({queue, &value})), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "'q' has no value that could be fetched");
    CHECK_STATUS(tutti_session_get(s, x, &value), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "fill 'fill' is no variable");
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* Feeds, fetches and variables that a run or a session refuses. */
TUTTI_TEST(what_a_run_is_given_is_named_with_its_place)
{
    tutti_graph *g, *other;
    tutti_session *s;
    tutti_tensor *value, *two;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_graph_create(&other));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){2}, &two));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 2), foreign = tutti_placeholder(other, TUTTI_F32);
    int line = __LINE__ - 1;
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, two}, {x, two}), .target = x), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "both give 'placeholder'; leave one out");
    check_place(line);
    tutti_feed many[101];
    for (int i = 0; i < 100; i++)
        many[i] = (tutti_feed){tutti_placeholder_named(g, "many", TUTTI_F32, 2), two};
    many[100] = many[60];
    CHECK_OK(tutti_run(s, .feed = {100, many}, .target = many[0].sym));
    CHECK_STATUS(tutti_run(s, .feed = {101, many}, .target = x), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "feeds 60 and 100 both give 'many_60'");
    CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, NULL}), .target = x), TUTTI_INVALID);
    check_place(line);
    CHECK_STATUS(tutti_run(s, .fetch = TUTTI_FETCH({x, NULL})), TUTTI_INVALID);
    check_place(line);
    CHECK_STATUS(tutti_run(s, .fetch = TUTTI_FETCH({foreign, &value})), TUTTI_INVALID);
    check_place(line);
    CHECK_STATUS(tutti_session_get(s, x, &value), TUTTI_INVALID);
    check_place(line);
    tutti_sym v = tutti_variable(g, tutti_zeros(2), .shared_name = "shared");
    CHECK_STATUS(tutti_session_get(s, v, &value), TUTTI_UNINITIALIZED);
    check_place(__LINE__ - 2);
    tutti_variable(g, tutti_zeros(3), .name = "longer", .shared_name = "shared");
    CHECK_STATUS(tutti_run(s, .target = tutti_initialize_variables(g)), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "variable 'longer'");
    check_place(__LINE__ - 3);
    tutti_tensor_release(two);
    tutti_session_close(s);
    tutti_graph_destroy(g);
    tutti_graph_destroy(other);
}
