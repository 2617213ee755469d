/* tensor.h: data types, shapes, and tensors as strided views of reference-counted buffers. */
#ifndef TUTTI_TENSOR_H
#define TUTTI_TENSOR_H

#include "tutti/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every data type: name, number (a promise: it stands in files), text, bytes of one element. */
#define TUTTI_DTYPE_MAP(X)                                                                         \
    X(F32, 1, "f32", 4)                                                                            \
    X(F64, 2, "f64", 8)                                                                            \
    X(F16, 3, "f16", 2)                                                                            \
    X(BF16, 4, "bf16", 2)                                                                          \
    X(I8, 5, "i8", 1)                                                                              \
    X(U8, 6, "u8", 1)                                                                              \
    X(I32, 7, "i32", 4)                                                                            \
    X(I64, 8, "i64", 8)                                                                            \
    X(BOOL, 9, "bool", 1)                                                                          \
    X(STRING, 10, "string", 16)

typedef enum tutti_dtype {
    TUTTI_NO_DTYPE = 0,
#define TUTTI_DTYPE_ENUM(name, number, text, size) TUTTI_##name = (number),
    TUTTI_DTYPE_MAP(TUTTI_DTYPE_ENUM)
#undef TUTTI_DTYPE_ENUM
        TUTTI_DTYPE_END
} tutti_dtype;

/* "f32"; "?" for a number that is none. */
TUTTI_API const char *tutti_dtype_name(tutti_dtype dtype);
TUTTI_API size_t tutti_dtype_size(tutti_dtype dtype);   /* bytes of one element; 0 for none */
TUTTI_API bool tutti_dtype_is_float(tutti_dtype dtype); /* f32 f64 f16 bf16 */
TUTTI_API bool tutti_dtype_is_int(tutti_dtype dtype);   /* i8 u8 i32 i64 */
TUTTI_API tutti_status tutti_dtype_parse(const char *text, tutti_dtype *ret);

#define TUTTI_MAX_RANK 8
#define TUTTI_ANY (-1) /* a dimension that is not known yet */

/* What an edge of a graph carries. `handle`: the edge is a variable or queue of such elements. */
typedef struct tutti_type {
    tutti_dtype dtype;
    int32_t rank;
    int64_t dims[TUTTI_MAX_RANK];
    bool handle;
} tutti_type;

/* A rank outside [0, TUTTI_MAX_RANK] gives a type without dtype, which every shape rule refuses. */
TUTTI_API tutti_type tutti_type_make(tutti_dtype dtype, int rank, const int64_t *dims);
TUTTI_API bool tutti_type_is_static(const tutti_type *type); /* no TUTTI_ANY in it */
/* Number of elements, TUTTI_ANY when unknown, -2 when it overflows 64 bits. */
TUTTI_API int64_t tutti_type_count(const tutti_type *type);
TUTTI_API bool tutti_type_equal(const tutti_type *a, const tutti_type *b);
/* "f32[64,?,10]" into a buffer; returns the buffer. TUTTI_TYPE_TEXT bytes are always enough. */
#define TUTTI_TYPE_TEXT 192
TUTTI_API const char *tutti_type_text(const tutti_type *type, char ret_text[TUTTI_TYPE_TEXT]);

/* A string element: arbitrary bytes, owned by the tensor's buffer. */
typedef struct tutti_string {
    const char *data;
    int64_t size;
} tutti_string;

/* A tensor. Reference-counted; views share buffers. Threads may share a tensor; its contents are
 * the caller's to guard. */
typedef struct tutti_tensor tutti_tensor;

/* New zeroed, contiguous tensor in host memory, with one reference. Strings start empty. */
TUTTI_API tutti_status tutti_tensor_create(tutti_dtype dtype, int rank, const int64_t *dims,
                                           tutti_tensor **ret_tensor);
/* The same, filled from `data` (contiguous; tutti_string elements are copied deeply). */
TUTTI_API tutti_status tutti_tensor_from(tutti_dtype dtype, int rank, const int64_t *dims,
                                         const void *data, tutti_tensor **ret_tensor);
/* Borrows memory: `release(context)` is called with the last reference (may be NULL). After a
 * failure the memory is still the caller's: nothing is called. */
TUTTI_API tutti_status tutti_tensor_wrap(tutti_dtype dtype, int rank, const int64_t *dims,
                                         void *data, void (*release)(void *context), void *context,
                                         tutti_tensor **ret_tensor);
TUTTI_API tutti_tensor *tutti_tensor_retain(tutti_tensor *tensor);
TUTTI_API void tutti_tensor_release(tutti_tensor *tensor); /* NULL is fine */

/* What a tensor is; the pointers live as long as it. NULL reads as a tensor of nothing: rank 0. */
TUTTI_API tutti_dtype tutti_tensor_dtype(const tutti_tensor *tensor);
TUTTI_API int tutti_tensor_rank(const tutti_tensor *tensor);
TUTTI_API const int64_t *tutti_tensor_dims(const tutti_tensor *tensor);
TUTTI_API const int64_t *tutti_tensor_strides(const tutti_tensor *tensor); /* in elements */
TUTTI_API int64_t tutti_tensor_count(const tutti_tensor *tensor);
TUTTI_API void *tutti_tensor_data(const tutti_tensor *tensor); /* first element */
TUTTI_API bool tutti_tensor_is_contiguous(const tutti_tensor *tensor);
TUTTI_API const tutti_type *tutti_tensor_type(const tutti_tensor *tensor);

