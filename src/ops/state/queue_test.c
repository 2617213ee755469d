/* queue_test.c: queue operators through the reference interpreter. */
#include <pthread.h>

#include "ops/state/queues.h"
#include "ops/state/testing.h"
#include "tutti/session.h"

/* A queue node, and a queue bound to its handle. */
typedef struct bound_queue {
    tutti_queue *queue;
    tutti_tensor *handle;
} bound_queue;

static bound_queue bind_queue(tutti_sym node)
{
    bound_queue bound = {0};
    tutti_type type = tutti__queue_type();
    const tutti_type *types;
    int count = tutti__queue_types(node.node->attrs, node.node->attr_count, &types);
    tutti_queue_order order = {.kind = (tutti_queue_kind)tutti__int(node.node, "kind"),
                               .min_after_dequeue = tutti__int(node.node, "min_after_dequeue"),
                               .seed = (uint64_t)tutti__int(node.node, "seed")};
    CHECK_OK(tutti__queue_create_ordered(node.node->name, tutti__int(node.node, "capacity"), count,
                                         types, &order, &bound.queue));
    CHECK_OK(tutti_tensor_wrap(type.dtype, type.rank, type.dims, bound.queue, NULL, NULL,
                               &bound.handle));
    return bound;
}

static void unbind_queue(bound_queue *bound)
{
    tutti_tensor_release(bound->handle);
    tutti__queue_release(bound->queue);
}

/* Runs a node without outputs: a node that waits for it is fetched. */
static tutti_status run_target(tutti_sym target, int feed_count, const tutti_reference_feed *feeds)
{
    tutti_graph *g = tutti_sym_graph(target);
    tutti_sym after = TUTTI_NO_SYM;
    TUTTI_WITH_CONTROL(g, target)
        after = tutti_scalar(g, TUTTI_F32, 0);
    tutti_tensor *value = NULL;
    TUTTI_TRY(try_fetch(after, feed_count, feeds, &value));
    tutti_tensor_release(value);
    return TUTTI_OK;
}

TUTTI_TEST(queue_operators_move_tuples_in_order)
{
    tutti_graph *g = new_graph();
    tutti_sym q = tutti_fifo_queue(g, 10, TUTTI_TYPE(TUTTI_F32, 2), TUTTI_TYPE(TUTTI_I64));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 2), n = tutti_placeholder(g, TUTTI_I64);
    tutti_sym put = tutti_enqueue(q, x, n), take = tutti_dequeue(q), size = tutti_queue_size(q);
    CHECK_OK(tutti_graph_check(g));
    bound_queue bound = bind_queue(q);
    for (int i = 1; i <= 3; i++) {
        tutti_tensor *pair = VECTOR(TUTTI_F32, i, -i), *number = SCALAR(TUTTI_I64, i * 10);
        CHECK_OK(run_target(put, FEEDS(FEED(q, bound.handle), FEED(x, pair), FEED(n, number))));
        tutti_tensor_release(pair);
        tutti_tensor_release(number);
    }
    CHECK_NEAR(fetch_element(size, 0, FEEDS(FEED(q, bound.handle))), 3, 0);
    tutti_tensor *first = fetch(take, FEEDS(FEED(q, bound.handle)));
    CHECK_VALUES(first, 0, 1, -1);
    tutti_tensor_release(first);
    CHECK_NEAR(fetch_element(tutti_sym_output(take, 1), 0, FEEDS(FEED(q, bound.handle))), 20, 0);
    CHECK_NEAR(fetch_element(size, 0, FEEDS(FEED(q, bound.handle))), 1, 0);
    unbind_queue(&bound);
    tutti_graph_destroy(g);
}

