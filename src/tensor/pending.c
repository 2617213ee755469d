/* pending.c: see pending.h. One lock for all, held while somebody takes the holder, so that it does
 * not go before. Whoever moves elements says so first, and others wait until they are there. */
#include "tensor/pending.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "tensor/type.h"

/* Below this many bytes a copy is cheaper than what surrounds it. */
enum { SMALL = 1 << 14 };

/* Elements stand either in a holder on the host or in a source in other memory. */
typedef struct tutti_pending {
    tutti_type type;
    tutti_standing standing; /* holder NULL: in the source */
    tutti_tensor *source;
    tutti_device_event *event;
    bool moving; /* under the lock: somebody moves them */
} tutti_pending;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;

/* Reserved memory is not in use before it is written. */
static int64_t counted(const tutti_buffer *buffer)
{
    return (int64_t)((buffer->size + 63) / 64 * 64);
}

static void pending_free(tutti_pending *pending)
{
    tutti__buffer_release(pending->standing.holder);
    tutti_tensor_release(pending->source);
    tutti__device_event_release(pending->event);
    free(pending);
}

/* A tensor whose memory is reserved; takes over what `pending` holds, also on failure. */
static tutti_status reserve(const tutti_pending *pending, tutti_tensor **ret)
{
    tutti_tensor *tensor = NULL;
    tutti_pending *copy = malloc(sizeof *copy);
    tutti_status status = copy ? tutti__tensor_in(tutti__host_memory(), &pending->type, &tensor)
                               : tutti_fail(TUTTI_NO_MEMORY, "tensor: no memory for its header");
    if (status != TUTTI_OK) {
        tutti__buffer_release(pending->standing.holder);
        tutti_tensor_release(pending->source);
        tutti__device_event_release(pending->event);
        free(copy);
        return status;
    }
    *copy = *pending;
    tutti__memory_count(-counted(tensor->buffer));
    atomic_store_explicit(&tensor->buffer->pending, copy, memory_order_release);
    *ret = tensor;
    return TUTTI_OK;
}

tutti_status tutti__tensor_pending(const tutti_type *type, const tutti_standing *standing,
                                   tutti_tensor **ret)
{
    tutti_pending pending = {.type = *type, .standing = *standing};
    tutti__buffer_retain(standing->holder);
    return reserve(&pending, ret);
}

tutti_status tutti__tensor_awaited(tutti_tensor *source, tutti_device_event *event,
                                   tutti_tensor **ret)
{
    tutti_pending pending = {.type = source->type,
                             .source = tutti_tensor_retain(source),
                             .event = tutti__device_event_retain(event)};
    return reserve(&pending, ret);
}

tutti_tensor *tutti__tensor_source(const tutti_tensor *tensor, size_t *ret_offset,
                                   tutti_device_event **ret_event)
{
    tutti_tensor *source = NULL;
    if (!tutti__tensor_is_pending(tensor))
        return NULL;
    pthread_mutex_lock(&lock);
    const tutti_pending *pending = atomic_load(&tensor->buffer->pending);
    if (pending && pending->source && tensor->contiguous) {
        source = tutti_tensor_retain(pending->source);
        if (ret_event)
            *ret_event = tutti__device_event_retain(pending->event);
    }
    pthread_mutex_unlock(&lock);
    *ret_offset = tensor->offset;
    return source;
}

tutti_status tutti__tensor_turned(tutti_tensor *tensor, const int *order, tutti_tensor **ret)
{
    tutti_tensor *view;
    TUTTI_TRY(tutti_tensor_permute(tensor, order, &view)); /* checks the order */
    tutti_status status;
    if ((size_t)tensor->count * tutti_dtype_size(tensor->type.dtype) < SMALL ||
        tensor->type.dtype == TUTTI_STRING || !tutti__tensor_on_host(tensor) ||
        !tensor->contiguous) {
        status = tutti_tensor_contiguous(view, ret);
    } else {
        tutti_standing from = tutti__tensor_standing(tensor), turned = from;
        for (int i = 0; i < tensor->type.rank; i++)
            turned.strides[i] = from.strides[order[i]];
        status = tutti__tensor_pending(&view->type, &turned, ret);
        tutti__buffer_release(from.holder);
    }
    tutti_tensor_release(view);
    return status;
}

tutti_standing tutti__tensor_standing(const tutti_tensor *tensor)
{
    tutti_standing standing;
    pthread_mutex_lock(&lock);
    const tutti_pending *pending = atomic_load(&tensor->buffer->pending);
    if (pending != NULL && pending->standing.holder != NULL && tensor->contiguous &&
        tensor->offset == 0 && tutti_type_equal(&pending->type, &tensor->type)) {
        standing = pending->standing;
        tutti__buffer_retain(standing.holder);
        pthread_mutex_unlock(&lock);
        return standing;
    }
    pthread_mutex_unlock(&lock);
    standing = (tutti_standing){.holder = tutti__buffer_retain(tensor->buffer),
                                .bytes = tutti_tensor_data(tensor)};
    memcpy(standing.strides, tensor->strides, sizeof standing.strides);
    return standing;
}

static void copy_out(const tutti_pending *pending, tutti_buffer *buffer)
{
    const tutti_memory *memory = pending->source->buffer->memory;
    tutti_status status = tutti__device_event_wait(pending->event);
    if (status == TUTTI_OK)
        status = memory->copy_out(memory->self, buffer->data, tutti_tensor_data(pending->source),
                                  (size_t)pending->source->count *
                                      tutti_dtype_size(pending->type.dtype));
    if (status == TUTTI_OK)
        return;
    memset(buffer->data, 0, buffer->size);
    tutti__log(TUTTI_LOG_WARNING, "what a run on %s gave is read as zeros: %s", memory->name,
               tutti_error_message());
}

static void move(const tutti_pending *pending, tutti_buffer *buffer)
{
    int64_t strides[TUTTI_MAX_RANK];
    const tutti_type *type = &pending->type;
    if (pending->source) {
        copy_out(pending, buffer);
        return;
    }
    tutti__row_major(type->rank, type->dims, strides);
    tutti__copy_strided(type->rank, type->dims, tutti_dtype_size(type->dtype), buffer->data,
                        strides, pending->standing.bytes, pending->standing.strides);
}

void tutti__buffer_resolve(tutti_buffer *buffer)
{
    tutti_pending *pending;
    pthread_mutex_lock(&lock);
    while ((pending = atomic_load(&buffer->pending)) != NULL && pending->moving)
        pthread_cond_wait(&moved, &lock);
    if (pending != NULL)
        pending->moving = true;
    pthread_mutex_unlock(&lock);
    if (pending == NULL)
        return;
    tutti__memory_count(counted(buffer));
    move(pending, buffer);
    pthread_mutex_lock(&lock);
    atomic_store_explicit(&buffer->pending, NULL, memory_order_release);
    pthread_cond_broadcast(&moved);
    pthread_mutex_unlock(&lock);
    pending_free(pending);
}

void tutti__buffer_forget(tutti_buffer *buffer)
{
    tutti_pending *pending = atomic_load(&buffer->pending);
    if (pending == NULL)
        return;
    tutti__memory_count(counted(buffer)); /* the release counts it back */
    pending_free(pending);
}