/* Views: no copy. Slice takes `size` elements along one axis: start, start + step, start + 2 step,
 * …; negative steps go backwards from start, a negative axis counts from the last. Broadcast gives
 * stride 0 to repeated axes. Reshape copies only when the strides do not allow a view. `dims` of
 * reshape may hold one TUTTI_ANY. */
TUTTI_API tutti_status tutti_tensor_slice(tutti_tensor *tensor, int axis, int64_t start,
                                          int64_t size, int64_t step, tutti_tensor **ret_view);
TUTTI_API tutti_status tutti_tensor_permute(tutti_tensor *tensor, const int *order,
                                            tutti_tensor **ret_view);
TUTTI_API tutti_status tutti_tensor_broadcast(tutti_tensor *tensor, int rank, const int64_t *dims,
                                              tutti_tensor **ret_view);
TUTTI_API tutti_status tutti_tensor_reshape(tutti_tensor *tensor, int rank, const int64_t *dims,
                                            tutti_tensor **ret_view);
/* Contiguous: the tensor itself (retained) when it already is, else a copy. */
TUTTI_API tutti_status tutti_tensor_contiguous(tutti_tensor *tensor, tutti_tensor **ret_tensor);
/* Element-wise conversion to another type; always a new tensor in host memory. To floats: round to
 * nearest even, once. Floats to integers: towards zero, out of range to the nearest, NaN to 0.
 * Integers to integers: modulo 2^bits. To bool: is it not zero. Strings only to strings. */
TUTTI_API tutti_status tutti_tensor_cast(tutti_tensor *tensor, tutti_dtype dtype,
                                         tutti_tensor **ret_tensor);
/* Copies values (shapes and types must agree; strides may differ; memory may overlap). Strings are
 * copied deeply. A destination that repeats elements (a broadcast view) is refused. */
TUTTI_API tutti_status tutti_tensor_copy(tutti_tensor *destination, tutti_tensor *source);

/* One element by flat row-major index, through any strides; conversions as in tutti_tensor_cast. An
 * index outside the tensor, and a number of a string tensor, reads as NaN, 0 or "" and sets
 * nothing. A string's bytes are valid until an element of any tensor over the same buffer is set.
 */
TUTTI_API double tutti_tensor_get(const tutti_tensor *tensor, int64_t index);
TUTTI_API int64_t tutti_tensor_get_int(const tutti_tensor *tensor, int64_t index);
TUTTI_API void tutti_tensor_set(tutti_tensor *tensor, int64_t index, double value);
TUTTI_API void tutti_tensor_set_int(tutti_tensor *tensor, int64_t index, int64_t value);
TUTTI_API tutti_string tutti_tensor_get_string(const tutti_tensor *tensor, int64_t index);
/* Replaces a string element; the bytes are copied. */
TUTTI_API tutti_status tutti_tensor_set_string(tutti_tensor *tensor, int64_t index,
                                               const char *data, int64_t size);

/* Same type, shape and bits (NaNs with equal bits are equal). */
TUTTI_API bool tutti_tensor_same(const tutti_tensor *a, const tutti_tensor *b);

/* A tensor as a kernel sees it. Strides are in elements; NULL means contiguous, row-major. */
typedef struct tutti_view {
    void *data;
    tutti_dtype dtype;
    int32_t rank;
    const int64_t *dims;
    const int64_t *strides;
} tutti_view;

/* Number of elements of a view. */
TUTTI_API int64_t tutti_view_count(const tutti_view *view);
/* Element by flat row-major index, with conversion; floats round to nearest even. The index is not
 * checked. */
TUTTI_API double tutti_view_get(const tutti_view *view, int64_t index);
TUTTI_API int64_t tutti_view_get_int(const tutti_view *view, int64_t index);
TUTTI_API void tutti_view_set(const tutti_view *view, int64_t index, double value);
TUTTI_API void tutti_view_set_int(const tutti_view *view, int64_t index, int64_t value);

/* Conversions of 16-bit floats, round to nearest even. */
TUTTI_API float tutti_f16_to_f32(uint16_t bits);
TUTTI_API uint16_t tutti_f32_to_f16(float value);
TUTTI_API float tutti_bf16_to_f32(uint16_t bits);
TUTTI_API uint16_t tutti_f32_to_bf16(float value);

/* The shape that two shapes broadcast to (NumPy's rule); unknown dimensions stay unknown unless the
 * other side decides them. Fails with both shapes in the message. */
TUTTI_API tutti_status tutti_broadcast_dims(int rank_a, const int64_t *a, int rank_b,
                                            const int64_t *b, int *ret_rank, int64_t *ret_dims);

#ifdef __cplusplus
}
#endif
#endif