TUTTI_TEST(queue_operators_stack_and_drain)
{
    tutti_graph *g = new_graph();
    tutti_sym q = tutti_fifo_queue_named(g, "rows", 0, TUTTI_TYPE(TUTTI_F32, 2));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 2);
    tutti_sym put = tutti_enqueue_many(q, x), two = tutti_dequeue_many(q, 2),
              rest = tutti_dequeue_up_to(q, 2), close = tutti_queue_close(q, false);
    CHECK_OK(tutti_graph_check(g));
    CHECK_INT(tutti_sym_type(two).dims[0], 2);
    CHECK_INT(tutti_sym_type(rest).dims[0], TUTTI_ANY);
    bound_queue bound = bind_queue(q);
    tutti_tensor *rows = MATRIX(TUTTI_F32, 3, 2, 1, 2, 3, 4, 5, 6), *value, *none = NULL;
    CHECK_OK(run_target(put, FEEDS(FEED(q, bound.handle), FEED(x, rows))));
    CHECK_OK(run_target(close, FEEDS(FEED(q, bound.handle))));
    value = fetch(two, FEEDS(FEED(q, bound.handle)));
    CHECK_VALUES(value, 0, 1, 2, 3, 4);
    tutti_tensor_release(value);
    CHECK_STATUS(try_fetch(two, FEEDS(FEED(q, bound.handle)), &none), TUTTI_OUT_OF_RANGE);
    value = fetch(rest, FEEDS(FEED(q, bound.handle)));
    CHECK_VALUES(value, 0, 5, 6);
    CHECK_INT(tutti_tensor_rank(value), 2);
    tutti_tensor_release(value);
    CHECK_STATUS(try_fetch(rest, FEEDS(FEED(q, bound.handle)), &none), TUTTI_CLOSED);
    CHECK_STATUS(run_target(put, FEEDS(FEED(q, bound.handle), FEED(x, rows))), TUTTI_CLOSED);
    CHECK_CONTAINS(tutti_error_message(), "rows");
    tutti_tensor_release(rows);
    unbind_queue(&bound);
    tutti_graph_destroy(g);
}

/* A process's rows, or zeros and 1; need_rows fails on that. */
TUTTI_TEST(dequeue_own_says_what_is_missing)
{
    tutti_graph *g = new_graph();
    tutti_sym q = tutti_fifo_queue(g, 0, TUTTI_TYPE(TUTTI_F32, 2));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 2), put = tutti_enqueue_many(q, x),
              close = tutti_queue_close(q, false);
    const tutti_type types[] = {tutti_type_make(TUTTI_F32, 1, (int64_t[]){2}),
                                tutti_type_make(TUTTI_F32, 0, NULL)};
    const tutti_attr attrs[] = {{"types", TUTTI_ATTR_TYPES, 2, {.types = types}},
                                TUTTI_INT("n", 2)};
    tutti_sym own = tutti__nary(tutti_op_find("dequeue_own"), 1, &q, 2, attrs);
    tutti_sym missing = tutti_sym_output(own, 1),
              needed =
                  tutti__nary(tutti_op_find("need_rows"), 1, &missing, 1, &TUTTI_INT("batch", 7));
    CHECK_OK(tutti_graph_check(g));
    bound_queue bound = bind_queue(q);
    tutti_tensor *rows = MATRIX(TUTTI_F32, 5, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10), *none = NULL;
    CHECK_OK(run_target(put, FEEDS(FEED(q, bound.handle), FEED(x, rows))));
    CHECK_OK(run_target(close, FEEDS(FEED(q, bound.handle))));
    tutti_tensor *value = fetch(own, FEEDS(FEED(q, bound.handle)));
    CHECK_VALUES(value, 0, 1, 2, 3, 4);
    tutti_tensor_release(value);
    CHECK_NEAR(fetch_element(needed, 0, FEEDS(FEED(q, bound.handle))), 0, 0);
    CHECK_NEAR(fetch_element(missing, 0, FEEDS(FEED(q, bound.handle))), 1, 0);
    value = fetch(own, FEEDS(FEED(q, bound.handle)));
    CHECK_VALUES(value, 0, 0, 0, 0, 0);
    tutti_tensor_release(value);
    CHECK_STATUS(try_fetch(needed, FEEDS(FEED(q, bound.handle)), &none), TUTTI_OUT_OF_RANGE);
    CHECK_CONTAINS(tutti_error_message(), "fewer left than its rows of a batch of 7");
    CHECK_INT(tutti__queue_size(bound.queue), 1);
    tutti_tensor_release(rows);
    unbind_queue(&bound);
    tutti_graph_destroy(g);
}

