/* queue.c: a queue's life and its lines of waiting calls. See queue.h for the invariants. */
#include "tensor/queue_inside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void line_init(tutti_queue_line *line)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&line->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    line->first = NULL;
    line->end = &line->first;
}

static tutti_status copy_types(tutti_queue *queue, int count, const tutti_type *types)
{
    if (types == NULL)
        return TUTTI_OK;
    for (int i = 0; i < count; i++)
        if (tutti_dtype_size(types[i].dtype) == 0 || types[i].rank < 0 ||
            types[i].rank > TUTTI_MAX_RANK || types[i].handle)
            return tutti_fail(TUTTI_INVALID, "queue '%s': type of component %d is not a tensor's",
                              queue->name, i);
    queue->types = malloc((size_t)count * sizeof *types);
    if (queue->types == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "queue '%s': no memory for %d types", queue->name,
                          count);
    memcpy(queue->types, types, (size_t)count * sizeof *types);
    return TUTTI_OK;
}

static tutti_status check_order(const char *name, int64_t capacity, const tutti_type *types,
                                const tutti_queue_order *order)
{
    char text[TUTTI_TYPE_TEXT];
    if (order->kind == TUTTI_QUEUE_SHUFFLE &&
        (order->min_after_dequeue < 0 || (capacity > 0 && order->min_after_dequeue >= capacity)))
        return tutti_fail(TUTTI_INVALID,
                          "queue '%s': %" PRId64 " elements are to stay in it, needs 0 or more and "
                          "fewer than its capacity of %" PRId64,
                          name, order->min_after_dequeue, capacity);
    if (order->kind == TUTTI_QUEUE_PRIORITY &&
        (types == NULL || types[0].dtype != TUTTI_I64 || types[0].rank != 0))
        return tutti_fail(TUTTI_INVALID,
                          "queue '%s': its first component is %s, needs i64[], the priority", name,
                          types != NULL ? tutti_type_text(&types[0], text) : "of no known type");
    return TUTTI_OK;
}

tutti_status tutti__queue_create(const char *name, int64_t capacity, int component_count,
                                 const tutti_type *types, tutti_queue **ret)
{
    return tutti__queue_create_ordered(name, capacity, component_count, types,
                                       &(tutti_queue_order){.kind = TUTTI_QUEUE_FIFO}, ret);
}

tutti_status tutti__queue_create_ordered(const char *name, int64_t capacity, int component_count,
                                         const tutti_type *types, const tutti_queue_order *order,
                                         tutti_queue **ret)
{
    if (capacity < 0 || component_count < 1)
        return tutti_fail(TUTTI_INVALID,
                          "queue '%s': capacity %" PRId64 " and %d components, needs a capacity of "
                          "0 (no bound) or more and at least 1 component",
                          name, capacity, component_count);
    TUTTI_TRY(check_order(name, capacity, types, order));
    tutti_queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "queue '%s': no memory", name);
    atomic_init(&queue->references, 1);
    pthread_mutex_init(&queue->lock, NULL);
    line_init(&queue->producers);
    line_init(&queue->consumers);
    queue->capacity = capacity > 0 ? capacity : INT64_MAX;
    queue->component_count = component_count;
    queue->order = *order;
    if (order->kind != TUTTI_QUEUE_SHUFFLE)
        queue->order.min_after_dequeue = 0;
    queue->name = strdup(name);
    tutti_status status = queue->name != NULL
                              ? copy_types(queue, component_count, types)
                              : tutti_fail(TUTTI_NO_MEMORY, "queue '%s': no memory", name);
    if (status != TUTTI_OK) {
        tutti__queue_release(queue);
        return status;
    }
    *ret = queue;
    return TUTTI_OK;
}

tutti_queue *tutti__queue_retain(tutti_queue *queue)
{
    atomic_fetch_add_explicit(&queue->references, 1, memory_order_relaxed);
    return queue;
}

void tutti__queue_release(tutti_queue *queue)
{
    if (queue == NULL || atomic_fetch_sub_explicit(&queue->references, 1, memory_order_acq_rel) > 1)
        return;
    tutti__queue_clear(queue);
    pthread_cond_destroy(&queue->producers.changed);
    pthread_cond_destroy(&queue->consumers.changed);
    pthread_mutex_destroy(&queue->lock);
    free(queue->types);
    free(queue->name);
    free(queue);
}

