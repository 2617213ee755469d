/* tensor.h: the tensor from inside. Devices and the runner make tensors over their own memory
 * through this header. */
#ifndef TUTTI_TENSOR_TENSOR_H
#define TUTTI_TENSOR_TENSOR_H

#include "tensor/buffer.h"
#include "tutti/tensor.h"

/* Element (i0, i1, …) lies at buffer->data + offset + (i0 strides[0] + i1 strides[1] + …) * size.
 * Strides may be 0 or negative; every element lies inside the buffer. Nothing but the reference
 * count changes after construction. */
struct tutti_tensor {
    atomic_int references;
    bool contiguous; /* row-major without gaps; strides of axes of size 1 do not matter */
    tutti_type type;
    int64_t count;
    int64_t strides[TUTTI_MAX_RANK]; /* in elements */
    size_t offset;                   /* of the first element, in bytes */
    tutti_buffer *buffer;
};

/* New contiguous tensor in any memory. Contents are undefined, but strings start empty; strings
 * live in host-visible memory only. */
tutti_status tutti__tensor_in(const tutti_memory *memory, const tutti_type *type,
                              tutti_tensor **ret);
/* Contiguous tensor over a piece of a buffer, which it retains. */
tutti_status tutti__tensor_over(tutti_buffer *buffer, const tutti_type *type, size_t byte_offset,
                                tutti_tensor **ret);
/* View of the same buffer with given strides; the caller vouches that it stays inside. */
tutti_status tutti__tensor_strided(const tutti_tensor *tensor, const tutti_type *type,
                                   const int64_t *strides, size_t byte_offset, tutti_tensor **ret);

/* A new contiguous host tensor with the values of a view in host memory; strings are copied deeply.
 */
tutti_status tutti__tensor_from_view(const tutti_view *view, tutti_tensor **ret);

/* What a kernel sees; valid while the tensor lives. Strides are NULL when it is contiguous. */
tutti_view tutti__tensor_view_of(const tutti_tensor *tensor);

/* True when tensor and buffer have exactly one reference: its memory may be written over. */
bool tutti__tensor_unique(const tutti_tensor *tensor);
/* Whether there are so many references to the tensor, and no other tensor of its memory. */
bool tutti__tensor_held(const tutti_tensor *tensor, int references);

static inline bool tutti__tensor_on_host(const tutti_tensor *tensor)
{
    return tensor->buffer->memory->host_visible;
}
/* The tensor itself (retained) when host code can read it, else a contiguous copy on the host. */
tutti_status tutti__tensor_to_host(tutti_tensor *tensor, tutti_tensor **ret);

/* Copies the bytes of all elements into the tensor's own buffer. To be called after a kernel moved
 * elements of other string tensors into it, while those still live. Nothing for other types. */
tutti_status tutti__tensor_own_strings(tutti_tensor *tensor);
/* Strings as numbers, for files: the bytes of all elements one after the other, u8[n], and the
 * elements' lengths, i64 of their shape. */
tutti_status tutti__tensor_pack_strings(const tutti_tensor *strings, tutti_tensor **ret_bytes,
                                        tutti_tensor **ret_lengths);
/* And back, from tensors of any kind: CORRUPT where they are not such a pair. */
tutti_status tutti__tensor_unpack_strings(const tutti_tensor *bytes, const tutti_tensor *lengths,
                                          tutti_tensor **ret_strings);

/* Moves elements of `size` bytes (1, 2, 4, 8 or 16) between strided arrays that do not overlap, in
 * row-major order. Strides are in elements. Strings are moved, not copied. */
void tutti__copy_strided(int rank, const int64_t *dims, size_t size, void *to,
                         const int64_t *to_strides, const void *from, const int64_t *from_strides);

#endif
