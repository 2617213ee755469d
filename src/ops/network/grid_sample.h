/* grid_sample.h: images sampled at given places; what grid_sample and its gradients share.
 *
 * x [batch, in…, channels], grid [batch, out…, axes], y [batch, out…, channels], one to three axes.
 * The last coordinate of a place is that of the first axis (x, then y, then z in a place, as
 * others have it). Coordinate g in [-1, 1] is the place p among an axis's `size` elements:
 *   p = (g + 1) / 2 * (size - 1) with align_corners, else ((g + 1) * size - 1) / 2
 * Beyond the elements there are zeros, or the outermost ("border"), or the elements mirrored
 * ("reflection": at the outermost centres with align_corners, else at the outer edges). */
#ifndef TUTTI_OPS_NETWORK_GRID_SAMPLE_H
#define TUTTI_OPS_NETWORK_GRID_SAMPLE_H

#include "ops/network/network.h"

enum { TUTTI_GRID_AXES = 3, TUTTI_GRID_TAPS = 4 };

typedef struct tutti_grid {
    int axes;
    int64_t batch, channels, outputs; /* outputs of one example */
    int64_t size[TUTTI_GRID_AXES];
    bool align_corners, border, reflection, nearest, cubic;
} tutti_grid;

/* What one axis gives: elements, -1 for a zero, with their weights and those weights' slopes along
 * the coordinate g. */
typedef struct tutti_grid_axis {
    int count;
    int64_t index[TUTTI_GRID_TAPS];
    double weight[TUTTI_GRID_TAPS], slope[TUTTI_GRID_TAPS];
} tutti_grid_axis;

#define GRID_ATTRS                                                                                 \
    {"mode", TUTTI_ATTR_STRING, "linear"}, {"padding", TUTTI_ATTR_STRING, "zeros"},                \
    {                                                                                              \
        "align_corners", TUTTI_ATTR_INT, "false"                                                   \
    }
#define SAME_GRID(node)                                                                            \
    SAME_ATTR(node, "mode"), SAME_ATTR(node, "padding"), SAME_ATTR(node, "align_corners")

/* Checks attributes and shapes as far as they are known; any of the types may be NULL. */
tutti_status tutti__grid_infer(const tutti_infer *node, const tutti_type *x, const tutti_type *grid,
                               const tutti_type *grad);
/* From known shapes. */
tutti_grid tutti__grid(const tutti_kernel_call *call, const tutti_view *x, const tutti_view *grid);

/* The taps of axis `axis` at coordinate g. */
void tutti__grid_axis(const tutti_grid *g, int axis, double at, tutti_grid_axis *ret);

/* Calls visit(context, taps, x, y) for every output and combination of taps that is not zero:
 * `taps` says which tap of each axis; x and y are offsets of channel 0. `axes` holds the taps. */
typedef void tutti_grid_fn(const tutti_grid *g, void *context, const tutti_grid_axis *axes,
                           const int *taps, int64_t output, int64_t x, int64_t y);
void tutti__grid_each(const tutti_grid *g, const double *grid, tutti_grid_fn *visit, void *context);

static inline double tutti__grid_weight(const tutti_grid *g, const tutti_grid_axis *axes,
                                        const int *taps)
{
    double weight = 1;
    for (int axis = 0; axis < g->axes; axis++)
        weight *= axes[axis].weight[taps[axis]];
    return weight;
}

/* grid_sample of (x, grid) made of other operators, in a graph of its own (see pull_back.h); not
 * for "nearest", which is flat along the grid. `context` is the tutti_gradient_call of a node with
 * GRID_ATTRS. */
void tutti__grid_sample_nodes(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                              void *context);

/* FLOPs: two for every tap and channel. */
void tutti__grid_cost(const tutti_infer *node, const tutti_type *y, tutti_cost *ret);

#endif
