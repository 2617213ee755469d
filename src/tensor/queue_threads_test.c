/* The queue between threads; also run under the thread sanitizer. */
#include "tensor/queue.h"

#include "base/test.h"
#include "base/world.h"

#include <pthread.h>

enum { BATCHES = 200, BATCH = 7 };

static tutti_queue_wait patient(void)
{
    return (tutti_queue_wait){.deadline = tutti__now_ns() + INT64_C(60000000000)};
}

static tutti_queue *queue_of_numbers(int64_t capacity)
{
    tutti_queue *queue = NULL;
    tutti_type type = tutti_type_make(TUTTI_I64, 0, NULL);
    CHECK_OK(tutti__queue_create("q", capacity, 1, &type, &queue));
    return queue;
}

static tutti_tensor *batch(int64_t first, int64_t count)
{
    tutti_tensor *t = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, &count, &t));
    for (int64_t i = 0; i < count; i++)
        tutti_tensor_set_int(t, i, first + i);
    return t;
}

static void pause_ms(int64_t ms)
{
    const tutti_world *world = tutti__world();
    world->sleep_ns(world->self, ms * 1000000);
}

/* What a thread does with a queue, and what came of it. */
typedef struct worker {
    pthread_t thread;
    tutti_queue *queue;
    int64_t first, count; /* of a producer; how many to take at once of a consumer */
    const atomic_bool *cancelled;
    tutti_status status;
    int64_t result;
} worker;

static void start(worker *w, void *(*run)(void *))
{
    CHECK_INT(pthread_create(&w->thread, NULL, run, w), 0);
}

static void *produce_batches(void *argument)
{
    worker *w = argument;
    for (int64_t i = 0; i < BATCHES; i++) {
        tutti_tensor *t = batch(w->first + i * BATCH, BATCH);
        CHECK_OK(tutti__queue_enqueue_many(w->queue, &t, patient(), NULL));
        tutti_tensor_release(t);
    }
    return NULL;
}

/* Takes until the queue is closed; sums up. */
static void *consume_all(void *argument)
{
    worker *w = argument;
    for (;;) {
        tutti_tensor *t = NULL;
        w->status = w->count == 1 ? tutti__queue_dequeue(w->queue, patient(), &t)
                                  : tutti__queue_dequeue_up_to(w->queue, w->count, patient(), &t);
        if (w->status != TUTTI_OK)
            return NULL;
        for (int64_t i = 0; i < tutti_tensor_count(t); i++)
            w->result += tutti_tensor_get_int(t, i);
        tutti_tensor_release(t);
    }
}

TUTTI_TEST(queue_loses_nothing_between_threads)
{
    for (int64_t capacity = 0; capacity <= 20; capacity += 5) {
        tutti_queue *queue = queue_of_numbers(capacity);
        worker producers[3] = {0}, consumers[3] = {0};
        for (int i = 0; i < 3; i++) {
            producers[i] = (worker){.queue = queue, .first = i * BATCHES * BATCH};
            consumers[i] = (worker){.queue = queue, .count = 1 + 4 * i}; /* 9 > capacity 5 too */
            start(&producers[i], produce_batches);
            start(&consumers[i], consume_all);
        }
        for (int i = 0; i < 3; i++)
            pthread_join(producers[i].thread, NULL);
        tutti__queue_close(queue, false);
        int64_t sum = 0, count = INT64_C(3) * BATCHES * BATCH;
        for (int i = 0; i < 3; i++) {
            pthread_join(consumers[i].thread, NULL);
            CHECK_INT(consumers[i].status, TUTTI_CLOSED);
            sum += consumers[i].result;
        }
        CHECK_INT(sum, count * (count - 1) / 2);
        tutti__queue_release(queue);
    }
}