void tutti__queue_stand_in_line(tutti_queue_line *line, tutti_queue_turn *self)
{
    self->next = NULL;
    *line->end = self;
    line->end = &self->next;
}

void tutti__queue_leave_line(tutti_queue_line *line, tutti_queue_turn *self)
{
    tutti_queue_turn **place = &line->first;
    while (*place != self)
        place = &(*place)->next;
    *place = self->next;
    if (line->end == &self->next)
        line->end = place;
    pthread_cond_broadcast(&line->changed);
}

static tutti_status give_up(const tutti_queue *queue, const tutti_queue_request *request,
                            int64_t now)
{
    double seconds = (double)(now - request->began) / 1e9;
    bool dequeues = request->wanted > 0;
    if (dequeues && queue->order.min_after_dequeue > 0)
        return tutti_fail(
            TUTTI_DEADLINE,
            "%s queue '%s': still fewer than %" PRId64 " elements beside the %" PRId64
            " that stay in it (min_after_dequeue) after %.1f s; is a producer running, "
            "and does it close the queue?",
            request->what, queue->name, request->wanted, queue->order.min_after_dequeue, seconds);
    if (request->wanted > 1)
        return tutti_fail(TUTTI_DEADLINE,
                          "%s queue '%s': still fewer than %" PRId64 " elements after %.1f s; is a "
                          "producer running?",
                          request->what, queue->name, request->wanted, seconds);
    return tutti_fail(TUTTI_DEADLINE, "%s queue '%s': still %s after %.1f s; is a %s running?",
                      request->what, queue->name, dequeues ? "empty" : "full", seconds,
                      dequeues ? "producer" : "consumer");
}

/* Waits for a change. Spurious returns are fine: every caller looks again. When the clock of the
 * world is not the system's (a simulator), the system's wait ends at once and the world sleeps. */
tutti_status tutti__queue_wait_for_change(tutti_queue *queue, tutti_queue_line *line,
                                          const tutti_queue_request *request)
{
    const tutti_queue_wait *wait = &request->wait;
    if (wait->cancelled != NULL && atomic_load(wait->cancelled))
        return tutti_fail(TUTTI_CANCELLED, "%s queue '%s': the run was cancelled while it waited",
                          request->what, queue->name);
    if (wait->deadline == TUTTI_NO_DEADLINE) {
        pthread_cond_wait(&line->changed, &queue->lock);
        return TUTTI_OK;
    }
    int64_t now = tutti__now_ns();
    if (now >= wait->deadline)
        return give_up(queue, request, now);
    struct timespec until = {.tv_sec = (time_t)(wait->deadline / 1000000000),
                             .tv_nsec = (long)(wait->deadline % 1000000000)};
    if (pthread_cond_timedwait(&line->changed, &queue->lock, &until) == ETIMEDOUT) {
        int64_t left = wait->deadline - tutti__now_ns();
        const tutti_world *world = tutti__world();
        if (left > 0) {
            pthread_mutex_unlock(&queue->lock);
            world->sleep_ns(world->self, left < 1000000 ? left : 1000000);
            pthread_mutex_lock(&queue->lock);
        }
    }
    return TUTTI_OK;
}

int64_t tutti__queue_size(tutti_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    int64_t size = tutti__queue_held(queue);
    pthread_mutex_unlock(&queue->lock);
    return size;
}

const tutti_queue_order *tutti__queue_order_of(const tutti_queue *queue)
{
    return &queue->order;
}

int tutti__queue_component_count(const tutti_queue *queue)
{
    return queue->component_count;
}

bool tutti__queue_is_closed(tutti_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    bool closed = queue->closed;
    pthread_mutex_unlock(&queue->lock);
    return closed;
}

static void wake_all(tutti_queue *queue)
{
    pthread_cond_broadcast(&queue->producers.changed);
    pthread_cond_broadcast(&queue->consumers.changed);
}

void tutti__queue_close(tutti_queue *queue, bool cancel_pending)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    queue->cancel_pending |= cancel_pending;
    wake_all(queue);
    pthread_mutex_unlock(&queue->lock);
}

void tutti__queue_wake(tutti_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    wake_all(queue);
    pthread_mutex_unlock(&queue->lock);
}
