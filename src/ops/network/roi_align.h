/* roi_align.h: regions of images sampled to one size; what roi_align and its gradient share.
 *
 * x [batch, height, width, channels], regions [regions, 4] of corners (x1, y1, x2, y2), images
 * [regions], y [regions, rows, columns, channels]. A region is cut into rows by columns of bins,
 * and each bin sampled at `grid` by `grid` places inside: along an axis of length e - s bin b's
 * place i is at  s + t (e - s),  t = (b + (i + 1/2) / grid) / bins.  A place is a mean of the four
 * pixels round it. */
#ifndef TUTTI_OPS_NETWORK_ROI_ALIGN_H
#define TUTTI_OPS_NETWORK_ROI_ALIGN_H

#include "ops/network/network.h"

enum { TUTTI_ROI_X, TUTTI_ROI_REGIONS, TUTTI_ROI_IMAGES, TUTTI_ROI_GRAD };
enum { TUTTI_ROI_MOST_PLACES = 1024 }; /* of a bin, along one axis */

/* Along one axis: index 0 is height, 1 is width. */
typedef struct tutti_roi_axis {
    int64_t size, bins, grid;
    double start, length;
    bool clamped; /* a region shorter than a pixel counts as one */
} tutti_roi_axis;

typedef struct tutti_roi {
    tutti_roi_axis axes[2];
    double scale;
    int64_t image;
} tutti_roi;

/* A place along one axis: two pixels with their weights, the weights' slopes along the place, and
 * how much of the region's start and end there is in it. */
typedef struct tutti_roi_side {
    int64_t index[2];
    double weight[2], slope[2], start, end;
} tutti_roi_side;

typedef struct tutti_roi_place {
    bool outside; /* then it is 0 */
    tutti_roi_side axes[2];
} tutti_roi_place;

#define ROI_ATTRS                                                                                  \
    {"size", TUTTI_ATTR_INTS, "[1,1]"}, {"sampling_ratio", TUTTI_ATTR_INT, "0"},                   \
        {"spatial_scale", TUTTI_ATTR_FLOAT, "1"}, {"mode", TUTTI_ATTR_STRING, "mean"},             \
    {                                                                                              \
        "half_pixel", TUTTI_ATTR_INT, "true"                                                       \
    }
#define SAME_ROI(node)                                                                             \
    SAME_ATTR(node, "size"), SAME_ATTR(node, "sampling_ratio"), SAME_ATTR(node, "spatial_scale"),  \
        SAME_ATTR(node, "mode"), SAME_ATTR(node, "half_pixel")

/* Checks attributes and the first three inputs; gives y's type. */
tutti_status tutti__roi_infer(const tutti_infer *node, tutti_type *ret_y);

/* Region number i; an error when it names no image or needs too many places. */
tutti_status tutti__roi(const tutti_kernel_call *call, const double *regions, int64_t i,
                        tutti_roi *ret);

/* Place (row, column) of the bin at (row, column). */
tutti_roi_place tutti__roi_place(const tutti_roi *roi, const int64_t bin[2],
                                 const int64_t place[2]);

/* Place number `place` of bin number `bin` along an axis; false where it is outside. */
bool tutti__roi_side(const tutti_roi *roi, int axis, int64_t bin, int64_t place,
                     tutti_roi_side *ret);

/* Offset in x of pixel (a, b) of a place, channel 0. */
static inline int64_t tutti__roi_pixel(const tutti_roi *roi, const tutti_roi_place *p, int a, int b,
                                       int64_t channels)
{
    return ((roi->image * roi->axes[0].size + p->axes[0].index[a]) * roi->axes[1].size +
            p->axes[1].index[b]) *
           channels;
}

/* roi_align of (x, regions, images) made of other operators, in a graph of its own (see
 * pull_back.h). `context` is the tutti_gradient_call of a node with ROI_ATTRS. */
void tutti__roi_align_nodes(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                            void *context);

void tutti__roi_cost(const tutti_infer *node, const tutti_type *y, tutti_cost *ret);

#endif
