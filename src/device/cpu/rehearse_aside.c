/* rehearse_aside.c: what a rehearsal does in place of an instruction that it leaves out: makes
 * zeros of its values, and times what it does beside waiting: the copy of a send or a recv, and a
 * dequeue of many on a queue of its own. */
#include <math.h>
#include <string.h>

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

/* Puts what the call gives into the queue, element by element, and takes it out again. */
static tutti_status pass_through(tutti_queue *queue, const tutti_call *call, int count,
                                 double *ret_seconds)
{
    tutti_tensor *batch[TUTTI_QUEUE_MAX_COMPONENTS] = {0}, *taken[TUTTI_QUEUE_MAX_COMPONENTS];
    tutti_status status = TUTTI_OK;
    for (int i = 0; status == TUTTI_OK && i < count; i++) {
        const tutti_view *view = &call->outputs[i];
        status = tutti_tensor_from(view->dtype, view->rank, view->dims, view->data, &batch[i]);
    }
    if (status == TUTTI_OK)
        status = tutti__queue_enqueue_many(queue, batch, TUTTI_QUEUE_FOREVER, NULL);
    tutti__tensors_drop(count, batch);
    TUTTI_TRY(status);
    uint64_t start = tutti__ticks();
    TUTTI_TRY(
        tutti__queue_dequeue_many(queue, call->outputs[0].dims[0], TUTTI_QUEUE_FOREVER, taken));
    tutti__tensors_drop(count, taken);
    *ret_seconds = since(start);
    return TUTTI_OK;
}

/* The first `count` outputs are a tuple's components. */
static double time_dequeue(const tutti_call *call, int count)
{
    tutti_queue *queue;
    double seconds = INFINITY;
    if (tutti__queue_create("rehearsal", 0, count, NULL, &queue) != TUTTI_OK)
        return INFINITY;
    (void)pass_through(queue, call, count, &seconds);
    tutti__queue_release(queue);
    return seconds;
}

/* Whether all outputs have memory: zeros for those whose size depends on data only by their
 * operator's word. */
static bool stand_in(const tutti_node *node, const tutti_call *call)
{
    for (int i = 0; i < node->output_count; i++) {
        const tutti_type *type = &node->types[i];
        if (call->outputs[i].data)
            continue;
        if (type->handle || type->dtype == TUTTI_STRING || !tutti_type_is_static(type) ||
            tutti_call_allocate(call, i, type->rank, type->dims) != TUTTI_OK)
            return false;
        memset(call->outputs[i].data, 0,
               (size_t)tutti_type_count(type) * tutti_dtype_size(type->dtype));
    }
    return true;
}

double tutti__cpu_rehearse_aside(const tutti_node *node, const tutti_call *call)
{
    bool there = stand_in(node, call);
    if (tutti__is(node, "send"))
        return time_copy(&call->inputs[0]);
    if (there && tutti__is(node, "recv"))
        return time_copy(&call->outputs[0]);
    if (there && tutti__is(node, "dequeue_own")) /* beside them it says what is missing */
        return time_dequeue(call, call->output_count - 1);
    return there && tutti__is(node, "dequeue_many") ? time_dequeue(call, call->output_count)
                                                    : INFINITY;
}
