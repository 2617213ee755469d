/* sparse.h: sparse tensors as (indices, values, dense shape).
 *
 * Entry i says that element indices[i, :] of a dense tensor is values[i]; elements that no entry
 * names are 0 (false, ""). Entries may come in any order; entries with equal indices add up (of
 * bools one true is enough, of strings the last stays). */
#ifndef TUTTI_SPARSE_H
#define TUTTI_SPARSE_H

#include "tutti/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Holds one reference of each tensor. A zeroed struct is none. */
typedef struct tutti_sparse {
    tutti_tensor *indices;     /* i64[n, rank] */
    tutti_tensor *values;      /* any[n] */
    tutti_tensor *dense_shape; /* i64[rank] */
} tutti_sparse;

/* Whether the three fit each other: types, ranks, a dense shape that fits 63 bits, every index
 * inside it (TUTTI_OUT_OF_RANGE names the entry). *ret_canonical (optional): the entries stand in
 * row-major order and no two have equal indices. */
TUTTI_API tutti_status tutti_sparse_check(const tutti_sparse *sparse, bool *ret_canonical);

/* A new dense host tensor. Checks first. */
TUTTI_API tutti_status tutti_sparse_to_dense(const tutti_sparse *sparse, tutti_tensor **ret_dense);

/* The entries that are not zero, in row-major order; NaN is not zero, -0 is. The caller releases.
 */
TUTTI_API tutti_status tutti_sparse_from_dense(tutti_tensor *dense, tutti_sparse *ret_sparse);

/* Releases the three tensors and zeroes the struct. NULL and a zeroed struct are fine. */
TUTTI_API void tutti_sparse_release(tutti_sparse *sparse);

#ifdef __cplusplus
}
#endif
#endif