TUTTI_TEST(queue_operators_carry_strings_and_unknown_shapes)
{
    tutti_graph *g = new_graph();
    tutti_sym q = tutti_fifo_queue(g, 4, TUTTI_TYPE(TUTTI_STRING, TUTTI_ANY));
    tutti_sym x = tutti_placeholder(g, TUTTI_STRING, TUTTI_ANY);
    tutti_sym put = tutti_enqueue(q, x), take = tutti_dequeue(q);
    bound_queue bound = bind_queue(q);
    tutti_tensor *words = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_STRING, 1, (int64_t[]){2}, &words));
    CHECK_OK(tutti_tensor_set_string(words, 0, "one", 3));
    CHECK_OK(tutti_tensor_set_string(words, 1, "two words", 9));
    CHECK_OK(run_target(put, FEEDS(FEED(q, bound.handle), FEED(x, words))));
    tutti_tensor *out = fetch(take, FEEDS(FEED(q, bound.handle)));
    CHECK(tutti_tensor_same(out, words));
    tutti_tensor_release(out);
    tutti_tensor_release(words);
    unbind_queue(&bound);
    tutti_graph_destroy(g);
}

typedef struct consumer {
    tutti_sym take;
    tutti_sym queue;
    tutti_tensor *handle;
    double got;
    tutti_status status;
} consumer;

static void *consume(void *context)
{
    consumer *c = context;
    tutti_tensor *value = NULL;
    c->status = try_fetch(c->take, FEEDS(FEED(c->queue, c->handle)), &value);
    if (c->status == TUTTI_OK)
        c->got = tutti_tensor_get(value, 0);
    tutti_tensor_release(value);
    return NULL;
}

TUTTI_TEST(dequeue_waits_for_another_thread)
{
    tutti_graph *g = new_graph();
    tutti_sym q = tutti_fifo_queue(g, 1, TUTTI_TYPE(TUTTI_F32));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32), put = tutti_enqueue(q, x);
    bound_queue bound = bind_queue(q);
    consumer c = {.take = tutti_dequeue(q), .queue = q, .handle = bound.handle};
    tutti_sym after = TUTTI_NO_SYM;
    TUTTI_WITH_CONTROL(g, put)
        after = tutti_scalar(g, TUTTI_F32, 0);
    pthread_t thread;
    CHECK_INT(pthread_create(&thread, NULL, consume, &c), 0);
    tutti_tensor *value = SCALAR(TUTTI_F32, 42);
    tutti_tensor_release(fetch(after, FEEDS(FEED(q, bound.handle), FEED(x, value))));
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_OK(c.status);
    CHECK_NEAR(c.got, 42, 0);
    tutti_tensor_release(value);
    unbind_queue(&bound);
    tutti_graph_destroy(g);
}

TUTTI_TEST(queue_operators_refuse_what_does_not_fit)
{
    tutti_graph *g = new_graph();
    tutti_sym q = tutti_fifo_queue(g, 4, TUTTI_TYPE(TUTTI_F32, 2));
    CHECK(!tutti_sym_ok(tutti_enqueue(q, tutti_placeholder(g, TUTTI_F32, 3))));
    check_mistake(g, TUTTI_INVALID, "input 1 is f32[3], the queue's component is f32[2]");

    g = new_graph();
    q = tutti_fifo_queue(g, 4, TUTTI_TYPE(TUTTI_F32), TUTTI_TYPE(TUTTI_F32));
    CHECK(!tutti_sym_ok(tutti_enqueue(q, tutti_placeholder(g, TUTTI_F32))));
    check_mistake(g, TUTTI_INVALID, "the queue's tuples have 2 components, 1 are given");

    g = new_graph();
    CHECK(!tutti_sym_ok(tutti_dequeue(tutti_variable(g, tutti_zeros(2), .name = "v"))));
    check_mistake(g, TUTTI_INVALID, "dequeue: 'v' is no queue");

    g = new_graph();
    q = tutti_fifo_queue(g, 4, TUTTI_TYPE(TUTTI_F32));
    CHECK(!tutti_sym_ok(tutti_assign(q, tutti_placeholder(g, TUTTI_F32))));
    check_mistake(g, TUTTI_INVALID, "input 0 is a queue, needs a variable");

    g = new_graph();
    CHECK(!tutti_sym_ok(tutti_variable(g, tutti_zeros(0, 0, 0, 0, 0, 0, 0, 0), .dtype = TUTTI_U8)));
    check_mistake(g, TUTTI_INVALID, "that type means a queue");

    g = new_graph();
    CHECK(!tutti_sym_ok(tutti_fifo_queue(g, -1, TUTTI_TYPE(TUTTI_F32))));
    check_mistake(g, TUTTI_INVALID, "capacity is -1");

    g = new_graph();
    CHECK(!tutti_sym_ok(tutti_fifo_queue(g, 4, TUTTI_TYPE(TUTTI_F32, TUTTI_ANY, -7))));
    check_mistake(g, TUTTI_INVALID, "which is no type of a value");
}

