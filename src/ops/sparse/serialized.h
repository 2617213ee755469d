/* serialized.h: tensors as strings, in the form of TensorFlow's TensorProto: dtype (field 1), shape
 * (2) and the elements' bytes (4), little-endian; strings as their sizes, then their bytes. */
#ifndef TUTTI_OPS_SPARSE_SERIALIZED_H
#define TUTTI_OPS_SPARSE_SERIALIZED_H

#include "base/container.h"
#include "ops/shape/rule.h"
#include "ops/sparse/sparse.h"
#include "tutti/sparse.h"

/* Appends `count` elements of shape [dims…]. */
void tutti__serialize(tutti_text *text, tutti_dtype dtype, int rank, const int64_t *dims,
                      const void *elements, int64_t count);
/* Reads one of this type and rank, which must be sound; the caller releases it. */
tutti_status tutti__deserialize(const tutti_kernel_call *call, tutti_string bytes,
                                tutti_dtype dtype, int rank, tutti_tensor **ret);

/* A sparse tensor of `rank` at three strings in a row: its indices, values and shape, which fit
 * each other. The caller releases them, with tutti_sparse_release. */
tutti_status tutti__deserialize_sparse(const tutti_kernel_call *call, const tutti_string *row,
                                       tutti_dtype dtype, int rank, tutti_sparse *ret);

#endif
