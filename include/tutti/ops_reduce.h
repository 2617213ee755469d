/* ops_reduce.h: operators that make one number of many. A function never fails by itself: a mistake
 * is recorded in the graph and the result is poison (see graph.h). */
#ifndef TUTTI_OPS_REDUCE_H
#define TUTTI_OPS_REDUCE_H

#include "tutti/ops_shape.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Over which axes: all when none is named. keepdims leaves them in the result with size 1.
 *     tutti_mean(x)    tutti_sum(x, .axes = TUTTI_AXES(0, 2), .keepdims = true) */
typedef struct tutti_reduce_options {
    size_t struct_size;
    tutti_axes axes;
    bool keepdims;
} tutti_reduce_options;

/* Floats and integers (which wrap round). Over no elements: 0. */
TUTTI_API tutti_sym tutti_sum_with(tutti_sym x, const tutti_reduce_options *options);
#define tutti_sum(x, ...)                                                                          \
    TUTTI_AT(tutti_sum_with((x), TUTTI_OPTIONS(tutti_reduce_options, __VA_ARGS__)))
/* Floats. Over no elements: NaN. */
TUTTI_API tutti_sym tutti_mean_with(tutti_sym x, const tutti_reduce_options *options);
#define tutti_mean(x, ...)                                                                         \
    TUTTI_AT(tutti_mean_with((x), TUTTI_OPTIONS(tutti_reduce_options, __VA_ARGS__)))
/* Floats and integers; a NaN wins, 0 is larger than -0. Over no elements: the lowest value (minus
 * infinity), the highest for min. Equal extremes share the gradient. */
TUTTI_API tutti_sym tutti_max_with(tutti_sym x, const tutti_reduce_options *options);
#define tutti_max(x, ...)                                                                          \
    TUTTI_AT(tutti_max_with((x), TUTTI_OPTIONS(tutti_reduce_options, __VA_ARGS__)))
TUTTI_API tutti_sym tutti_min_with(tutti_sym x, const tutti_reduce_options *options);
#define tutti_min(x, ...)                                                                          \
    TUTTI_AT(tutti_min_with((x), TUTTI_OPTIONS(tutti_reduce_options, __VA_ARGS__)))
/* Floats and integers (which wrap round). Over no elements: 1. Its gradient is right at zeros too.
 */
TUTTI_API tutti_sym tutti_prod_with(tutti_sym x, const tutti_reduce_options *options);
#define tutti_prod(x, ...)                                                                         \
    TUTTI_AT(tutti_prod_with((x), TUTTI_OPTIONS(tutti_reduce_options, __VA_ARGS__)))
/* y[i] = product of all x[j] along the axis with j != i. Floats. */
TUTTI_API tutti_sym tutti_prod_except(tutti_sym x, int axis);
#define tutti_prod_except(...) TUTTI_AT(tutti_prod_except(__VA_ARGS__))
/* Bools. Over no elements: false, and true for all. */
TUTTI_API tutti_sym tutti_any_with(tutti_sym x, const tutti_reduce_options *options);
#define tutti_any(x, ...)                                                                          \
    TUTTI_AT(tutti_any_with((x), TUTTI_OPTIONS(tutti_reduce_options, __VA_ARGS__)))
TUTTI_API tutti_sym tutti_all_with(tutti_sym x, const tutti_reduce_options *options);
#define tutti_all(x, ...)                                                                          \
    TUTTI_AT(tutti_all_with((x), TUTTI_OPTIONS(tutti_reduce_options, __VA_ARGS__)))
/* log of the sum of exponentials, without overflow. Floats. Over no elements: minus infinity. */
TUTTI_API tutti_sym tutti_logsumexp_with(tutti_sym x, const tutti_reduce_options *options);
#define tutti_logsumexp(x, ...)                                                                    \
    TUTTI_AT(tutti_logsumexp_with((x), TUTTI_OPTIONS(tutti_reduce_options, __VA_ARGS__)))
/* Mean of (x - mean)^2: the population's variance. Floats. Over no elements: NaN. */
TUTTI_API tutti_sym tutti_variance_with(tutti_sym x, const tutti_reduce_options *options);
#define tutti_variance(x, ...)                                                                     \
    TUTTI_AT(tutti_variance_with((x), TUTTI_OPTIONS(tutti_reduce_options, __VA_ARGS__)))

/* ord 2 (default): square root of the sum of squares; ord 1: sum of magnitudes. Floats. The
 * gradient at 0 is 0. */
typedef struct tutti_norm_options {
    size_t struct_size;
    tutti_axes axes;
    bool keepdims;
    int ord;
} tutti_norm_options;
TUTTI_API tutti_sym tutti_norm_with(tutti_sym x, const tutti_norm_options *options);
#define tutti_norm(x, ...)                                                                         \
    TUTTI_AT(tutti_norm_with((x), TUTTI_OPTIONS(tutti_norm_options, __VA_ARGS__)))

/* Position (i64) of the first largest or smallest element along an axis, which is dropped and must
 * not be empty. A NaN wins. */
TUTTI_API tutti_sym tutti_argmax(tutti_sym x, int axis);
#define tutti_argmax(...) TUTTI_AT(tutti_argmax(__VA_ARGS__))
TUTTI_API tutti_sym tutti_argmin(tutti_sym x, int axis);
#define tutti_argmin(...) TUTTI_AT(tutti_argmin(__VA_ARGS__))

/* Running sum along an axis; exclusive leaves the element itself out; reverse runs from the end. */
typedef struct tutti_cumsum_options {
    size_t struct_size;
    bool exclusive, reverse;
} tutti_cumsum_options;
TUTTI_API tutti_sym tutti_cumsum_with(tutti_sym x, int axis, const tutti_cumsum_options *options);
#define tutti_cumsum(x, axis, ...)                                                                 \
    TUTTI_AT(tutti_cumsum_with((x), (axis), TUTTI_OPTIONS(tutti_cumsum_options, __VA_ARGS__)))

/* Running product along an axis, with the same options. Floats and integers (which wrap round). Its
 * gradient is right at zeros too, and takes memory for the square of the axis, and a dimension more
 * than x has (the second gradient two more): x of at most 7 (6) dimensions. */
TUTTI_API tutti_sym tutti_cumprod_with(tutti_sym x, int axis, const tutti_cumsum_options *options);
#define tutti_cumprod(x, axis, ...)                                                                \
    TUTTI_AT(tutti_cumprod_with((x), (axis), TUTTI_OPTIONS(tutti_cumsum_options, __VA_ARGS__)))

/* The k largest along the last axis, largest first, of equal ones the first; output 1 (by
 * tutti_sym_output) holds their positions as i32. */
TUTTI_API tutti_sym tutti_top_k(tutti_sym x, int64_t k);
#define tutti_top_k(...) TUTTI_AT(tutti_top_k(__VA_ARGS__))

/* Sum over the axes along which broadcasting like's shape to x's repeats: the result has like's
 * shape. The adjoint of tutti_broadcast_like. */
TUTTI_API tutti_sym tutti_sum_like(tutti_sym x, tutti_sym like);
#define tutti_sum_like(...) TUTTI_AT(tutti_sum_like(__VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