TUTTI_TEST(queue_batches_stay_together)
{
    tutti_queue *queue = queue_of_numbers(3); /* less than a batch on either side */
    worker producers[2] = {{.queue = queue}, {.queue = queue, .first = BATCHES * BATCH}};
    start(&producers[0], produce_batches);
    start(&producers[1], produce_batches);
    for (int i = 0; i < 2 * BATCHES; i++) {
        tutti_tensor *t = NULL;
        CHECK_OK(tutti__queue_dequeue_many(queue, BATCH, patient(), &t));
        CHECK_INT(tutti_tensor_get_int(t, 0) % BATCH, 0);
        for (int64_t k = 1; k < BATCH; k++)
            CHECK_INT(tutti_tensor_get_int(t, k), tutti_tensor_get_int(t, 0) + k);
        tutti_tensor_release(t);
    }
    pthread_join(producers[0].thread, NULL);
    pthread_join(producers[1].thread, NULL);
    tutti__queue_release(queue);
}

static void *produce_once(void *argument)
{
    worker *w = argument;
    tutti_queue_wait wait = patient();
    wait.cancelled = w->cancelled;
    tutti_tensor *t = batch(w->first, w->count);
    w->status = tutti__queue_enqueue_many(w->queue, &t, wait, &w->result);
    tutti_tensor_release(t);
    return NULL;
}

static void *consume_once(void *argument)
{
    worker *w = argument;
    tutti_queue_wait wait = patient();
    wait.cancelled = w->cancelled;
    tutti_tensor *t = NULL;
    w->status = tutti__queue_dequeue_many(w->queue, w->count, wait, &t);
    w->result = t != NULL ? tutti_tensor_count(t) : -1;
    tutti_tensor_release(t);
    return NULL;
}

TUTTI_TEST(queue_close_lets_waiting_enqueues_finish)
{
    tutti_queue *queue = queue_of_numbers(2);
    worker producer = {.queue = queue, .count = 5};
    start(&producer, produce_once);
    while (tutti__queue_size(queue) < 2)
        pause_ms(1);
    tutti__queue_close(queue, false);
    worker consumer = {.queue = queue, .count = 5};
    consume_once(&consumer);
    pthread_join(producer.thread, NULL);
    CHECK_INT(consumer.status, TUTTI_OK);
    CHECK_INT(producer.status, TUTTI_OK);
    CHECK_INT(producer.result, 5);
    tutti__queue_release(queue);
}

/* What waits for room still comes: until it is in, a checkpoint has the queue as an open one. */
TUTTI_TEST(queue_is_saved_as_closed_when_nothing_more_comes)
{
    tutti_queue *queue = queue_of_numbers(2);
    tutti_queue_contents contents;
    worker producer = {.queue = queue, .count = 3};
    start(&producer, produce_once);
    while (tutti__queue_size(queue) < 2)
        pause_ms(1);
    tutti__queue_close(queue, false);
    CHECK_OK(tutti__queue_save(queue, &contents));
    CHECK(!contents.closed);
    CHECK_INT(contents.capacity, 2);
    tutti__tuple_clear(&contents.elements);
    worker consumer = {.queue = queue, .count = 1};
    consume_once(&consumer);
    pthread_join(producer.thread, NULL);
    CHECK_OK(tutti__queue_save(queue, &contents));
    CHECK(contents.closed);
    CHECK_INT(contents.elements.count, 2);
    tutti__tuple_clear(&contents.elements);
    tutti__queue_release(queue);
}

static void check_saved(const tutti_queue_contents *contents, int64_t count)
{
    uint64_t seen = 0;
    CHECK_INT(contents->elements.count, count);
    for (const tutti_tuple *t = contents->elements.first; t; t = t->next) {
        CHECK_INT(tutti_tensor_get_int(t->tensors[0], 0), (int64_t)t->number);
        seen |= UINT64_C(1) << t->number;
    }
    CHECK_INT(seen, (UINT64_C(1) << count) - 1);
}

