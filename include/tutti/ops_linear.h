/* ops_linear.h: products of matrices and tensors. A function never fails by itself: a mistake is
 * recorded in the graph and the result is poison (see graph.h). */
#ifndef TUTTI_OPS_LINEAR_H
#define TUTTI_OPS_LINEAR_H

#include "tutti/ops_shape.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y = a b: a [.., m, k], b [.., k, n], y [.., m, n]; leading dimensions broadcast. Transposing
 * takes a as [.., k, m], b as [.., n, k]. Floats and integers (which wrap round). tutti_matmul(a,
 * b, .transpose_b = true) */
typedef struct tutti_matmul_options {
    size_t struct_size;
    bool transpose_a, transpose_b;
} tutti_matmul_options;
TUTTI_API tutti_sym tutti_matmul_with(tutti_sym a, tutti_sym b,
                                      const tutti_matmul_options *options);
#define tutti_matmul(a, b, ...)                                                                    \
    TUTTI_AT(tutti_matmul_with((a), (b), TUTTI_OPTIONS(tutti_matmul_options, __VA_ARGS__)))

/* Einstein's sum: multiplies the operands element by element where labels agree, and sums over the
 * labels that the result lacks: tutti_einsum("bij,bjk->bik", a, b). Without "->" the result has the
 * labels that occur once, in alphabetical order. A label twice in one operand takes the diagonal;
 * twice in the result, it fills the diagonal and leaves the rest zero. "..." stands for axes that
 * broadcast; when the result does not name it, they are summed. At most 15 operands. */
TUTTI_API tutti_sym tutti_einsum(const char *equation, int count, const tutti_sym *operands);
#define tutti_einsum(equation, ...) TUTTI_AT(tutti_einsum((equation), TUTTI_SYMS(__VA_ARGS__)))

/* Axis i of the result is axis order[i] of x: tutti_transpose(x, 0, 2, 1). Without an order the
 * axes are reversed. */
TUTTI_API tutti_sym tutti_transpose(tutti_sym x, int count, const int64_t *order);
#define tutti_transpose(x, ...) TUTTI_AT(tutti_transpose((x), TUTTI_DIMS(__VA_ARGS__)))

/* y[i, j] = a[i] b[j] of two vectors. */
TUTTI_API tutti_sym tutti_outer(tutti_sym a, tutti_sym b);
#define tutti_outer(...) TUTTI_AT(tutti_outer(__VA_ARGS__))

/* The determinant of each matrix x [.., n, n]. Floats; it has no gradient. */
TUTTI_API tutti_sym tutti_det(tutti_sym x);
#define tutti_det(...) TUTTI_AT(tutti_det(__VA_ARGS__))

/* Probabilities [rows, classes] from those of the first of each pair of classes, x [rows, pairs],
 * pairs in the order 0-1, 0-2, …, 1-2, …: as several support vector machines give them. */
TUTTI_API tutti_sym tutti_pairwise_coupling(tutti_sym x, int64_t classes);
#define tutti_pairwise_coupling(...) TUTTI_AT(tutti_pairwise_coupling(__VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
