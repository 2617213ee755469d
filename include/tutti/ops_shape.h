/* ops_shape.h: operators that move, repeat, pick or make elements without computing on them.
 *
 * All of them take every element type, strings too, unless it says otherwise. Axes may be negative:
 * -1 is the last. Dimensions of 0 are legal. A function never fails by itself: a mistake is
 * recorded in the graph and the result is poison (see graph.h). */
#ifndef TUTTI_OPS_SHAPE_H
#define TUTTI_OPS_SHAPE_H

#include "tutti/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A short list of integers in an options struct: axes, or one index for each axis. */
typedef struct tutti_axes {
    int count;
    int64_t values[TUTTI_MAX_RANK];
} tutti_axes;
#define TUTTI_AXES(...)                                                                            \
    ((tutti_axes){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})
#define TUTTI_INDEX(...) TUTTI_AXES(__VA_ARGS__)

/* Other shapes for the same elements: no copy. One dimension may be -1: it follows from the others.
 *     tutti_reshape(x, -1, 28, 28)    tutti_reshape(x) makes a scalar of one element */
TUTTI_API tutti_sym tutti_reshape(tutti_sym x, int rank, const int64_t *dims);
#define tutti_reshape(x, ...) TUTTI_AT(tutti_reshape((x), TUTTI_DIMS(__VA_ARGS__)))
/* Of `like` only the shape counts, here and in all …_like operators. */
TUTTI_API tutti_sym tutti_reshape_like(tutti_sym x, tutti_sym like);
#define tutti_reshape_like(...) TUTTI_AT(tutti_reshape_like(__VA_ARGS__))
/* [d0, d1, d2, …] to [d0, d1 d2 …]. */
TUTTI_API tutti_sym tutti_nn_flatten(tutti_sym x);
#define tutti_nn_flatten(...) TUTTI_AT(tutti_nn_flatten(__VA_ARGS__))
/* Drops the named axes, which have size 1; without axes, all of size 1. */
TUTTI_API tutti_sym tutti_squeeze(tutti_sym x, int count, const int64_t *axes);
#define tutti_squeeze(x, ...) TUTTI_AT(tutti_squeeze((x), TUTTI_DIMS(__VA_ARGS__)))
/* A new axis of size 1 that becomes axis `axis` of the result. */
TUTTI_API tutti_sym tutti_expand_dims(tutti_sym x, int axis);
#define tutti_expand_dims(...) TUTTI_AT(tutti_expand_dims(__VA_ARGS__))

/* Repeats along axes of size 1 and new leading axes. -1 keeps x's dimension. */
TUTTI_API tutti_sym tutti_broadcast_to(tutti_sym x, int rank, const int64_t *dims);
#define tutti_broadcast_to(x, ...) TUTTI_AT(tutti_broadcast_to((x), TUTTI_DIMS(__VA_ARGS__)))
TUTTI_API tutti_sym tutti_broadcast_like(tutti_sym x, tutti_sym like);
#define tutti_broadcast_like(...) TUTTI_AT(tutti_broadcast_like(__VA_ARGS__))
/* The whole of x repeated, multiples[i] times along axis i: tutti_tile(x, 2, 1). */
TUTTI_API tutti_sym tutti_tile(tutti_sym x, int count, const int64_t *multiples);
#define tutti_tile(x, ...) TUTTI_AT(tutti_tile((x), TUTTI_DIMS(__VA_ARGS__)))

/* A list of symbols joined along `axis`, by default 0: tutti_concatenate(TUTTI_SYMS(a, b), .axis =
 * 1), tutti_concatenate(count, list). */
typedef struct tutti_concatenate_options {
    size_t struct_size;
    int axis;
} tutti_concatenate_options;
TUTTI_API tutti_sym tutti_concatenate_with(int count, const tutti_sym *inputs,
                                           const tutti_concatenate_options *options);
#define tutti_concatenate(...)                                                                     \
    TUTTI_AT(tutti_concatenate_with(TUTTI_TWO_(tutti_concatenate_options, __VA_ARGS__, )))
/* The same along a new axis: tutti_stack(TUTTI_SYMS(a, b)). */
typedef struct tutti_stack_options {
    size_t struct_size;
    int axis;
} tutti_stack_options;
TUTTI_API tutti_sym tutti_stack_with(int count, const tutti_sym *inputs,
                                     const tutti_stack_options *options);
#define tutti_stack(...) TUTTI_AT(tutti_stack_with(TUTTI_TWO_(tutti_stack_options, __VA_ARGS__, )))
/* One output for each of the `count` positions along an axis, which is dropped; count 0: as many as
 * the axis has, which must then be known. Outputs by tutti_sym_output. */