/* `stay`: elements that a shuffling queue keeps. */
static void check_save_while_collecting(tutti_queue *queue, int64_t stay)
{
    tutti_queue_contents contents;
    worker producer = {.queue = queue, .count = 3 + stay}, consumer = {.queue = queue, .count = 5};
    start(&consumer, consume_once);
    produce_once(&producer);
    while (tutti__queue_size(queue) > stay)
        pause_ms(1);
    CHECK_OK(tutti__queue_save(queue, &contents));
    check_saved(&contents, 3 + stay);
    tutti__tuple_clear(&contents.elements);
    worker rest = {.queue = queue, .first = 3 + stay, .count = 2};
    produce_once(&rest);
    pthread_join(consumer.thread, NULL);
    CHECK_INT(consumer.status, TUTTI_OK);
    CHECK_INT(consumer.result, 5);
    CHECK_OK(tutti__queue_save(queue, &contents));
    CHECK_INT(contents.elements.count, stay);
    tutti__tuple_clear(&contents.elements);
    tutti__queue_release(queue);
}

/* Whoever waits for more has taken nothing yet. */
TUTTI_TEST(queue_is_saved_with_what_a_waiting_dequeue_has_collected)
{
    tutti_queue *queue;
    tutti_queue_order order = {.kind = TUTTI_QUEUE_SHUFFLE, .min_after_dequeue = 2, .seed = 7};
    tutti_type type = tutti_type_make(TUTTI_I64, 0, NULL);
    check_save_while_collecting(queue_of_numbers(4), 0);
    CHECK_OK(tutti__queue_create_ordered("q", 9, 1, &type, &order, &queue));
    check_save_while_collecting(queue, 2);
}

TUTTI_TEST(queue_close_can_cancel_waiting_enqueues)
{
    tutti_queue *queue = queue_of_numbers(2);
    worker producer = {.queue = queue, .count = 5}, consumer = {.queue = queue, .count = 9};
    start(&producer, produce_once);
    while (tutti__queue_size(queue) < 2)
        pause_ms(1);
    tutti__queue_close(queue, true);
    pthread_join(producer.thread, NULL);
    CHECK_INT(producer.status, TUTTI_CANCELLED);
    CHECK_INT(producer.result, 2); /* these stay in */
    start(&consumer, consume_once);
    pthread_join(consumer.thread, NULL);
    CHECK_INT(consumer.status, TUTTI_OUT_OF_RANGE);
    CHECK_INT(tutti__queue_size(queue), 2);
    tutti__queue_release(queue);
}

TUTTI_TEST(queue_close_wakes_waiting_dequeues)
{
    tutti_queue *queue = queue_of_numbers(0);
    worker consumers[2] = {{.queue = queue, .count = 1}, {.queue = queue, .count = 3}};
    start(&consumers[0], consume_all);
    start(&consumers[1], consume_once);
    pause_ms(5);
    tutti__queue_close(queue, false);
    pthread_join(consumers[0].thread, NULL);
    pthread_join(consumers[1].thread, NULL);
    CHECK_INT(consumers[0].status, TUTTI_CLOSED);
    CHECK_INT(consumers[1].status, TUTTI_OUT_OF_RANGE);
    tutti__queue_release(queue);
}

TUTTI_TEST(queue_wait_can_be_cancelled)
{
    tutti_queue *queue = queue_of_numbers(1);
    atomic_bool cancelled = false;
    worker consumer = {.queue = queue, .count = 2, .cancelled = &cancelled};
    worker second = {.queue = queue, .count = 1};
    start(&consumer, consume_once);
    pause_ms(5);
    start(&second, consume_once); /* waits behind the first */
    pause_ms(5);
    tutti_tensor *t = batch(0, 1);
    CHECK_OK(tutti__queue_enqueue_many(queue, &t, patient(), NULL));
    tutti_tensor_release(t);
    tutti__queue_wake(queue); /* nobody is cancelled yet */
    pause_ms(5);
    atomic_store(&cancelled, true);
    tutti__queue_wake(queue);
    pthread_join(consumer.thread, NULL);
    CHECK_INT(consumer.status, TUTTI_CANCELLED);
    pthread_join(second.thread, NULL); /* gets what the first put back */
    CHECK_INT(second.status, TUTTI_OK);
    CHECK_INT(tutti__queue_size(queue), 0);
    worker producer = {.queue = queue, .count = 2, .cancelled = &cancelled};
    produce_once(&producer);
    CHECK_INT(producer.status, TUTTI_CANCELLED);
    CHECK_INT(producer.result, 1);
    tutti__queue_release(queue);
}