/* A queue has no value: an operator that wants one says so. */
TUTTI_TEST(queue_is_no_value)
{
    tutti_graph *g = new_graph();
    tutti_sym q = tutti_fifo_queue(g, 4, TUTTI_TYPE(TUTTI_F32));
    CHECK(!tutti_sym_ok(tutti_neg(q)));
    check_mistake(g, TUTTI_INVALID, "queue");
}

/* Every tuple comes out once, in another order, the same for the same seed; some stay until the
 * queue is closed. */
TUTTI_TEST(shuffle_queue_mixes_and_keeps_some)
{
    tutti_graph *g = new_graph();
    tutti_sym q = tutti_shuffle_queue(g, 100, 3, 7, TUTTI_TYPE(TUTTI_I64));
    tutti_sym x = tutti_placeholder(g, TUTTI_I64, TUTTI_ANY), put = tutti_enqueue_many(q, x);
    tutti_sym five = tutti_dequeue_many(q, 5), rest = tutti_dequeue_up_to(q, 9);
    tutti_sym close = tutti_queue_close(q, false), size = tutti_queue_size(q);
    tutti_tensor *numbers = VECTOR(TUTTI_I64, 0, 1, 2, 3, 4, 5, 6, 7), *first = NULL;
    for (int round = 0; round < 2; round++) {
        bound_queue bound = bind_queue(q);
        bool seen[8] = {0}, moved = false;
        CHECK_OK(run_target(put, FEEDS(FEED(q, bound.handle), FEED(x, numbers))));
        tutti_tensor *some = fetch(five, FEEDS(FEED(q, bound.handle)));
        CHECK_NEAR(fetch_element(size, 0, FEEDS(FEED(q, bound.handle))), 3, 0);
        tutti_tensor *none[1] = {NULL};
        CHECK_STATUS(tutti__queue_dequeue(bound.queue, (tutti_queue_wait){.deadline = 0}, none),
                     TUTTI_DEADLINE);
        CHECK_OK(run_target(close, FEEDS(FEED(q, bound.handle))));
        tutti_tensor *others = fetch(rest, FEEDS(FEED(q, bound.handle)));
        CHECK_INT(tutti_tensor_count(others), 3);
        for (int i = 0; i < 8; i++) {
            int64_t value =
                i < 5 ? tutti_tensor_get_int(some, i) : tutti_tensor_get_int(others, i - 5);
            CHECK(!seen[value]);
            seen[value] = true;
            moved |= value != i;
        }
        CHECK(moved);
        if (round == 1)
            CHECK(tutti_tensor_same(first, some));
        tutti_tensor_release(first);
        first = some;
        tutti_tensor_release(others);
        unbind_queue(&bound);
    }
    tutti_tensor_release(first);
    tutti_tensor_release(numbers);
    tutti_graph_destroy(g);
}

TUTTI_TEST(priority_queue_gives_the_lowest_first)
{
    tutti_graph *g = new_graph();
    tutti_sym q = tutti_priority_queue(g, 0, TUTTI_TYPE(TUTTI_F32));
    tutti_sym p = tutti_placeholder(g, TUTTI_I64, TUTTI_ANY),
              x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY);
    tutti_sym put = tutti_enqueue_many(q, p, x), all = tutti_dequeue_many(q, 7);
    bound_queue bound = bind_queue(q);
    tutti_tensor *priorities = VECTOR(TUTTI_I64, 5, -1, 3, 5, 3, 9, 3);
    tutti_tensor *values = VECTOR(TUTTI_F32, 1, 2, 3, 4, 5, 6, 7);
    CHECK_OK(run_target(put, FEEDS(FEED(q, bound.handle), FEED(p, priorities), FEED(x, values))));
    tutti_tensor *out = fetch(tutti_sym_output(all, 1), FEEDS(FEED(q, bound.handle)));
    CHECK_VALUES(out, 0, 2, 3, 5, 7, 1, 4, 6);
    tutti_tensor_release(out);
    CHECK_OK(run_target(put, FEEDS(FEED(q, bound.handle), FEED(p, priorities), FEED(x, values))));
    out = fetch(all, FEEDS(FEED(q, bound.handle)));
    CHECK_VALUES(out, 0, -1, 3, 3, 3, 5, 5, 9);
    tutti_tensor_release(out);
    tutti_tensor_release(priorities);
    tutti_tensor_release(values);
    unbind_queue(&bound);
    tutti_graph_destroy(g);
}

