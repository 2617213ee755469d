/* queues_test.c: queues between runs of several threads, and strings through a session. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/test.h"
#include "tutti/tutti.h"

static tutti_tensor *ints(int64_t count, const int64_t *values)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_from(TUTTI_I64, count < 0 ? 0 : 1, &count, values, &tensor));
    return tensor;
}

static int64_t take(tutti_tensor *tensor)
{
    int64_t value = tutti_tensor_get_int(tensor, 0);
    tutti_tensor_release(tensor);
    return value;
}

typedef struct producer {
    tutti_session *session;
    tutti_sym input, put, close;
    tutti_status status;
} producer;

static void *produce(void *argument)
{
    producer *p = argument;
    for (int64_t i = 1; i <= 100 && p->status == TUTTI_OK; i++) {
        tutti_tensor *value;
        p->status = tutti_tensor_from(TUTTI_I64, 0, NULL, &i, &value);
        if (p->status == TUTTI_OK)
            p->status =
                tutti_run(p->session, .feed = TUTTI_FEED({p->input, value}), .target = p->put);
        tutti_tensor_release(value);
    }
    if (p->status == TUTTI_OK)
        p->status = tutti_run(p->session, .target = p->close);
    return NULL;
}

TUTTI_TEST(queues_carry_values_from_thread_to_thread)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g, .deadline_seconds = 20));
    tutti_sym queue = tutti_fifo_queue_named(g, "numbers", 3, TUTTI_TYPE(TUTTI_I64));
    tutti_sym x = tutti_placeholder(g, TUTTI_I64), put = tutti_enqueue(queue, x),
              get = tutti_dequeue(queue);
    tutti_sym total = tutti_variable(g, tutti_zeros(), .name = "total", .dtype = TUTTI_I64);
    tutti_sym add = tutti_assign_add(total, get), close = tutti_queue_close(queue, false);
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    producer p = {s, x, put, close, TUTTI_OK};
    pthread_t thread;
    CHECK_INT(pthread_create(&thread, NULL, produce, &p), 0);
    tutti_status status;
    int64_t last = 0;
    tutti_tensor *value;
    while ((status = tutti_run(s, .fetch = TUTTI_FETCH({get, &value}), .target = add)) ==
           TUTTI_OK) {
        CHECK_INT(tutti_tensor_get_int(value, 0), last + 1); /* one dequeue for both */
        last = take(value);
    }
    pthread_join(thread, NULL);
    CHECK_OK(p.status);
    CHECK_INT(status, TUTTI_CLOSED);
    CHECK_CONTAINS(tutti_error_message(), "numbers");
    CHECK_INT(last, 100);
    CHECK_OK(tutti_session_get(s, total, &value));
    CHECK_INT(take(value), 5050);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(queues_wait_until_the_deadline_and_are_named)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g));
    tutti_sym queue = tutti_fifo_queue_named(g, "empty_one", 1, TUTTI_TYPE(TUTTI_I64));
    tutti_sym get = tutti_dequeue(queue), put = tutti_enqueue(queue, tutti_scalar(g, TUTTI_I64, 4));
    tutti_sym size = tutti_queue_size(queue);
    tutti_tensor *out;
    CHECK_STATUS(tutti_run(s, .target = get, .deadline_seconds = 0.05), TUTTI_DEADLINE);
    CHECK_CONTAINS(tutti_error_message(), "empty_one");
    CHECK_OK(tutti_run(s, .target = put));
    CHECK_STATUS(tutti_run(s, .target = put, .deadline_seconds = 0.05), TUTTI_DEADLINE);
    CHECK_CONTAINS(tutti_error_message(), "empty_one");
    CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({size, &out})));
    CHECK_INT(take(out), 1);
    CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({get, &out})));
    CHECK_INT(take(out), 4);
    CHECK_STATUS(tutti_run(s, .fetch = TUTTI_FETCH({queue, &out})), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "empty_one");
    tutti_session_close(s);
    CHECK_OK(tutti_session_open(&s, g, .deadline_seconds = 1e-12)); /* no time is not the default */
    CHECK_STATUS(tutti_run(s, .target = get), TUTTI_DEADLINE);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(queues_take_and_give_many)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g, .deadline_seconds = 5));
    tutti_sym queue = tutti_fifo_queue(g, 10, TUTTI_TYPE(TUTTI_I64), TUTTI_TYPE(TUTTI_F32, 2));
    tutti_sym n = tutti_placeholder(g, TUTTI_I64, TUTTI_ANY),
              pairs = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 2);
    tutti_sym put = tutti_enqueue_many(queue, n, pairs), get = tutti_dequeue_many(queue, 3),
              rest = tutti_dequeue_up_to(queue, 3);
    tutti_sym sum = tutti_sum(tutti_sym_output(rest, 1)), close = tutti_queue_close(queue, false);
    tutti_tensor *numbers = ints(5, (int64_t[]){1, 2, 3, 4, 5}), *values, *out[3];
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 2, (int64_t[]){5, 2},
                               (float[]){1, 1, 2, 2, 3, 3, 4, 4, 5, 5}, &values));
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({n, numbers}, {pairs, values}), .target = put));
    CHECK_OK(
        tutti_run(s, .fetch = TUTTI_FETCH({get, &out[0]}, {tutti_sym_output(get, 1), &out[1]})));
    CHECK_INT(tutti_tensor_dims(out[1])[0], 3);
    CHECK_NEAR(tutti_tensor_get(out[1], 5), 3, 0);
    CHECK_INT(take(out[0]), 1);
    tutti_tensor_release(out[1]);
    CHECK_OK(tutti_run(s, .target = close));
    CHECK_STATUS(tutti_run(s, .target = get), TUTTI_OUT_OF_RANGE);
    CHECK_OK(
        tutti_run(s, .fetch = TUTTI_FETCH({rest, &out[0]}, {sum, &out[1]}))); /* two are left */
    CHECK_INT(tutti_tensor_count(out[0]), 2);
    CHECK_INT(take(out[0]), 4);
    CHECK_INT(take(out[1]), 18);
    CHECK_STATUS(tutti_run(s, .target = get), TUTTI_OUT_OF_RANGE);
    CHECK_STATUS(tutti_run(s, .target = rest), TUTTI_CLOSED);
    tutti_tensor_release(numbers);
    tutti_tensor_release(values);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void dequeue_and_add(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                            void *context)
{
    tutti_sym queue = tutti_fifo_queue_named(body, "never_fed", 1, TUTTI_TYPE(TUTTI_F32));
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_add(args[0], tutti_dequeue(queue));
}

