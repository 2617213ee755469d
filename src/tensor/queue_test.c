#include "tensor/queue.h"

#include "base/test.h"
#include "base/world.h"

#include <pthread.h>
#include <string.h>

#define TRY_ONCE ((tutti_queue_wait){.deadline = 0})

static tutti_queue_wait within_ms(int64_t ms)
{
    return (tutti_queue_wait){.deadline = tutti__now_ns() + ms * 1000000};
}

static tutti_tensor *number(int64_t value)
{
    tutti_tensor *t = NULL;
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 0, NULL, &value, &t));
    return t;
}

static tutti_queue *queue_of_numbers(int64_t capacity)
{
    tutti_queue *queue = NULL;
    tutti_type type = tutti_type_make(TUTTI_I64, 0, NULL);
    CHECK_OK(tutti__queue_create("q", capacity, 1, &type, &queue));
    return queue;
}

static tutti_status put(tutti_queue *queue, int64_t value, tutti_queue_wait wait)
{
    tutti_tensor *t = number(value);
    tutti_status status = tutti__queue_enqueue(queue, &t, wait);
    tutti_tensor_release(t);
    return status;
}

/* The values first, first + 1, … as one batch. */
static tutti_status put_many(tutti_queue *queue, int64_t first, int64_t count,
                             tutti_queue_wait wait, int64_t *ret_count)
{
    tutti_tensor *t = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, &count, &t));
    for (int64_t i = 0; i < count; i++)
        tutti_tensor_set_int(t, i, first + i);
    tutti_status status = tutti__queue_enqueue_many(queue, &t, wait, ret_count);
    tutti_tensor_release(t);
    return status;
}

static int64_t take(tutti_queue *queue)
{
    tutti_tensor *t = NULL;
    CHECK_OK(tutti__queue_dequeue(queue, within_ms(60000), &t));
    int64_t value = tutti_tensor_get_int(t, 0);
    tutti_tensor_release(t);
    return value;
}

TUTTI_TEST(queue_gives_elements_in_order)
{
    tutti_queue *queue = queue_of_numbers(0);
    for (int64_t i = 0; i < 5; i++)
        CHECK_OK(put(queue, i, TRY_ONCE));
    CHECK_INT(tutti__queue_size(queue), 5);
    CHECK_INT(take(queue), 0);
    CHECK_INT(take(queue), 1);
    tutti_tensor *back = number(1);
    CHECK_OK(tutti__queue_push_front(queue, &back));
    tutti_tensor_release(back);
    for (int64_t i = 1; i < 4; i++)
        CHECK_INT(take(queue), i);
    CHECK_INT(tutti__queue_size(queue), 1); /* freed with the queue */
    CHECK_INT(tutti__queue_component_count(queue), 1);
    tutti__queue_release(tutti__queue_retain(queue));
    tutti__queue_release(queue);
    tutti__queue_release(NULL);
}

TUTTI_TEST(queue_refuses_bad_settings_and_elements)
{
    tutti_queue *queue = NULL;
    tutti_type types[2] = {tutti_type_make(TUTTI_F32, 2, (int64_t[]){TUTTI_ANY, 3}),
                           tutti_type_make(TUTTI_STRING, 0, NULL)};
    CHECK_STATUS(tutti__queue_create("q", -1, 2, types, &queue), TUTTI_INVALID);
    CHECK_STATUS(tutti__queue_create("q", 0, 0, types, &queue), TUTTI_INVALID);
    types[1].rank = 9;
    CHECK_STATUS(tutti__queue_create("q", 0, 2, types, &queue), TUTTI_INVALID);
    types[1].rank = 0;
    CHECK(queue == NULL);
    CHECK_OK(tutti__queue_create("batches", 0, 2, types, &queue));
    tutti_tensor *tuple[2] = {NULL, NULL}, *out[2] = {NULL, NULL};
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){5, 3}, &tuple[0]));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 0, NULL, &tuple[1]));
    CHECK_STATUS(tutti__queue_enqueue(queue, tuple, TRY_ONCE), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "queue 'batches': component 1 is f32[], needs string[]");
    CHECK_STATUS(tutti__queue_push_front(queue, tuple), TUTTI_INVALID);
    tutti_tensor_release(tuple[1]);
    CHECK_OK(tutti_tensor_create(TUTTI_STRING, 0, NULL, &tuple[1]));
    CHECK_OK(tutti_tensor_set_string(tuple[1], 0, "label", 5));
    CHECK_OK(tutti__queue_enqueue(queue, tuple, TRY_ONCE));
    CHECK_OK(tutti__queue_dequeue(queue, TRY_ONCE, out));
    CHECK(out[0] == tuple[0] && out[1] == tuple[1]); /* by reference */
    for (int i = 0; i < 2; i++) {
        tutti_tensor_release(out[i]);
        tutti_tensor_release(tuple[i]);
    }
    tutti__queue_release(queue);
}