TUTTI_TEST(padding_queue_fills_batches_up)
{
    tutti_graph *g = new_graph();
    tutti_sym q = tutti_padding_queue(g, 10, TUTTI_TYPE(TUTTI_F32, TUTTI_ANY, 2));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 2), put = tutti_enqueue(q, x);
    tutti_sym both = tutti_dequeue_many(q, 2), one = tutti_dequeue(q);
    bound_queue bound = bind_queue(q);
    tutti_tensor *small = MATRIX(TUTTI_F32, 1, 2, 1, 2);
    tutti_tensor *large = MATRIX(TUTTI_F32, 3, 2, 3, 4, 5, 6, 7, 8);
    CHECK_OK(run_target(put, FEEDS(FEED(q, bound.handle), FEED(x, small))));
    CHECK_OK(run_target(put, FEEDS(FEED(q, bound.handle), FEED(x, large))));
    CHECK_OK(run_target(put, FEEDS(FEED(q, bound.handle), FEED(x, small))));
    tutti_tensor *out = fetch(both, FEEDS(FEED(q, bound.handle)));
    CHECK_INT(tutti_tensor_rank(out), 3);
    CHECK_INT(tutti_tensor_dims(out)[1], 3);
    CHECK_VALUES(out, 0, 1, 2, 0, 0, 0, 0, 3, 4, 5, 6, 7, 8);
    tutti_tensor_release(out);
    out = fetch(one, FEEDS(FEED(q, bound.handle)));
    CHECK_VALUES(out, 0, 1, 2);
    tutti_tensor_release(out);
    tutti_tensor_release(small);
    tutti_tensor_release(large);
    unbind_queue(&bound);
    tutti_graph_destroy(g);
}

TUTTI_TEST(queue_kinds_refuse_what_does_not_fit)
{
    tutti_graph *g = new_graph();
    CHECK(!tutti_sym_ok(tutti_shuffle_queue(g, 4, 4, 0, TUTTI_TYPE(TUTTI_F32))));
    check_mistake(g, TUTTI_INVALID, "min_after_dequeue is 4");
    tutti_type type = tutti_type_make(TUTTI_F32, 0, NULL);
    tutti_queue *queue = NULL;
    CHECK_STATUS(tutti__queue_create_ordered(
                     "q", 0, 1, &type, &(tutti_queue_order){.kind = TUTTI_QUEUE_PRIORITY}, &queue),
                 TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "needs i64[], the priority");
}

/* Through a session: the kind is the state's, and one name has one kind. */
TUTTI_TEST(queue_kinds_run_in_sessions)
{
    tutti_graph *g = new_graph();
    tutti_session *s = NULL;
    tutti_sym q = tutti_priority_queue_named(g, "jobs", 8, TUTTI_TYPE(TUTTI_F32));
    tutti_sym p = tutti_placeholder(g, TUTTI_I64, 3), x = tutti_placeholder(g, TUTTI_F32, 3);
    tutti_sym put = tutti_enqueue_many(q, p, x), get = tutti_dequeue(q);
    CHECK_OK(tutti_session_open(&s, g));
    tutti_tensor *priorities = VECTOR(TUTTI_I64, 2, 0, 1), *values = VECTOR(TUTTI_F32, 7, 8, 9);
    tutti_tensor *out = NULL;
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({p, priorities}, {x, values}), .target = put));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({tutti_sym_output(get, 1), &out})));
        CHECK_NEAR(tutti_tensor_get(out, 0), i == 0 ? 8 : i == 1 ? 9 : 7, 0);
        tutti_tensor_release(out);
    }
    tutti_tensor_release(priorities);
    tutti_tensor_release(values);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}