static void same(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret, void *context)
{
    TUTTI_UNUSED(body);
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = args[0];
}

static tutti_sym wait_plainly(tutti_graph *g, tutti_sym x)
{
    TUTTI_UNUSED(x);
    return tutti_dequeue(tutti_fifo_queue_named(g, "never_fed", 1, TUTTI_TYPE(TUTTI_F32)));
}

static tutti_sym wait_for_room(tutti_graph *g, tutti_sym x)
{
    tutti_sym queue = tutti_fifo_queue_named(g, "full", 1, TUTTI_TYPE(TUTTI_F32));
    tutti_sym first = tutti_enqueue(queue, x), second = TUTTI_NO_SYM;
    TUTTI_WITH_CONTROL(g, first)
        second = tutti_enqueue(queue, x);
    return second;
}

static tutti_sym wait_in_a_branch(tutti_graph *g, tutti_sym x)
{
    TUTTI_UNUSED(g);
    return tutti_cond(tutti_is_nan(x), dequeue_and_add, same, NULL, TUTTI_SYMS(x), 1, NULL);
}

/* One device waits in a queue, the other one fails a little later: the run ends then, with the
 * failure, long before its deadline. */
static void check_end(const char *waiting, const char *failing,
                      tutti_sym (*wait)(tutti_graph *g, tutti_sym x))
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *bad;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32), waits = TUTTI_NO_SYM, fails = TUTTI_NO_SYM;
    TUTTI_WITH_DEVICE(g, waiting)
        waits = wait(g, x);
    TUTTI_WITH_DEVICE(g, failing)
        fails = tutti_check_numerics(
            tutti_matmul(tutti_broadcast_to(x, 300, 300), tutti_broadcast_to(x, 300, 300)),
            "the other device");
    CHECK_OK(tutti_session_open(&s, g, .deadline_seconds = 100));
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, &(float){__builtin_nanf("")}, &bad));
    double start = seconds();
    CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, bad}), .targets = TUTTI_TARGETS(waits, fails)),
                 TUTTI_CHECK_FAILED);
    CHECK_CONTAINS(tutti_error_message(), "the other device");
    CHECK(seconds() - start < 50);
    tutti_tensor_release(bad);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(queues_let_go_when_another_device_fails)
{
    check_end("cpu:0", "far:0", wait_plainly);
    check_end("far:0", "cpu:0", wait_plainly);
    check_end("cpu:0", "whole:0", wait_for_room);
    check_end("cpu:0", "far:0", wait_in_a_branch);
}

