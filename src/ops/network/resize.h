/* resize.h: images made larger or smaller by interpolation, axis by axis.
 *
 * Along an axis of `in` elements output o stands at coordinate c(o) of the input and is a weighted
 * sum of inputs near it. With s = scale, which is out / in where sizes are given:
 *   half_pixel            c = (o + 1/2) / s - 1/2
 *   pytorch_half_pixel    the same, but -1/2 for s in = 1
 *   half_pixel_symmetric  the same, moved so that the centres of input and output meet
 *   align_corners         c = o (in - 1) / (s in - 1), or 0
 *   asymmetric            c = o / s
 *   tf_crop_and_resize    as align_corners between roi's start and end, which are parts of in - 1;
 *                         beyond the input the output is extrapolation_value
 * Weights with b = ceil(c) - 1, r = c - b in (0, 1]: nearest takes one of b and b + 1; linear
 * 1 - r and r of them; cubic those of Keys's polynomial for b - 1 to b + 2. With antialias and
 * s < 1 the polynomial is stretched by 1 / s and takes in as many more. Inputs beyond the ends are
 * those at the ends, or with exclude_outside left out and the other weights made to sum to 1. */
#ifndef TUTTI_OPS_NETWORK_RESIZE_H
#define TUTTI_OPS_NETWORK_RESIZE_H

#include "ops/network/network.h"

typedef struct tutti_resize_axis {
    int axis;
    int64_t in, out; /* TUTTI_ANY where not known */
    double scale, start, end;
} tutti_resize_axis;

typedef struct tutti_resizing {
    int count;
    tutti_resize_axis axes[TUTTI_MAX_RANK];
} tutti_resizing;

/* Axes made non-negative; none given: all but the first and the last. Returns their number, -1 when
 * one is out of range or there twice. */
int tutti__resize_axes(const tutti_attr *attrs, int attr_count, int rank, int *ret);
/* Checks the attributes of a node that resizes x. */
tutti_status tutti__resize_infer(const tutti_infer *node, const tutti_type *x, tutti_resizing *ret);
/* The same from attributes that were checked and known dimensions. */
tutti_resizing tutti__resize_of(const tutti_attr *attrs, int attr_count, int rank,
                                const int64_t *dims);

/* What each of `count` lines is made of: taps first[i] to first[i + 1]; none: extrapolated. One
 * block of memory, for free(). */
typedef struct tutti_resize_taps {
    int64_t count, *first, *index;
    double *weight;
} tutti_resize_taps;
/* Of an axis; `backward`: of the gradient, what each input was used for. */
tutti_status tutti__resize_taps(const tutti_attr *attrs, int attr_count,
                                const tutti_resize_axis *axis, bool backward,
                                tutti_resize_taps **ret);

#define RESIZE_ATTRS                                                                               \
    {"axes", TUTTI_ATTR_INTS, "[]"}, {"sizes", TUTTI_ATTR_INTS, "[]"},                             \
        {"scales", TUTTI_ATTR_FLOATS, "[]"}, {"mode", TUTTI_ATTR_STRING, "nearest"},               \
        {"coordinates", TUTTI_ATTR_STRING, "half_pixel"},                                          \
        {"nearest_mode", TUTTI_ATTR_STRING, "round_prefer_floor"},                                 \
        {"cubic_coefficient", TUTTI_ATTR_FLOAT, "-0.75"},                                          \
        {"exclude_outside", TUTTI_ATTR_INT, "false"}, {"antialias", TUTTI_ATTR_INT, "false"},      \
        {"aspect", TUTTI_ATTR_STRING, "stretch"}, {"roi", TUTTI_ATTR_FLOATS, "[]"},                \
    {                                                                                              \
        "extrapolation_value", TUTTI_ATTR_FLOAT, "0"                                               \
    }
#define SAME_RESIZE(node)                                                                          \
    SAME_ATTR(node, "axes"), SAME_ATTR(node, "sizes"), SAME_ATTR(node, "scales"),                  \
        SAME_ATTR(node, "mode"), SAME_ATTR(node, "coordinates"), SAME_ATTR(node, "nearest_mode"),  \
        SAME_ATTR(node, "cubic_coefficient"), SAME_ATTR(node, "exclude_outside"),                  \
        SAME_ATTR(node, "antialias"), SAME_ATTR(node, "aspect"), SAME_ATTR(node, "roi")

/* Ways to cut: every axis that keeps its size, in all inputs and the output. */
int tutti__resize_split(const tutti_infer *node, int capacity, tutti_split *ret);
/* FLOPs: two for every tap. */
void tutti__resize_cost(const tutti_infer *node, tutti_cost *ret);

/* Reference kernels' work: x, of shape `dims`, axis after axis; the last result is y. */
tutti_status tutti__resize_doubles(const tutti_kernel_call *call, const tutti_resizing *resize,
                                   const int64_t *dims, bool backward, const double *x, double *y,
                                   tutti_arena *scratch);

#endif