TUTTI_API tutti_sym tutti_unstack(tutti_sym x, int axis, int count);
#define tutti_unstack(...) TUTTI_AT(tutti_unstack(__VA_ARGS__))
/* Pieces along an axis: `count` equal ones; or of given sizes, tutti_split_sizes(x, 1, 3, 4, 3); or
 * as large as others: tutti_split_like(x, 1, a, b). Outputs by tutti_sym_output. */
TUTTI_API tutti_sym tutti_split_into(tutti_sym x, int axis, int count);
#define tutti_split_into(...) TUTTI_AT(tutti_split_into(__VA_ARGS__))
TUTTI_API tutti_sym tutti_split_sizes(tutti_sym x, int axis, int count, const int64_t *sizes);
#define tutti_split_sizes(x, axis, ...)                                                            \
    TUTTI_AT(tutti_split_sizes((x), (axis), TUTTI_DIMS(__VA_ARGS__)))
TUTTI_API tutti_sym tutti_split_like(tutti_sym x, int axis, int count, const tutti_sym *likes);
#define tutti_split_like(x, axis, ...)                                                             \
    TUTTI_AT(tutti_split_like((x), (axis), TUTTI_SYMS(__VA_ARGS__)))

/* x[begin:end:step] along each axis, as in NumPy: negative indices count from the end, indices
 * beyond an end stop there, a negative step runs backwards. TUTTI_FIRST and TUTTI_LAST stand for
 * "from or to the very end" on either side. Axes after the last that is given are taken whole.
 *     tutti_slice(x, .begin = TUTTI_INDEX(0, 1), .end = TUTTI_INDEX(TUTTI_LAST, -1))    x[0:, 1:-1]
 *     tutti_slice(x, .step = TUTTI_INDEX(-1))                                           x[::-1] */
#define TUTTI_FIRST INT64_MIN
#define TUTTI_LAST INT64_MAX
typedef struct tutti_slice_options {
    size_t struct_size;
    tutti_axes begin, end, step;
} tutti_slice_options;
TUTTI_API tutti_sym tutti_slice_with(tutti_sym x, const tutti_slice_options *options);
#define tutti_slice(x, ...)                                                                        \
    TUTTI_AT(tutti_slice_with((x), TUTTI_OPTIONS(tutti_slice_options, __VA_ARGS__)))
/* x[…, begin:end, …] along one axis. */
TUTTI_API tutti_sym tutti_slice_axis(tutti_sym x, int axis, int64_t begin, int64_t end);
#define tutti_slice_axis(...) TUTTI_AT(tutti_slice_axis(__VA_ARGS__))
/* Zeros of like's shape, with x where the slice took from. */
TUTTI_API tutti_sym tutti_slice_grad_with(tutti_sym x, tutti_sym like,
                                          const tutti_slice_options *options);
#define tutti_slice_grad(x, like, ...)                                                             \
    TUTTI_AT(tutti_slice_grad_with((x), (like), TUTTI_OPTIONS(tutti_slice_options, __VA_ARGS__)))

/* Adds elements before and after along each axis: `value`, or with mode "reflect" the neighbours
 * mirrored at the edge element (which is not repeated), or with "edge" the edge element.
 *     tutti_pad(x, .before = TUTTI_INDEX(0, 1), .after = TUTTI_INDEX(0, 2)) */
typedef struct tutti_pad_options {
    size_t struct_size;
    tutti_axes before, after; /* axes that are left out get none */
    double value;             /* for "constant", a number that x's type has; strings are padded with
                               * empty ones */
    const char *mode;         /* "constant" (default), "reflect", "edge" */
} tutti_pad_options;
TUTTI_API tutti_sym tutti_pad_with(tutti_sym x, const tutti_pad_options *options);
#define tutti_pad(x, ...)                                                                          \
    TUTTI_AT(tutti_pad_with((x), TUTTI_OPTIONS(tutti_pad_options, __VA_ARGS__)))

/* Rows of x along an axis: y[…, j, …] = x[…, indices[j], …]; the axis is replaced by the axes of
 * `indices` (i32 or i64). An index out of range is an error when it runs. */
