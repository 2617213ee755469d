/* enqueue.c: putting elements into a queue. */
#include "base/status.h"
#include "tensor/queue_inside.h"
#include "tensor/type.h"

tutti_status tutti__queue_check(const tutti_queue *queue, const tutti_tuple *tuple)
{
    char text[TUTTI_TYPE_TEXT], expected[TUTTI_TYPE_TEXT];
    for (int i = 0; queue->types != NULL && i < queue->component_count; i++) {
        const tutti_type *type = tutti_tensor_type(tuple->tensors[i]);
        if (!tutti__type_fits(type, &queue->types[i]))
            return tutti_fail(TUTTI_INVALID, "enqueue to queue '%s': component %d is %s, needs %s",
                              queue->name, i, tutti_type_text(type, text),
                              tutti_type_text(&queue->types[i], expected));
    }
    return TUTTI_OK;
}

/* Moves the pending elements in as there is room. What is left in `pending` did not get in. */
static tutti_status put_in(tutti_queue *queue, tutti_tuple_list *pending, tutti_queue_wait wait)
{
    tutti_queue_request request = {.what = "enqueue to", .wait = wait, .began = tutti__now_ns()};
    tutti_queue_turn self;
    tutti_status status = TUTTI_OK;
    pthread_mutex_lock(&queue->lock);
    if (queue->closed) {
        pthread_mutex_unlock(&queue->lock);
        return tutti_fail(TUTTI_CLOSED, "enqueue to queue '%s': it is closed", queue->name);
    }
    tutti__queue_stand_in_line(&queue->producers, &self);
    for (;;) {
        status = tutti__queue_make_room(queue, pending->count);
        while (status == TUTTI_OK && queue->producers.first == &self && pending->count > 0 &&
               tutti__queue_held(queue) < queue->capacity) {
            tutti__queue_insert(queue, tutti__tuple_take_first(pending));
            pthread_cond_broadcast(&queue->consumers.changed);
        }
        if (pending->count == 0 || status != TUTTI_OK)
            break;
        if (queue->cancel_pending)
            status = tutti_fail(TUTTI_CANCELLED,
                                "enqueue to queue '%s': the queue was closed while it waited for "
                                "room",
                                queue->name);
        else
            status = tutti__queue_wait_for_change(queue, &queue->producers, &request);
        if (status != TUTTI_OK)
            break;
    }
    tutti__queue_leave_line(&queue->producers, &self);
    if (queue->closed) /* the last producer's leaving may be what consumers wait for */
        pthread_cond_broadcast(&queue->consumers.changed);
    pthread_mutex_unlock(&queue->lock);
    return status;
}

tutti_status tutti__queue_enqueue(tutti_queue *queue, tutti_tensor *const *tuple,
                                  tutti_queue_wait wait)
{
    tutti_tuple_list pending = {0};
    tutti_tuple *element = NULL;
    TUTTI_TRY(tutti__tuple_create(queue->component_count, tuple, &element));
    tutti__tuple_append(&pending, element);
    tutti_status status = tutti__queue_check(queue, element);
    if (status == TUTTI_OK)
        status = put_in(queue, &pending, wait);
    tutti__tuple_clear(&pending);
    return status;
}

tutti_status tutti__queue_enqueue_many(tutti_queue *queue, tutti_tensor *const *tuple,
                                       tutti_queue_wait wait, int64_t *ret_count)
{
    tutti_tuple_list pending = {0};
    tutti_status status = tutti__tuple_split(queue->component_count, tuple, &pending);
    if (status != TUTTI_OK)
        status = tutti__error_prefix(status, "enqueue of many to queue '%s'", queue->name);
    int64_t count = pending.count;
    if (status == TUTTI_OK && count > 0)
        status = tutti__queue_check(queue, pending.first); /* all have one type */
    if (status == TUTTI_OK)
        status = put_in(queue, &pending, wait);
    else
        tutti__tuple_clear(&pending), count = 0;
    if (ret_count != NULL)
        *ret_count = count - pending.count;
    tutti__tuple_clear(&pending);
    return status;
}

tutti_status tutti__queue_push_front(tutti_queue *queue, tutti_tensor *const *tuple)
{
    tutti_tuple *element = NULL;
    TUTTI_TRY(tutti__tuple_create(queue->component_count, tuple, &element));
    tutti_status status = tutti__queue_check(queue, element);
    if (status != TUTTI_OK) {
        tutti__tuple_destroy(element);
        return status;
    }
    pthread_mutex_lock(&queue->lock);
    status = tutti__queue_make_room(queue, 1);
    if (status == TUTTI_OK) {
        tutti_tuple_list back = {0};
        tutti__tuple_append(&back, element);
        queue->out++;
        tutti__queue_put_back(queue, &back);
        pthread_cond_broadcast(&queue->consumers.changed);
    }
    pthread_mutex_unlock(&queue->lock);
    if (status != TUTTI_OK)
        tutti__tuple_destroy(element);
    return status;
}
