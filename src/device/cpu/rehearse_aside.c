/* rehearse_aside.c: what a rehearsal does in place of an instruction that it leaves out: makes
 * zeros of its values, or of what is gathered copies of the own, and times what it does beside
 * waiting: the copy of a send or a recv, and a dequeue of many on a queue of its own. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/cpu.h"
#include "device/cpu/frame.h"
#include "ops/state/queues.h"

static double since(uint64_t start)
{
    return (double)(tutti__ticks() - start) * tutti__tick_ns() * 1e-9;
}

static double time_copy(const tutti_view *view)
{
    tutti_tensor *copy;
    uint64_t start = tutti__ticks();
    if (!view->data || view->dtype == TUTTI_STRING ||
        tutti_tensor_from(view->dtype, view->rank, view->dims, view->data, &copy) != TUTTI_OK)
        return INFINITY;
    tutti_tensor_release(copy);
    return since(start);
}

typedef struct filler {
    tutti_queue *queue;
    const tutti_kernel_call *call;
    int count;
    int64_t batches;
    tutti_status status;
    atomic_bool done;
} filler;

/* Puts what the call gives into the queue, element by element. */
static void *rehearse_aside_fill(void *context)
{
    filler *f = context;
    tutti_tensor *batch[TUTTI_QUEUE_MAX_COMPONENTS] = {0};
    for (int i = 0; f->status == TUTTI_OK && i < f->count; i++) {
        const tutti_view *view = &f->call->outputs[i];
        f->status = tutti_tensor_from(view->dtype, view->rank, view->dims, view->data, &batch[i]);
    }
    for (int64_t i = 0; f->status == TUTTI_OK && i < f->batches; i++)
        f->status = tutti__queue_enqueue_many(f->queue, batch, TUTTI_QUEUE_FOREVER, NULL);
    tutti__tensors_drop(f->count, batch);
    atomic_store(&f->done, true);
    return NULL;
}

/* So many batches that a queue is full, within reason. */
static int64_t batches_in(const tutti_node *queue, const tutti_kernel_call *call, int count)
{
    enum { MOST_BYTES = 8 << 20 };
    const tutti_attr *capacity = tutti_attr_find(queue->attrs, queue->attr_count, "capacity");
    int64_t rows = call->outputs[0].dims[0], bytes = 1;
    int64_t most = capacity && rows > 0 ? capacity->value.i / rows : 1;
    for (int i = 0; i < count; i++)
        bytes +=
            tutti_view_count(&call->outputs[i]) * (int64_t)tutti_dtype_size(call->outputs[i].dtype);
    most = most < MOST_BYTES / bytes ? most : MOST_BYTES / bytes;
    return most > 1 ? most : 1;
}

static double take_batch(const filler *f)
{
    tutti_tensor *taken[TUTTI_QUEUE_MAX_COMPONENTS];
    uint64_t start = tutti__ticks();
    if (tutti__queue_dequeue_many(f->queue, f->call->outputs[0].dims[0], TUTTI_QUEUE_FOREVER,
                                  taken) != TUTTI_OK)
        return INFINITY;
    tutti__tensors_drop(f->count, taken);
    return since(start);
}

/* Out of a full queue that another thread has filled and waits for room in: what is taken lay in
 * that core's cache until it left it for what came in behind. The first `count` outputs are a
 * tuple's components. */
static double time_dequeue(const tutti_node *node, const tutti_kernel_call *call, int count)
{
    const struct timespec a_moment = {.tv_nsec = 50000};
    int64_t batches = batches_in(node->inputs[0].node, call, count);
    int64_t room = batches * call->outputs[0].dims[0];
    filler f = {.call = call, .count = count, .batches = batches + 1};
    pthread_t thread;
    double seconds = INFINITY;
    if (tutti__queue_create("rehearsal", room, count, NULL, &f.queue) != TUTTI_OK)
        return INFINITY;
    if (pthread_create(&thread, NULL, rehearse_aside_fill, &f) == 0) {
        while (tutti__queue_size(f.queue) < room && !atomic_load(&f.done))
            nanosleep(&a_moment, NULL);
        nanosleep(&a_moment, NULL);
        if (tutti__queue_size(f.queue) == room)
            seconds = take_batch(&f);
        tutti__queue_close(f.queue, true); /* it may wait still where that failed */
        pthread_join(thread, NULL);
    }
    tutti__queue_release(f.queue);
    return seconds;
}

/* Whether all outputs have memory: zeros for those whose size depends on data only by their
 * operator's word. */
static bool stand_in(const tutti_node *node, const tutti_kernel_call *call)
{
    for (int i = 0; i < node->output_count; i++) {
        const tutti_type *type = &node->types[i];
        if (call->outputs[i].data)
            continue;
        if (type->handle || type->dtype == TUTTI_STRING || !tutti_type_is_static(type) ||
            tutti_kernel_call_allocate(call, i, type->rank, type->dims) != TUTTI_OK)
            return false;
        memset(call->outputs[i].data, 0,
               (size_t)tutti_type_count(type) * tutti_dtype_size(type->dtype));
    }
    return true;
}

/* Row numbers of other replicas: as many as the own ones up to the largest, spread alike. */
static void spread_rows(int64_t *rows, int64_t own, int64_t count)
{
    int64_t end = 1, copies = count / (own > 0 ? own : 1) + 1;
    for (int64_t i = 0; i < own; i++)
        end = rows[i] < INT64_MAX && rows[i] >= end ? rows[i] + 1 : end;
    for (int64_t i = own; own > 0 && i < count; i++)
        rows[i] = rows[i] < 0
                      ? rows[i]
                      : (int64_t)(((uint64_t)rows[i] + (uint64_t)(i / own * (end / copies))) %
                                  (uint64_t)end);
}

/* What is gathered from the others is taken to be like the own. */
static void gather_alone(const tutti_node *node, const tutti_kernel_call *call)
{
    const tutti_view *in = &call->inputs[0], *out = &call->outputs[0];
    if (!in->data || !out->data || in->dtype == TUTTI_STRING || in->rank == 0 ||
        tutti__int(node, "dim") != 0)
        return;
    size_t bytes = (size_t)tutti_view_count(in) * tutti_dtype_size(in->dtype);
    size_t all = (size_t)tutti_view_count(out) * tutti_dtype_size(out->dtype);
    if (bytes == 0)
        memset(out->data, 0, all);
    for (size_t at = 0; bytes > 0 && at < all; at += bytes)
        memcpy((char *)out->data + at, in->data, bytes < all - at ? bytes : all - at);
    if (in->dtype == TUTTI_I64 && in->rank == 1)
        spread_rows(out->data, in->dims[0], out->dims[0]);
}

double tutti__cpu_rehearse_aside(const tutti_node *node, const tutti_kernel_call *call)
{
    bool there = stand_in(node, call);
    if (there && tutti__is(node, "all_gather"))
        gather_alone(node, call);
    if (tutti__is(node, "send"))
        return time_copy(&call->inputs[0]);
    if (there && tutti__is(node, "recv"))
        return time_copy(&call->outputs[0]);
    if (there && tutti__is(node, "dequeue_own")) /* beside them it says what is missing */
        return time_dequeue(node, call, call->output_count - 1);
    return there && tutti__is(node, "dequeue_many") ? time_dequeue(node, call, call->output_count)
                                                    : INFINITY;
}
