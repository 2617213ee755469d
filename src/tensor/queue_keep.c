/* queue_keep.c: what a queue holds, out of it and into another. */
#include "tensor/queue_inside.h"

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

tutti_status tutti__queue_save(tutti_queue *queue, tutti_queue_contents *ret)
{
    tutti_queue_contents contents = {.component_count = queue->component_count};
    tutti_status status = TUTTI_OK;
    pthread_mutex_lock(&queue->lock);
    contents.arrived = queue->numbered;
    contents.drawn = queue->drawn;
    for (const tutti_tuple *t = queue->elements.first; t && status == TUTTI_OK; t = t->next)
        status = copy_tuple(t, &contents.elements);
    for (int64_t i = 0; has_slots(queue) && i < queue->slot_count && status == TUTTI_OK; i++)
        status = copy_tuple(queue->slots[i].tuple, &contents.elements);
    pthread_mutex_unlock(&queue->lock);
    if (status == TUTTI_OK)
        *ret = contents;
    else
        tutti__tuple_clear(&contents.elements);
    return status;
}

tutti_status tutti__queue_restore(tutti_queue *queue, tutti_queue_contents *contents)
{
    if (contents->component_count != queue->component_count)
        return tutti_fail(TUTTI_INVALID,
                          "queue '%s' has %d components, what is to be restored has %d",
                          queue->name, queue->component_count, contents->component_count);
    for (const tutti_tuple *t = contents->elements.first; t; t = t->next)
        TUTTI_TRY(tutti__queue_check(queue, t));
    pthread_mutex_lock(&queue->lock);
    tutti__tuple_clear(&queue->elements);
    for (int64_t i = 0; has_slots(queue) && i < queue->slot_count; i++)
        tutti__tuple_destroy(queue->slots[i].tuple);
    queue->slot_count = 0;
    tutti_status status = tutti__queue_make_room(queue, contents->elements.count);
    tutti_tuple *tuple;
    while (status == TUTTI_OK && (tuple = tutti__tuple_take_first(&contents->elements))) {
        queue->numbered = tuple->number;
        tutti__queue_insert(queue, tuple);
    }
    queue->numbered = contents->arrived;
    queue->drawn = contents->drawn;
    pthread_cond_broadcast(&queue->consumers.changed);
    pthread_cond_broadcast(&queue->producers.changed);
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
