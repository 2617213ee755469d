/* pending.c: see pending.h. One lock for all: it is held while elements move, so that they move
 * once, and while somebody takes the holder, so that it does not go before. */
#include "tensor/pending.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "tensor/type.h"

/* Below this many bytes a copy is cheaper than what surrounds it. */
enum { SMALL = 1 << 14 };

typedef struct tutti_pending {
    tutti_type type;
    tutti_standing standing;
} tutti_pending;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Reserved memory is not in use before it is written. */
static int64_t counted(const tutti_buffer *buffer)
{
    return (int64_t)((buffer->size + 63) / 64 * 64);
}

tutti_status tutti__tensor_pending(const tutti_type *type, const tutti_standing *standing,
                                   tutti_tensor **ret)
{
    tutti_tensor *tensor;
    tutti_pending *pending = malloc(sizeof *pending);
    if (pending == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "tensor: no memory for its header");
    tutti_status status = tutti__tensor_in(tutti__host_memory(), type, &tensor);
    if (status != TUTTI_OK) {
        free(pending);
        return status;
    }
    *pending = (tutti_pending){*type, *standing};
    tutti__buffer_retain(standing->holder);
    tutti__memory_count(-counted(tensor->buffer));
    atomic_store_explicit(&tensor->buffer->pending, pending, memory_order_release);
    *ret = tensor;
    return TUTTI_OK;
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
    if (pending != NULL && tensor->contiguous && tensor->offset == 0 &&
        tutti_type_equal(&pending->type, &tensor->type)) {
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

void tutti__buffer_resolve(tutti_buffer *buffer)
{
    pthread_mutex_lock(&lock);
    tutti_pending *pending = atomic_load(&buffer->pending);
    if (pending != NULL) {
        int64_t strides[TUTTI_MAX_RANK];
        const tutti_type *type = &pending->type;
        tutti__row_major(type->rank, type->dims, strides);
        tutti__memory_count(counted(buffer));
        tutti__copy_strided(type->rank, type->dims, tutti_dtype_size(type->dtype), buffer->data,
                            strides, pending->standing.bytes, pending->standing.strides);
        atomic_store_explicit(&buffer->pending, NULL, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    if (pending != NULL)
        tutti__buffer_release(pending->standing.holder);
    free(pending);
}

void tutti__buffer_forget(tutti_buffer *buffer)
{
    tutti_pending *pending = atomic_load(&buffer->pending);
    if (pending == NULL)
        return;
    tutti__memory_count(counted(buffer)); /* the release counts it back */
    tutti__buffer_release(pending->standing.holder);
    free(pending);
}