TUTTI_TEST(queue_deadline_names_the_queue_and_what_was_missing)
{
    tutti_queue *queue = queue_of_numbers(2);
    tutti_tensor *none = NULL;
    CHECK_STATUS(tutti__queue_dequeue(queue, within_ms(60), &none), TUTTI_DEADLINE);
    CHECK_STR(tutti_error_message(),
              "dequeue from queue 'q': still empty after 0.1 s; is a producer running?");
    CHECK_OK(put(queue, 1, TRY_ONCE));
    CHECK_STATUS(tutti__queue_dequeue_many(queue, 3, within_ms(1), &none), TUTTI_DEADLINE);
    CHECK_STR(tutti_error_message(), "dequeue of many from queue 'q': still fewer than 3 elements "
                                     "after 0.0 s; is a producer running?");
    CHECK_INT(tutti__queue_size(queue), 1); /* put back */
    CHECK_OK(put(queue, 2, TRY_ONCE));
    CHECK_STATUS(put(queue, 3, within_ms(1)), TUTTI_DEADLINE);
    CHECK_STR(tutti_error_message(),
              "enqueue to queue 'q': still full after 0.0 s; is a consumer running?");
    CHECK(none == NULL);
    CHECK_INT(take(queue), 1);
    CHECK_INT(take(queue), 2);
    tutti__queue_release(queue);
}

TUTTI_TEST(queue_many_splits_and_stacks)
{
    tutti_queue *queue = NULL;
    tutti_tensor *tuple[2] = {NULL, NULL}, *out[2] = {NULL, NULL}, *turned = NULL;
    int64_t count = -1;
    CHECK_OK(tutti__queue_create("pairs", 0, 2, NULL, &queue));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){3, 4}, &turned));
    for (int64_t i = 0; i < 12; i++)
        tutti_tensor_set(turned, i, (double)i);
    CHECK_OK(tutti_tensor_permute(turned, (int[]){1, 0}, &tuple[0])); /* 4 strided rows of 3 */
    tutti_string names[4] = {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}};
    CHECK_OK(tutti_tensor_from(TUTTI_STRING, 1, (int64_t[]){4}, names, &tuple[1]));
    CHECK_OK(tutti__queue_enqueue_many(queue, tuple, TRY_ONCE, &count));
    CHECK_INT(count, 4);
    tutti_tensor_release(turned);
    CHECK_OK(tutti__queue_dequeue(queue, TRY_ONCE, out));
    CHECK_INT(tutti_tensor_rank(out[0]), 1);
    CHECK_INT(tutti_tensor_get_int(out[0], 2), 8);
    tutti_tensor_release(out[0]);
    tutti_tensor_release(out[1]);
    CHECK_OK(tutti__queue_dequeue_many(queue, 3, TRY_ONCE, out));
    CHECK_INT(tutti_tensor_dims(out[0])[0], 3);
    CHECK_INT(tutti_tensor_dims(out[0])[1], 3);
    CHECK_INT(tutti_tensor_get_int(out[0], 0), 1);
    CHECK_INT(tutti_tensor_get_int(out[0], 8), 11);
    tutti_tensor_release(tuple[0]);
    tutti_tensor_release(tuple[1]);
    CHECK(memcmp(tutti_tensor_get_string(out[1], 2).data, "d", 1) == 0);
    /* Pieces that do not fit each other. */
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){2}, &tuple[0]));
    tuple[1] = out[1];
    CHECK_STATUS(tutti__queue_enqueue_many(queue, tuple, TRY_ONCE, &count), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "component 1 is string[3] and component 0 f32[2]");
    CHECK_INT(count, 0);
    tutti_tensor *scalar = number(0);
    CHECK_STATUS(
        tutti__queue_enqueue_many(queue, (tutti_tensor *[]){scalar, scalar}, TRY_ONCE, NULL),
        TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "queue 'pairs'");
    tutti_tensor_release(scalar);
    tutti_tensor_release(tuple[0]);
    tutti_tensor_release(out[0]);
    tutti_tensor_release(out[1]);
    tutti__queue_release(queue);
}

TUTTI_TEST(queue_stacks_only_equal_types)
{
    tutti_queue *queue = NULL;
    tutti_tensor *a = number(1), *b = NULL, *none = NULL;
    CHECK_OK(tutti__queue_create("mixed", 0, 1, NULL, &queue));
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, (int64_t[]){2}, &b));
    CHECK_OK(tutti__queue_enqueue(queue, &a, TRY_ONCE));
    CHECK_OK(tutti__queue_enqueue(queue, &b, TRY_ONCE));
    CHECK_STATUS(tutti__queue_dequeue_many(queue, 2, TRY_ONCE, &none), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "queue 'mixed': component 0 is i64[]");
    CHECK_STATUS(tutti__queue_dequeue_many(queue, 0, TRY_ONCE, &none), TUTTI_INVALID);
    CHECK_STATUS(tutti__queue_dequeue_many(queue, -1, TRY_ONCE, &none), TUTTI_INVALID);
    CHECK(none == NULL);
    CHECK_INT(tutti__queue_size(queue), 2);
    CHECK_INT(take(queue), 1); /* the order stayed */
    tutti_tensor_release(a);
    tutti_tensor_release(b);
    tutti__queue_release(queue);
}

