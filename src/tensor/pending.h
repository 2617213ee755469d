/* pending.h: tensors in host memory whose elements still stand elsewhere, and are moved when
 * somebody asks for them.
 *
 * A weight that stands in a file in its own order of dimensions, at any address, becomes a tensor
 * without a copy. Whoever wants another form of it (a kernel that packs) takes the elements from
 * where they stand; whoever asks for its data gets it whole, once.
 *
 * What a run gives stands in its device's memory, and may not be there yet. Whoever asks for its
 * data waits for the device and gets a copy; a run on the same device takes it from where it
 * stands. So the host waits only where somebody reads. */
#ifndef TUTTI_TENSOR_PENDING_H
#define TUTTI_TENSOR_PENDING_H

#include "tensor/device_event.h"
#include "tensor/tensor.h"

/* Where elements stand: (i0, i1, …) at bytes + (i0 strides[0] + i1 strides[1] + …) * size. `bytes`
 * need not be aligned. */
typedef struct tutti_standing {
    tutti_buffer *holder;
    const char *bytes;
    int64_t strides[TUTTI_MAX_RANK];
} tutti_standing;

/* A contiguous tensor in host memory of `type`, no strings, whose elements stand in
 * `standing.holder`, which is retained until they are moved; the caller vouches that they lie
 * inside and that nobody changes them. Its memory is reserved, but not touched. */
tutti_status tutti__tensor_pending(const tutti_type *type, const tutti_standing *standing,
                                   tutti_tensor **ret);
/* A contiguous tensor in host memory of the type of `source`, a contiguous one in other memory, no
 * strings, whose bytes are there when `event` has come (NULL: they are). Both are retained until
 * the bytes are copied. */
tutti_status tutti__tensor_awaited(tutti_tensor *source, tutti_device_event *event,
                                   tutti_tensor **ret);
/* The tensor in other memory whose bytes a contiguous one on the host stands for as long as nobody
 * asked for its data, retained, where in it they begin, and what to wait for (retained; ret_event
 * may be NULL: whoever enqueues on the device of that memory need not wait); else NULL. */
tutti_tensor *tutti__tensor_source(const tutti_tensor *tensor, size_t *ret_offset,
                                   tutti_device_event **ret_event);
/* `tensor` with its dimensions in another order: dimension i is its order[i]. Pending, when the
 * tensor is or lies on the host; small ones are copied. */
tutti_status tutti__tensor_turned(tutti_tensor *tensor, const int *order, tutti_tensor **ret);

/* Where the elements of a contiguous tensor stand, with holder retained for the caller: elsewhere
 * as long as nobody asked for its data, else in its own buffer. */
tutti_standing tutti__tensor_standing(const tutti_tensor *tensor);
/* Whether nobody has asked for its data yet. */
static inline bool tutti__tensor_is_pending(const tutti_tensor *tensor)
{
    return atomic_load_explicit(&tensor->buffer->pending, memory_order_acquire) != NULL;
}

/* Moves what is pending into the buffer: zeros, and a line in the log, when the work that was to
 * give it failed. */
void tutti__buffer_resolve(tutti_buffer *buffer);
/* Forgets it, when the buffer goes. */
void tutti__buffer_forget(tutti_buffer *buffer);

#endif