TUTTI_API tutti_sym tutti_gather(tutti_sym x, tutti_sym indices, int axis);
#define tutti_gather(...) TUTTI_AT(tutti_gather(__VA_ARGS__))
/* Its adjoint: zeros of like's shape, rows added at the indices. Numbers only. */
TUTTI_API tutti_sym tutti_gather_grad(tutti_sym rows, tutti_sym indices, tutti_sym like, int axis);
#define tutti_gather_grad(...) TUTTI_AT(tutti_gather_grad(__VA_ARGS__))
/* indices [.., k] name positions along the first k axes: y[.., :] = x[indices[.., 0], …, :]. */
TUTTI_API tutti_sym tutti_gather_nd(tutti_sym x, tutti_sym indices);
#define tutti_gather_nd(...) TUTTI_AT(tutti_gather_nd(__VA_ARGS__))
/* Zeros of the given shape, updates added at the indices; duplicates add up. Numbers only. */
TUTTI_API tutti_sym tutti_scatter_nd(tutti_sym indices, tutti_sym updates, int rank,
                                     const int64_t *dims);
#define tutti_scatter_nd(indices, updates, ...)                                                    \
    TUTTI_AT(tutti_scatter_nd((indices), (updates), TUTTI_DIMS(__VA_ARGS__)))
TUTTI_API tutti_sym tutti_scatter_nd_like(tutti_sym indices, tutti_sym updates, tutti_sym like);
#define tutti_scatter_nd_like(...) TUTTI_AT(tutti_scatter_nd_like(__VA_ARGS__))
/* One element for each index, all axes but one in step: y[i, j] = x[i, indices[i, j]] for axis 1.
 */
TUTTI_API tutti_sym tutti_take_along(tutti_sym x, tutti_sym indices, int axis);
#define tutti_take_along(...) TUTTI_AT(tutti_take_along(__VA_ARGS__))
/* Its adjoint: zeros of like's shape, y[i, indices[i, j]] += updates[i, j]. Numbers only. */
TUTTI_API tutti_sym tutti_put_along(tutti_sym indices, tutti_sym updates, tutti_sym like, int axis);
#define tutti_put_along(...) TUTTI_AT(tutti_put_along(__VA_ARGS__))

/* take_along, but an index may be negative and then counts from the end, and the indices may be
 * fewer than x's elements along the other axes (ONNX GatherElements, PyTorch's gather), also where
 * how many of them there are is known only when it runs. */
TUTTI_API tutti_sym tutti_gather_elements(tutti_sym x, tutti_sym indices, int axis);
#define tutti_gather_elements(...) TUTTI_AT(tutti_gather_elements(__VA_ARGS__))
/* x with elements replaced: y[i, indices[i, j]] = updates[i, j] for axis 1. `reduction` "add",
 * "mul", "max", "min" combines them with what is there instead; NULL or "none" replaces, and of
 * equal indices the last stays. Only replacing is for strings and bools too. Indices may be
 * negative, and fewer than x's elements along the other axes. Gradients for x and updates, the
 * latter through tutti_gather_elements, 0 for those that were replaced in turn; that of "mul" needs
 * updates that are not 0. */
TUTTI_API tutti_sym tutti_scatter_elements(tutti_sym x, tutti_sym indices, tutti_sym updates,
                                           int axis, const char *reduction);
#define tutti_scatter_elements(...) TUTTI_AT(tutti_scatter_elements(__VA_ARGS__))

/* The upper triangle of matrices [.., rows, columns], 0 elsewhere: elements with column >= row +
 * offset; the lower one: column <= row + offset. Numbers and bools. */
TUTTI_API tutti_sym tutti_triu(tutti_sym x, int64_t offset);
#define tutti_triu(...) TUTTI_AT(tutti_triu(__VA_ARGS__))
TUTTI_API tutti_sym tutti_tril(tutti_sym x, int64_t offset);
#define tutti_tril(...) TUTTI_AT(tutti_tril(__VA_ARGS__))

/* y[…, j] = on where j = indices[…], off elsewhere; an index outside [0, depth) gives a row of off.
 *     tutti_one_hot(labels, 10) */
typedef struct tutti_one_hot_options {
    size_t struct_size;
    double on, off;    /* 1 and 0 when both are left out; numbers that dtype has */
    tutti_dtype dtype; /* f32 when left out */
} tutti_one_hot_options;
TUTTI_API tutti_sym tutti_one_hot_with(tutti_sym indices, int64_t depth,
                                       const tutti_one_hot_options *options);
#define tutti_one_hot(indices, depth, ...)                                                         \
    TUTTI_AT(                                                                                      \
        tutti_one_hot_with((indices), (depth), TUTTI_OPTIONS(tutti_one_hot_options, __VA_ARGS__)))