TUTTI_TEST(queue_dequeue_of_nothing_has_a_shape)
{
    tutti_queue *queue = NULL;
    tutti_tensor *empty = NULL;
    tutti_type type = tutti_type_make(TUTTI_F32, 1, (int64_t[]){7});
    CHECK_OK(tutti__queue_create("q", 0, 1, &type, &queue));
    CHECK_OK(tutti__queue_dequeue_many(queue, 0, TRY_ONCE, &empty));
    CHECK_INT(tutti_tensor_rank(empty), 2);
    CHECK_INT(tutti_tensor_dims(empty)[0], 0);
    CHECK_INT(tutti_tensor_dims(empty)[1], 7);
    tutti_tensor_release(empty);
    tutti__queue_release(queue);
}

TUTTI_TEST(queue_close_drains_then_says_closed)
{
    tutti_queue *queue = queue_of_numbers(0);
    tutti_tensor *t = NULL;
    int64_t count = -1;
    CHECK_OK(put_many(queue, 0, 5, TRY_ONCE, NULL));
    CHECK(!tutti__queue_is_closed(queue));
    tutti__queue_close(queue, false);
    tutti__queue_close(queue, false);
    CHECK(tutti__queue_is_closed(queue));
    CHECK_STATUS(put(queue, 9, TUTTI_QUEUE_FOREVER), TUTTI_CLOSED);
    CHECK_CONTAINS(tutti_error_message(), "queue 'q'");
    CHECK_STATUS(put_many(queue, 0, 2, TUTTI_QUEUE_FOREVER, &count), TUTTI_CLOSED);
    CHECK_INT(count, 0);
    CHECK_INT(take(queue), 0);
    CHECK_STATUS(tutti__queue_dequeue_many(queue, 5, TUTTI_QUEUE_FOREVER, &t), TUTTI_OUT_OF_RANGE);
    CHECK_CONTAINS(tutti_error_message(), "has 4 elements left, needs 5");
    CHECK_OK(tutti__queue_dequeue_many(queue, 2, TUTTI_QUEUE_FOREVER, &t));
    CHECK_INT(tutti_tensor_get_int(t, 0), 1);
    tutti_tensor_release(t);
    CHECK_OK(tutti__queue_dequeue_up_to(queue, 5, TUTTI_QUEUE_FOREVER, &t));
    CHECK_INT(tutti_tensor_count(t), 2);
    CHECK_INT(tutti_tensor_get_int(t, 1), 4);
    tutti_tensor_release(t);
    t = NULL;
    CHECK_STATUS(tutti__queue_dequeue(queue, TUTTI_QUEUE_FOREVER, &t), TUTTI_CLOSED);
    CHECK_STATUS(tutti__queue_dequeue_up_to(queue, 5, TUTTI_QUEUE_FOREVER, &t), TUTTI_CLOSED);
    CHECK_STATUS(tutti__queue_dequeue_many(queue, 1, TUTTI_QUEUE_FOREVER, &t), TUTTI_OUT_OF_RANGE);
    CHECK(t == NULL);
    tutti__queue_release(queue);
}

/* Time by hand: sleeping is what makes it pass. */
static int64_t false_now(void *self)
{
    return *(int64_t *)self;
}

static void false_sleep(void *self, int64_t ns)
{
    *(int64_t *)self += ns;
}

TUTTI_TEST(queue_waits_in_the_time_of_the_world)
{
    int64_t now = 1000;
    tutti_world world = *tutti__world();
    world.self = &now;
    world.now_ns = false_now;
    world.sleep_ns = false_sleep;
    tutti_queue *queue = queue_of_numbers(0);
    tutti_tensor *none = NULL;
    tutti__world_replace(&world);
    tutti_status status = tutti__queue_dequeue(queue, within_ms(2000), &none);
    tutti__world_replace(NULL);
    CHECK_STATUS(status, TUTTI_DEADLINE);
    CHECK_CONTAINS(tutti_error_message(), "after 2.0 s");
    CHECK(now >= 2000000000);
    tutti__queue_release(queue);
}

TUTTI_TEST(queue_deadline_counts_what_stays_for_shuffling)
{
    tutti_queue_order order = {.kind = TUTTI_QUEUE_SHUFFLE, .min_after_dequeue = 2};
    tutti_queue *queue;
    tutti_tensor *none = NULL;
    CHECK_OK(tutti__queue_create_ordered("q", 9, 1, NULL, &order, &queue));
    CHECK_OK(put(queue, 1, TRY_ONCE));
    CHECK_OK(put(queue, 2, TRY_ONCE));
    CHECK_STATUS(tutti__queue_dequeue(queue, within_ms(1), &none), TUTTI_DEADLINE);
    CHECK_CONTAINS(tutti_error_message(), "fewer than 1 elements beside the 2 that stay in it");
    tutti__queue_release(queue);
}
