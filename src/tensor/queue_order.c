/* queue_order.c: which element leaves a queue next. First in, first out: a list. By priority: a
 * heap of slots, of equal priorities the first that came. Shuffled: slots in any order, one is
 * drawn and the last takes its place.
 *
 * Everything here runs under the queue's lock. Slots are made before elements move, also for those
 * that are out and may come back, so that putting back never fails. */
#include "base/random.h"
#include "tensor/queue_inside.h"

#include <inttypes.h>
#include <stdlib.h>

static bool in_slots(const tutti_queue *queue)
{
    return queue->order.kind == TUTTI_QUEUE_SHUFFLE || queue->order.kind == TUTTI_QUEUE_PRIORITY;
}

int64_t tutti__queue_held(const tutti_queue *queue)
{
    return in_slots(queue) ? queue->slot_count : queue->elements.count;
}

bool tutti__queue_may_take(const tutti_queue *queue)
{
    int64_t stay = queue->closed ? 0 : queue->order.min_after_dequeue;
    return tutti__queue_held(queue) > stay;
}

tutti_status tutti__queue_make_room(tutti_queue *queue, int64_t more)
{
    int64_t needed = queue->slot_count + queue->out + more, room = queue->slot_room;
    if (!in_slots(queue) || needed <= room)
        return TUTTI_OK;
    room = needed > INT64_MAX / 64 ? needed : 2 * needed + 16;
    tutti_queue_slot *slots = NULL;
    if (room <= INT64_MAX / (int64_t)sizeof *slots)
        slots = realloc(queue->slots, (size_t)room * sizeof *slots);
    if (slots == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "queue '%s': no memory for %" PRId64 " elements",
                          queue->name, needed);
    queue->slots = slots;
    queue->slot_room = room;
    return TUTTI_OK;
}

static bool before(const tutti_queue_slot *a, const tutti_queue_slot *b)
{
    return a->priority != b->priority ? a->priority < b->priority : a->number < b->number;
}

static void swap(tutti_queue_slot *a, tutti_queue_slot *b)
{
    tutti_queue_slot kept = *a;
    *a = *b;
    *b = kept;
}

/* slots[i] is not after slots[2 i + 1] and slots[2 i + 2]. */
static void rise(tutti_queue *queue, int64_t at)
{
    tutti_queue_slot *slots = queue->slots;
    for (; at > 0 && before(&slots[at], &slots[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&slots[at], &slots[(at - 1) / 2]);
}

static void sink(tutti_queue *queue)
{
    tutti_queue_slot *slots = queue->slots;
    for (int64_t at = 0, child; (child = 2 * at + 1) < queue->slot_count; at = child) {
        if (child + 1 < queue->slot_count && before(&slots[child + 1], &slots[child]))
            child++;
        if (!before(&slots[child], &slots[at]))
            return;
        swap(&slots[child], &slots[at]);
    }
}

static void insert(tutti_queue *queue, tutti_tuple *tuple)
{
    bool ranked = queue->order.kind == TUTTI_QUEUE_PRIORITY;
    queue->slots[queue->slot_count] =
        (tutti_queue_slot){.priority = ranked ? tutti_tensor_get_int(tuple->tensors[0], 0) : 0,
                           .number = tuple->number,
                           .tuple = tuple};
    queue->slot_count++;
    if (ranked)
        rise(queue, queue->slot_count - 1);
}

void tutti__queue_insert(tutti_queue *queue, tutti_tuple *tuple)
{
    tuple->number = queue->numbered++;
    if (in_slots(queue))
        insert(queue, tuple);
    else
        tutti__tuple_append(&queue->elements, tuple);
}

tutti_tuple *tutti__queue_pick(tutti_queue *queue)
{
    queue->out++;
    if (!in_slots(queue))
        return tutti__tuple_take_first(&queue->elements);
    tutti_random_key key = {.seed = queue->order.seed};
    int64_t at = 0;
    if (queue->order.kind == TUTTI_QUEUE_SHUFFLE)
        at = (int64_t)tutti__random_below(key, queue->drawn++, (uint64_t)queue->slot_count);
    tutti_tuple *tuple = queue->slots[at].tuple;
    queue->slots[at] = queue->slots[--queue->slot_count];
    if (queue->order.kind == TUTTI_QUEUE_PRIORITY)
        sink(queue);
    return tuple;
}

void tutti__queue_put_back(tutti_queue *queue, tutti_tuple_list *taken)
{
    queue->out -= taken->count;
    if (!in_slots(queue)) {
        tutti__tuple_put_back(&queue->elements, taken);
        return;
    }
    tutti_tuple *tuple;
    while ((tuple = tutti__tuple_take_first(taken)) != NULL)
        insert(queue, tuple);
}

void tutti__queue_clear(tutti_queue *queue)
{
    tutti__tuple_clear(&queue->elements);
    for (int64_t i = 0; i < queue->slot_count; i++)
        tutti__tuple_destroy(queue->slots[i].tuple);
    free(queue->slots);
}