/* Where x is not 0: i64 [rank, n], column by column in row-major order. n depends on data; of a
 * scalar the result is [0, 1] or [0, 0]. Numbers and bools. */
TUTTI_API tutti_sym tutti_nonzero(tutti_sym x);
#define tutti_nonzero(...) TUTTI_AT(tutti_nonzero(__VA_ARGS__))
/* The elements of x without repetitions, in rising order or in the order of x; or, .along_axis, the
 * slices along .axis. Outputs 1 to 3 (by tutti_sym_output), i64: where each stands first in x, the
 * place of each of x's in the result, and how often each is there. Sizes depend on data. NaNs count
 * as one value, the last in rising order; so do 0 and -0, of which the first in x stands for both.
 * Numbers and bools. */
typedef struct tutti_unique_options {
    size_t struct_size;
    bool along_axis, unsorted;
    int axis;
} tutti_unique_options;
TUTTI_API tutti_sym tutti_unique_with(tutti_sym x, const tutti_unique_options *options);
#define tutti_unique(x, ...)                                                                       \
    TUTTI_AT(tutti_unique_with((x), TUTTI_OPTIONS(tutti_unique_options, __VA_ARGS__)))
/* start, start + delta, … up to but not including limit; delta may be negative. */
TUTTI_API tutti_sym tutti_range(tutti_graph *graph, double start, double limit, double delta,
                                tutti_dtype dtype);
#define tutti_range(...) TUTTI_AT(tutti_range(__VA_ARGS__))
/* The same from scalars that are known only when it runs; its length then depends on data. */
TUTTI_API tutti_sym tutti_range_dynamic(tutti_sym start, tutti_sym limit, tutti_sym delta);
#define tutti_range_dynamic(...) TUTTI_AT(tutti_range_dynamic(__VA_ARGS__))

/* Backwards along the named axes; without axes, along all. */
TUTTI_API tutti_sym tutti_reverse(tutti_sym x, int count, const int64_t *axes);
#define tutti_reverse(x, ...) TUTTI_AT(tutti_reverse((x), TUTTI_DIMS(__VA_ARGS__)))
/* y[(i + shift) mod n] = x[i] along an axis. */
TUTTI_API tutti_sym tutti_roll(tutti_sym x, int64_t shift, int axis);
#define tutti_roll(...) TUTTI_AT(tutti_roll(__VA_ARGS__))

/* Dimensions as i64[rank]; number of elements as i64 (of some axes only, when axes are named). */
TUTTI_API tutti_sym tutti_shape(tutti_sym x);
#define tutti_shape(...) TUTTI_AT(tutti_shape(__VA_ARGS__))
TUTTI_API tutti_sym tutti_size(tutti_sym x, int count, const int64_t *axes);
#define tutti_size(x, ...) TUTTI_AT(tutti_size((x), TUTTI_DIMS(__VA_ARGS__)))

/* Zeros (of strings: empty ones), ones in the shape and dtype of x. There are no ones of strings.
 */
TUTTI_API tutti_sym tutti_zeros_like(tutti_sym x);
#define tutti_zeros_like(...) TUTTI_AT(tutti_zeros_like(__VA_ARGS__))
TUTTI_API tutti_sym tutti_ones_like(tutti_sym x);
#define tutti_ones_like(...) TUTTI_AT(tutti_ones_like(__VA_ARGS__))
/* A constant of one value: tutti_fill(g, TUTTI_F32, 0.5, 3, 4); no dimensions make a scalar. An
 * integer type must have the number. */
TUTTI_API tutti_sym tutti_fill(tutti_graph *graph, tutti_dtype dtype, double value, int rank,
                               const int64_t *dims);
#define tutti_fill(graph, dtype, value, ...)                                                       \
    TUTTI_AT(tutti_fill((graph), (dtype), (value), TUTTI_DIMS(__VA_ARGS__)))

/* The same in a shape that is known only when it runs: i64[rank]. `dims` (or rank 0) says what is
 * known of it, -1 where nothing is. tutti_reshape_like and tutti_broadcast_like to it are reshaping
 * and repeating to a shape that was computed. */
TUTTI_API tutti_sym tutti_fill_dynamic(tutti_sym shape, tutti_dtype dtype, double value, int rank,
                                       const int64_t *dims);
#define tutti_fill_dynamic(shape, dtype, value, ...)                                               \
    TUTTI_AT(tutti_fill_dynamic((shape), (dtype), (value), TUTTI_DIMS(__VA_ARGS__)))

#ifdef __cplusplus
}
#endif
#endif
