/* queue_keep.c: what a queue holds, out of it and into another. */
#include <inttypes.h>

#include "tensor/queue_inside.h"
#include "tensor/type.h"

#define AS_SAVED "; make it as it was saved, or give it another name to begin with an empty one"

static bool has_slots(const tutti_queue *queue)
{
    return queue->order.kind == TUTTI_QUEUE_SHUFFLE || queue->order.kind == TUTTI_QUEUE_PRIORITY;
}

static tutti_status copy_tuple(const tutti_tuple *from, tutti_tuple_list *to)
{
    tutti_tuple *copy;
    TUTTI_TRY(tutti__tuple_create(from->count, from->tensors, &copy));
    copy->number = from->number;
    tutti__tuple_append(to, copy);
    return TUTTI_OK;
}

static tutti_status copy_tuples(const tutti_tuple_list *from, tutti_tuple_list *to)
{
    for (const tutti_tuple *t = from ? from->first : NULL; t; t = t->next)
        TUTTI_TRY(copy_tuple(t, to));
    return TUTTI_OK;
}

/* Under the lock: as if what somebody has collected who waits for more were put back. */
static tutti_status copy_elements(const tutti_queue *queue, tutti_tuple_list *to)
{
    if (!has_slots(queue)) {
        TUTTI_TRY(copy_tuples(queue->collected, to));
        return copy_tuples(&queue->elements, to);
    }
    for (int64_t i = 0; i < queue->slot_count; i++)
        TUTTI_TRY(copy_tuple(queue->slots[i].tuple, to));
    return copy_tuples(queue->collected, to);
}

tutti_status tutti__queue_save(tutti_queue *queue, tutti_queue_contents *ret)
{
    tutti_queue_contents contents = {.component_count = queue->component_count,
                                     .capacity =
                                         queue->capacity == INT64_MAX ? 0 : queue->capacity};
    pthread_mutex_lock(&queue->lock);
    contents.arrived = queue->numbered;
    contents.drawn = queue->drawn;
    contents.closed = queue->closed && (!queue->producers.first || queue->cancel_pending);
    tutti_status status = copy_elements(queue, &contents.elements);
    pthread_mutex_unlock(&queue->lock);
    if (status == TUTTI_OK)
        *ret = contents;
    else
        tutti__tuple_clear(&contents.elements);
    return status;
}

static tutti_status components_fit(const tutti_queue *queue, const tutti_queue_contents *contents)
{
    char saved[TUTTI_TYPE_TEXT], has[TUTTI_TYPE_TEXT];
    if (contents->component_count != queue->component_count)
        return tutti_fail(
            TUTTI_INVALID,
            "queue '%s' is saved with tuples of %d components, the program's has %d" AS_SAVED,
            queue->name, contents->component_count, queue->component_count);
    for (const tutti_tuple *t = contents->elements.first; t; t = t->next)
        for (int i = 0; queue->types && i < queue->component_count; i++)
            if (!tutti__type_fits(tutti_tensor_type(t->tensors[i]), &queue->types[i]))
                return tutti_fail(
                    TUTTI_INVALID,
                    "queue '%s' is saved with %" PRId64
                    " tuples, of which component %d is %s, the program's takes %s" AS_SAVED,
                    queue->name, contents->elements.count, i,
                    tutti_type_text(tutti_tensor_type(t->tensors[i]), saved),
                    tutti_type_text(&queue->types[i], has));
    return TUTTI_OK;
}

tutti_status tutti__queue_fits(const tutti_queue *queue, const tutti_queue_contents *contents)
{
    TUTTI_TRY(components_fit(queue, contents));
    bool smaller = contents->capacity <= 0 || queue->capacity < contents->capacity;
    if (contents->elements.count > queue->capacity && smaller)
        return tutti_fail(
            TUTTI_INVALID,
            "queue '%s' is saved with %" PRId64 " tuples, the program's has a capacity of %" PRId64
            "; make it at least %" PRId64,
            queue->name, contents->elements.count, queue->capacity, contents->elements.count);
    return TUTTI_OK;
}

/* Under the lock. */
static void drop_elements(tutti_queue *queue)
{
    tutti__tuple_clear(&queue->elements);
    for (int64_t i = 0; has_slots(queue) && i < queue->slot_count; i++)
        tutti__tuple_destroy(queue->slots[i].tuple);
    queue->slot_count = 0;
}

tutti_status tutti__queue_restore(tutti_queue *queue, tutti_queue_contents *contents)
{
    TUTTI_TRY(tutti__queue_fits(queue, contents));
    pthread_mutex_lock(&queue->lock);
    tutti_status status = tutti__queue_make_room(queue, contents->elements.count);
    if (status == TUTTI_OK) {
        tutti_tuple *tuple;
        drop_elements(queue);
        while ((tuple = tutti__tuple_take_first(&contents->elements))) {
            queue->numbered = tuple->number;
            tutti__queue_insert(queue, tuple);
        }
        queue->numbered = contents->arrived;
        queue->drawn = contents->drawn;
        queue->closed = contents->closed;
        queue->cancel_pending = false;
        pthread_cond_broadcast(&queue->consumers.changed);
        pthread_cond_broadcast(&queue->producers.changed);
    }
    pthread_mutex_unlock(&queue->lock);
    return status;
}

int64_t tutti__queue_arrived(tutti_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    int64_t arrived = (int64_t)queue->numbered;
    pthread_mutex_unlock(&queue->lock);
    return arrived;
}
