/* type.h: types and shapes from inside: checked construction and text for messages. */
#ifndef TUTTI_TENSOR_TYPE_H
#define TUTTI_TENSOR_TYPE_H

#include "tutti/tensor.h"

/* A type for memory: known dtype, rank in [0, TUTTI_MAX_RANK], no negative and no unknown
 * dimension, bytes that fit 63 bits. TUTTI_INVALID, or TUTTI_TOO_LARGE with the shape in the
 * message. */
tutti_status tutti__type_check(tutti_dtype dtype, int rank, const int64_t *dims,
                               tutti_type *ret_type);

/* Bytes of a static type's contiguous elements; TUTTI_TOO_LARGE when they do not fit 63 bits. */
tutti_status tutti__type_bytes(const tutti_type *type, int64_t *ret_bytes);

/* "[64,?,10]"; TUTTI_TYPE_TEXT bytes are enough. Returns the buffer. */
const char *tutti__dims_text(int rank, const int64_t *dims, char ret_text[TUTTI_TYPE_TEXT]);

/* Whether a value of type `actual` may stand where `expected` is asked for (TUTTI_ANY fits all). */
bool tutti__type_fits(const tutti_type *actual, const tutti_type *expected);

/* Row-major strides in elements; all 0 when there are no elements. */
void tutti__row_major(int rank, const int64_t *dims, int64_t ret_strides[TUTTI_MAX_RANK]);

#endif
