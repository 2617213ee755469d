/* queue.h: a blocking queue of tuples of tensors, the resource behind the queue operators: first
 * in, first out, or in another order. Any number of threads may use one queue.
 *
 * Invariants:
 *  1. One mutex guards everything; nothing is called under it that could take another lock.
 *  2. Elements leave in the order they came in, or as tutti_queue_kind says. The elements of one
 * enqueue_many stand together, and so do those that one dequeue_many takes: callers on each side
 * are served in order of arrival, and one who waits keeps those behind him waiting.
 *  3. A call that fails leaves the queue as if it had not been made, but for enqueue_many, see
 * there.
 *  4. Tensors go in and out by reference: whoever enqueued one must not write it any more.
 *
 * Every call that can wait takes a deadline (absolute, in tutti__now_ns, or TUTTI_NO_DEADLINE; one
 * that has passed tries once) and `cancelled` (optional): when it turns true, tutti__queue_wake
 * makes waiting calls return TUTTI_CANCELLED. */
#ifndef TUTTI_TENSOR_QUEUE_H
#define TUTTI_TENSOR_QUEUE_H

#include "base/world.h"
#include "tensor/tuple.h"

#include <stdatomic.h>

typedef struct tutti_queue tutti_queue;

/* How long, and until what, a call may wait. */
typedef struct tutti_queue_wait {
    int64_t deadline;
    const atomic_bool *cancelled; /* (optional) */
} tutti_queue_wait;
#define TUTTI_QUEUE_FOREVER ((tutti_queue_wait){.deadline = TUTTI_NO_DEADLINE})

/* Which element leaves next. */
typedef enum tutti_queue_kind {
    TUTTI_QUEUE_FIFO,
    TUTTI_QUEUE_SHUFFLE,  /* any, drawn by a random number of the seed */
    TUTTI_QUEUE_PRIORITY, /* that with the lowest component 0, an i64 scalar; of equals the first */
    TUTTI_QUEUE_PADDING   /* as FIFO; batches are filled up with zeros to their largest element */
} tutti_queue_kind;

typedef struct tutti_queue_order {
    tutti_queue_kind kind;
    int64_t min_after_dequeue; /* of SHUFFLE: so many stay until the queue is closed */
    uint64_t seed;
} tutti_queue_order;

/* `name` stands in messages. capacity 0: no bound. `types` (optional) says what each of the
 * `component_count` tensors of an element is; dimensions may be TUTTI_ANY. One reference. */
tutti_status tutti__queue_create(const char *name, int64_t capacity, int component_count,
                                 const tutti_type *types, tutti_queue **ret);
/* The same for any kind. SHUFFLE needs a capacity above min_after_dequeue, PRIORITY a component 0
 * of i64[], PADDING types. */
tutti_status tutti__queue_create_ordered(const char *name, int64_t capacity, int component_count,
                                         const tutti_type *types, const tutti_queue_order *order,
                                         tutti_queue **ret);
const tutti_queue_order *tutti__queue_order_of(const tutti_queue *queue);
tutti_queue *tutti__queue_retain(tutti_queue *queue);
void tutti__queue_release(tutti_queue *queue); /* NULL is fine; nobody may wait in it */

/* Adds one element: `tuple` holds component_count tensors, which the queue retains. Waits while the
 * queue is full. TUTTI_CLOSED after close, TUTTI_CANCELLED when close cancels it while it waits. */
tutti_status tutti__queue_enqueue(tutti_queue *queue, tutti_tensor *const *tuple,
                                  tutti_queue_wait wait);
/* Adds the slices along axis 0 of each tensor as elements. They go in one by one as there is room,
 * so that a batch may be larger than the capacity; when the call fails while it waits, those that
 * are in stay in. *ret_count (optional) is their number, also on failure. */
tutti_status tutti__queue_enqueue_many(tutti_queue *queue, tutti_tensor *const *tuple,
                                       tutti_queue_wait wait, int64_t *ret_count);
/* Puts an element back, to the front of a FIFO: undoes a dequeue. Never waits, whatever the
 * capacity, and works on a closed queue. */
tutti_status tutti__queue_push_front(tutti_queue *queue, tutti_tensor *const *tuple);

/* Takes the first element: ret_tuple gets component_count tensors, the caller's to release. Waits
 * while the queue is empty. TUTTI_CLOSED when it is closed and drained. */
tutti_status tutti__queue_dequeue(tutti_queue *queue, tutti_queue_wait wait,
                                  tutti_tensor **ret_tuple);
/* Takes n elements, stacked along a new axis 0. Waits for all of them; when the queue is closed
 * with fewer than n left, these stay in it and the call returns TUTTI_OUT_OF_RANGE. */
tutti_status tutti__queue_dequeue_many(tutti_queue *queue, int64_t n, tutti_queue_wait wait,
                                       tutti_tensor **ret_tuple);
/* The same, but a closed queue gives what it has left; TUTTI_CLOSED when that is nothing. */
tutti_status tutti__queue_dequeue_up_to(tutti_queue *queue, int64_t n, tutti_queue_wait wait,
                                        tutti_tensor **ret_tuple);

int64_t tutti__queue_size(tutti_queue *queue);
int tutti__queue_component_count(const tutti_queue *queue);
bool tutti__queue_is_closed(tutti_queue *queue);
/* No enqueue begins any more. Those that wait go on waiting for room, or fail with TUTTI_CANCELLED
 * when cancel_pending. Dequeues drain what is left. Closing again is fine. */
void tutti__queue_close(tutti_queue *queue, bool cancel_pending);
/* Makes everyone who waits look at his `cancelled`; to be called after that was set. */
void tutti__queue_wake(tutti_queue *queue);

/* ---- queue_keep.c: for checkpoints ---- */

/* What a queue holds at one moment, what a call has collected that waits for more among it: such a
 * call has taken nothing yet. Elements share their tensors with the queue's. */
typedef struct tutti_queue_contents {
    int component_count;
    int64_t capacity; /* of the queue; 0: no bound, -1: not known */
    /* Nothing more comes: not while somebody who came before it was closed waits to put in. */
    bool closed;
    uint64_t arrived, drawn;   /* elements that ever came, random numbers used */
    tutti_tuple_list elements; /* in the order of the queue's own list, with their numbers */
} tutti_queue_contents;
tutti_status tutti__queue_save(tutti_queue *queue, tutti_queue_contents *ret);
/* Whether the queue can take them: INVALID, with what is saved and what the queue takes, where
 * components differ or there are more than it has room for. (A queue may hold more than its
 * capacity, when elements were put back; such a one fits where the capacity is no smaller.) */
tutti_status tutti__queue_fits(const tutti_queue *queue, const tutti_queue_contents *contents);
/* Puts them in the place of what the queue holds, and takes them out of `contents`; the queue is
 * closed or open as they say. A failure changes nothing. Nobody may be taking elements meanwhile.
 */
tutti_status tutti__queue_restore(tutti_queue *queue, tutti_queue_contents *contents);
/* Elements that came since the queue was made, those before it was restored among them. */
int64_t tutti__queue_arrived(tutti_queue *queue);

#endif
