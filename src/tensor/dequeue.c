/* dequeue.c: taking elements out of a queue. */
#include "base/status.h"
#include "tensor/queue_inside.h"

#include <inttypes.h>

/* What to do with `wanted` elements once they are taken; the lock is free, the turn is kept. */
typedef tutti_status finish_fn(const tutti_queue *queue, tutti_tuple_list *taken,
                               tutti_tensor **ret_tuple);

static tutti_status drained(const tutti_queue *queue, const tutti_queue_request *request,
                            int64_t taken)
{
    if (request->up_to && taken > 0)
        return TUTTI_OK;
    if (request->many && !request->up_to)
        return tutti_fail(TUTTI_OUT_OF_RANGE,
                          "%s queue '%s': it is closed and has %" PRId64 " elements left, needs "
                          "%" PRId64,
                          request->what, queue->name, taken, request->wanted);
    return tutti_fail(TUTTI_CLOSED, "%s queue '%s': it is closed and has no elements left",
                      request->what, queue->name);
}

/* Under the lock: collects the wanted elements as they come. */
static tutti_status collect(tutti_queue *queue, tutti_queue_turn *self,
                            const tutti_queue_request *request, tutti_tuple_list *taken)
{
    for (;;) {
        while (queue->consumers.first == self && taken->count < request->wanted &&
               tutti__queue_may_take(queue)) {
            tutti__tuple_append(taken, tutti__queue_pick(queue));
            pthread_cond_broadcast(&queue->producers.changed);
        }
        if (taken->count == request->wanted)
            return TUTTI_OK;
        bool last = queue->consumers.first == self && queue->producers.first == NULL;
        if (queue->closed && last)
            return drained(queue, request, taken->count);
        if (queue->consumers.first == self)
            queue->collected = taken;
        tutti_status status = tutti__queue_wait_for_change(queue, &queue->consumers, request);
        if (queue->consumers.first == self)
            queue->collected = NULL;
        TUTTI_TRY(status);
    }
}

static tutti_status take_out(tutti_queue *queue, const tutti_queue_request *request,
                             finish_fn *finish, tutti_tensor **ret_tuple)
{
    tutti_tuple_list taken = {0};
    tutti_queue_turn self;
    pthread_mutex_lock(&queue->lock);
    tutti__queue_stand_in_line(&queue->consumers, &self);
    tutti_status status = collect(queue, &self, request, &taken);
    if (status == TUTTI_OK) {
        pthread_mutex_unlock(&queue->lock);
        status = finish(queue, &taken, ret_tuple);
        pthread_mutex_lock(&queue->lock);
    }
    if (status != TUTTI_OK)
        tutti__queue_put_back(queue, &taken);
    else
        queue->out -= taken.count;
    tutti__queue_leave_line(&queue->consumers, &self);
    pthread_mutex_unlock(&queue->lock);
    tutti__tuple_clear(&taken);
    return status;
}

static tutti_status hand_over(const tutti_queue *queue, tutti_tuple_list *taken,
                              tutti_tensor **ret_tuple)
{
    for (int i = 0; i < queue->component_count; i++)
        ret_tuple[i] = tutti_tensor_retain(taken->first->tensors[i]);
    return TUTTI_OK;
}

/* An empty batch: [0, dims of the component]. */
static tutti_status stack_nothing(const tutti_queue *queue, int i, tutti_tensor **ret)
{
    if (queue->types == NULL || !tutti_type_is_static(&queue->types[i]) ||
        queue->types[i].rank == TUTTI_MAX_RANK)
        return tutti_fail(TUTTI_INVALID,
                          "dequeue of 0 elements: the shape of component %d is not known; declare "
                          "it with the queue",
                          i);
    int64_t dims[TUTTI_MAX_RANK] = {0};
    for (int axis = 0; axis < queue->types[i].rank; axis++)
        dims[axis + 1] = queue->types[i].dims[axis];
    return tutti_tensor_create(queue->types[i].dtype, queue->types[i].rank + 1, dims, ret);
}

static tutti_status stack(const tutti_queue *queue, tutti_tuple_list *taken,
                          tutti_tensor **ret_tuple)
{
    tutti_tuple *stacked = NULL;
    bool padded = queue->order.kind == TUTTI_QUEUE_PADDING;
    TUTTI_TRY(tutti__tuple_empty(queue->component_count, &stacked));
    for (; stacked->count < queue->component_count; stacked->count++) {
        tutti_tensor **place = &stacked->tensors[stacked->count];
        tutti_status status = taken->count > 0
                                  ? tutti__tuple_stack(taken, stacked->count, padded, place)
                                  : stack_nothing(queue, stacked->count, place);
        if (status != TUTTI_OK) {
            tutti__tuple_destroy(stacked);
            return tutti__error_prefix(status, "queue '%s'", queue->name);
        }
    }
    for (int i = 0; i < queue->component_count; i++)
        ret_tuple[i] = tutti_tensor_retain(stacked->tensors[i]);
    tutti__tuple_destroy(stacked);
    return TUTTI_OK;
}

tutti_status tutti__queue_dequeue(tutti_queue *queue, tutti_queue_wait wait,
                                  tutti_tensor **ret_tuple)
{
    tutti_queue_request request = {
        .what = "dequeue from", .wanted = 1, .wait = wait, .began = tutti__now_ns()};
    return take_out(queue, &request, hand_over, ret_tuple);
}

static tutti_status dequeue_some(tutti_queue *queue, int64_t n, tutti_queue_wait wait, bool up_to,
                                 tutti_tensor **ret_tuple)
{
    if (n < 0)
        return tutti_fail(TUTTI_INVALID,
                          "dequeue of many from queue '%s': %" PRId64
                          " elements wanted, needs 0 or "
                          "more",
                          queue->name, n);
    tutti_queue_request request = {.what = "dequeue of many from",
                                   .wanted = n,
                                   .many = true,
                                   .up_to = up_to,
                                   .wait = wait,
                                   .began = tutti__now_ns()};
    return take_out(queue, &request, stack, ret_tuple);
}

tutti_status tutti__queue_dequeue_many(tutti_queue *queue, int64_t n, tutti_queue_wait wait,
                                       tutti_tensor **ret_tuple)
{
    return dequeue_some(queue, n, wait, false, ret_tuple);
}

tutti_status tutti__queue_dequeue_up_to(tutti_queue *queue, int64_t n, tutti_queue_wait wait,
                                        tutti_tensor **ret_tuple)
{
    return dequeue_some(queue, n, wait, true, ret_tuple);
}