static tutti_tensor *words(int64_t count, const char *const *texts)
{
    tutti_string list[8];
    tutti_tensor *tensor;
    for (int64_t i = 0; i < count; i++)
        list[i] = (tutti_string){.data = (char *)(uintptr_t)texts[i], .size = strlen(texts[i])};
    CHECK_OK(tutti_tensor_from(TUTTI_STRING, 1, &count, list, &tensor));
    return tensor;
}

static void check_word(const tutti_tensor *tensor, int64_t index, const char *expected)
{
    tutti_string word = tutti_tensor_get_string(tensor, index);
    CHECK_INT(word.size, strlen(expected));
    CHECK(memcmp(word.data, expected, word.size) == 0);
}

/* Strings outlive the run and what they were made from: feeds, constants, variables, queues. */
TUTTI_TEST(strings_travel_through_a_session)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g, .deadline_seconds = 5));
    tutti_tensor *fixed = words(2, (const char *[]){"constant", "of the graph"});
    tutti_sym x = tutti_placeholder(g, TUTTI_STRING, TUTTI_ANY), c = tutti_constant(g, fixed);
    tutti_tensor_release(fixed);
    tutti_sym both = tutti_concatenate(TUTTI_SYMS(x, c)),
              second = tutti_gather(both, tutti_ints(g, 1), 0);
    tutti_sym v = tutti_variable(g, tutti_sym_init(c), .name = "v", .dtype = TUTTI_STRING),
              set = tutti_assign(v, x);
    tutti_sym queue = tutti_fifo_queue(g, 4, TUTTI_TYPE(TUTTI_STRING, 2)),
              put = tutti_enqueue(queue, x), get = tutti_dequeue(queue);
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    tutti_tensor *fed = words(
                     2, (const char *[]){"fed", "a longer text that needs memory of its own"}),
                 *out[5];
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, fed}),
                       .fetch = TUTTI_FETCH({both, &out[0]}, {second, &out[1]}, {x, &out[2]},
                                            {c, &out[3]}, {v, &out[4]}),
                       .targets = TUTTI_TARGETS(set, put)));
    tutti_tensor_release(fed);
    check_word(out[0], 0, "fed");
    check_word(out[0], 3, "of the graph");
    check_word(out[1], 0, "a longer text that needs memory of its own");
    check_word(out[2], 0, "fed");
    check_word(out[3], 0, "constant");
    check_word(out[4], 0, "constant");
    for (int i = 0; i < 5; i++)
        tutti_tensor_release(out[i]);
    CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({get, &out[0]}, {v, &out[1]})));
    CHECK_OK(tutti_session_get(s, v, &out[2]));
    tutti_session_close(s);
    tutti_graph_destroy(g);
    for (int i = 0; i < 3; i++) {
        check_word(out[i], 1, "a longer text that needs memory of its own");
        tutti_tensor_release(out[i]);
    }
}

/* A step that both takes a variable's strings and puts others in their place. */
TUTTI_TEST(strings_of_a_variable_change_places)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g, .deadline_seconds = 5));
    tutti_tensor *first =
        words(2, (const char *[]){"a long enough first text", "another text of some length"});
    tutti_sym v = tutti_variable(g, tutti_tensor_init(first), .name = "v");
    tutti_sym turn = tutti_scatter_update(v, tutti_ints(g, 1, 0), v),
              x = tutti_placeholder(g, TUTTI_STRING, 2);
    tutti_sym old = tutti_identity(v), set = tutti_assign(v, x);
    tutti_tensor_release(first);
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    tutti_tensor *out, *fed = words(2, (const char *[]){"one", "two"});
    for (int i = 0; i < 3; i++)
        CHECK_OK(tutti_run(s, .target = turn));
    CHECK_OK(tutti_session_get(s, v, &out));
    check_word(out, 0, "another text of some length");
    check_word(out, 1, "a long enough first text");
    tutti_tensor_release(out);
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, fed}), .fetch = TUTTI_FETCH({old, &out}),
                       .target = set));
    check_word(out, 0, "another text of some length");
    tutti_tensor_release(out);
    CHECK_OK(tutti_session_set(s, v, fed));
    tutti_tensor_release(fed);
    CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({v, &out})));
    check_word(out, 1, "two");
    tutti_tensor_release(out);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}
