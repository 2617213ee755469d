/* ops_sparse.h: sparse tensors, and gradients that are rows. */
#ifndef TUTTI_OPS_SPARSE_H
#define TUTTI_OPS_SPARSE_H

#include "tutti/ops_state.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A sparse tensor of rank r with n values: value i stands at position indices[i]; elsewhere is 0.
 * Positions may come in any order; equal ones add up. */
typedef struct tutti_sparse_sym {
    tutti_sym indices;     /* i64[n, r] */
    tutti_sym values;      /* [n] */
    tutti_sym dense_shape; /* i64[r]; a constant (tutti_ints) lets shapes be known in advance */
} tutti_sparse_sym;

typedef struct tutti_sparse_matmul_options {
    size_t struct_size;
    bool transpose; /* of the sparse matrix */
} tutti_sparse_matmul_options;
/* A B for a sparse A [rows, k] and a dense B [k, m]; with .transpose A^T B for B [rows, m].
 * Gradients for A's values and for B. */
TUTTI_API tutti_sym tutti_sparse_matmul_with(tutti_sparse_sym a, tutti_sym b,
                                             const tutti_sparse_matmul_options *options);
#define tutti_sparse_matmul(a, b, ...)                                                             \
    TUTTI_AT(tutti_sparse_matmul_with((a), (b),                                                    \
                                      TUTTI_OPTIONS(tutti_sparse_matmul_options, __VA_ARGS__)))
/* y[i] = a[indices[i,0], :] . b[indices[i,1], :]: elements of A B^T at given positions.
 * `dense_shape` is [rows of a, rows of b]. */
TUTTI_API tutti_sym tutti_sampled_matmul(tutti_sym indices, tutti_sym dense_shape, tutti_sym a,
                                         tutti_sym b);
#define tutti_sampled_matmul(...) TUTTI_AT(tutti_sampled_matmul(__VA_ARGS__))

/* The dense form. */
TUTTI_API tutti_sym tutti_to_dense(tutti_sparse_sym x);
#define tutti_to_dense(...) TUTTI_AT(tutti_to_dense(__VA_ARGS__))
/* The elements that are not 0, in row-major order. How many there are depends on the data. */
TUTTI_API tutti_sparse_sym tutti_to_sparse(tutti_sym x);
#define tutti_to_sparse(...) TUTTI_AT(tutti_to_sparse(__VA_ARGS__))

/* A sparse tensor of any element type as strings: [indices, values, dense shape], each a serialised
 * tensor in TensorFlow's form (TensorProto with tensor_content), which its DeserializeSparse reads.
 * `rows`: one such line for each index along axis 0, string [rows, 3], how many depending on data.
 * Dense string tensors go through queues, batches and files as others do. */
TUTTI_API tutti_sym tutti_serialize_sparse(tutti_sparse_sym x);
#define tutti_serialize_sparse(...) TUTTI_AT(tutti_serialize_sparse(__VA_ARGS__))
TUTTI_API tutti_sym tutti_serialize_sparse_rows(tutti_sparse_sym x);
#define tutti_serialize_sparse_rows(...) TUTTI_AT(tutti_serialize_sparse_rows(__VA_ARGS__))
/* Back from string [3]; `rank` is that of each serialised tensor. Of string [rows, 3] one sparse
 * tensor with one more axis 0; its other dimensions are the largest of the rows'. Damaged strings
 * are an error when it runs. */
TUTTI_API tutti_sparse_sym tutti_deserialize_sparse(tutti_sym x, tutti_dtype dtype, int rank);
#define tutti_deserialize_sparse(...) TUTTI_AT(tutti_deserialize_sparse(__VA_ARGS__))

/* Zeros of like's shape with rows[i] added at indices[i] of axis 0: the dense form of a gradient
 * that is rows. */
TUTTI_API tutti_sym tutti_rows_to_dense(tutti_sym rows, tutti_sym indices, tutti_sym like);
#define tutti_rows_to_dense(...) TUTTI_AT(tutti_rows_to_dense(__VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
