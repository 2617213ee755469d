/* queue_inside.h: the queue's struct and its lines of waiting calls, shared by queue.c, enqueue.c,
 * dequeue.c, queue_order.c and queue_keep.c only. */
#ifndef TUTTI_TENSOR_QUEUE_INSIDE_H
#define TUTTI_TENSOR_QUEUE_INSIDE_H

#include "tensor/queue.h"
#include "tensor/tuple.h"

#include <pthread.h>

/* One who stands in line, on his own stack. */
typedef struct tutti_queue_turn {
    struct tutti_queue_turn *next;
} tutti_queue_turn;

/* One side of the queue: producers or consumers. Only the first in line moves elements. */
typedef struct tutti_queue_line {
    pthread_cond_t changed;
    tutti_queue_turn *first, **end;
} tutti_queue_line;

/* An element of a queue that is no FIFO. */
typedef struct tutti_queue_slot {
    int64_t priority;
    uint64_t number; /* in order of arrival */
    tutti_tuple *tuple;
} tutti_queue_slot;

struct tutti_queue {
    atomic_int references;
    char *name;
    int64_t capacity; /* INT64_MAX without bound */
    int component_count;
    tutti_type *types; /* or NULL */
    pthread_mutex_t lock;
    tutti_queue_line producers, consumers;
    tutti_queue_order order;
    tutti_tuple_list elements; /* of FIFO and PADDING */
    tutti_queue_slot *slots;   /* of the others */
    int64_t slot_count, slot_room;
    int64_t out; /* elements taken that may still be put back */
    /* Of these, those of the first in line while he waits for more; or NULL. */
    const tutti_tuple_list *collected;
    uint64_t numbered, drawn; /* elements that came, random numbers used */
    bool closed, cancel_pending;
};

/* What a call is about, for its messages and its wait. */
typedef struct tutti_queue_request {
    const char *what; /* "dequeue from" */
    int64_t wanted;   /* elements to take; 0 for a call that puts in */
    bool many, up_to; /* of a call that takes */
    tutti_queue_wait wait;
    int64_t began; /* ns */
} tutti_queue_request;

/* All three under the lock. */
void tutti__queue_stand_in_line(tutti_queue_line *line, tutti_queue_turn *self);
void tutti__queue_leave_line(tutti_queue_line *line, tutti_queue_turn *self); /* wakes the others */
/* Waits for a change, until the deadline or a cancellation. Spurious returns are fine: every caller
 * looks again. */
tutti_status tutti__queue_wait_for_change(tutti_queue *queue, tutti_queue_line *line,
                                          const tutti_queue_request *request);

/* enqueue.c: INVALID when the components are not what the queue takes. */
tutti_status tutti__queue_check(const tutti_queue *queue, const tutti_tuple *tuple);

/* queue_order.c; all under the lock. make_room comes before insert. */
int64_t tutti__queue_held(const tutti_queue *queue);
bool tutti__queue_may_take(const tutti_queue *queue);
tutti_status tutti__queue_make_room(tutti_queue *queue, int64_t more);
void tutti__queue_insert(tutti_queue *queue, tutti_tuple *tuple);
tutti_tuple *tutti__queue_pick(tutti_queue *queue); /* is out until put back or handed over */
void tutti__queue_put_back(tutti_queue *queue, tutti_tuple_list *taken);
void tutti__queue_clear(tutti_queue *queue);

#endif
