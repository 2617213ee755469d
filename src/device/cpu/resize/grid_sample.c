/* grid_sample.c: images sampled at places, and the gradients of image and places, in floats.
 * Coordinates and weights are computed in doubles, once for all channels of a place. */
#include "device/cpu/resize/grid_work.h"

/* One element of the image that a place uses. */
typedef struct grid_tap {
    int64_t x; /* offset of channel 0 */
    float weight, slope[TUTTI_GRID_AXES];
} grid_tap;
enum { MOST_TAPS = TUTTI_GRID_TAPS * TUTTI_GRID_TAPS * TUTTI_GRID_TAPS };

/* The combination `which` of taps; false where it is a zero. */
static bool combine(const tutti_grid *g, const tutti_grid_axis *axes, int which, int64_t image,
                    grid_tap *ret)
{
    int taps[TUTTI_GRID_AXES];
    ret->x = image;
    for (int axis = 0; axis < g->axes; axis++) {
        taps[axis] = which % axes[axis].count;
        which /= axes[axis].count;
        int64_t index = axes[axis].index[taps[axis]];
        if (index < 0)
            return false;
        ret->x = ret->x * g->size[axis] + index;
    }
    ret->x *= g->channels;
    ret->weight = (float)tutti__grid_weight(g, axes, taps);
    for (int along = 0; along < g->axes; along++) {
        double slope = axes[along].slope[taps[along]];
        for (int axis = 0; axis < g->axes; axis++)
            slope *= axis == along ? 1 : axes[axis].weight[taps[axis]];
        ret->slope[along] = (float)slope;
    }
    return true;
}

/* All elements that place number `place` of the batch uses; returns their number. */
static int taps_of(const grid_work *w, int64_t place, grid_tap *ret)
{
    const tutti_grid *g = &w->g;
    tutti_grid_axis axes[TUTTI_GRID_AXES];
    int combinations = 1, count = 0;
    for (int axis = 0; axis < g->axes; axis++) {
        double at = (double)w->grid[place * g->axes + g->axes - 1 - axis];
        tutti__grid_axis(g, axis, at, &axes[axis]);
        combinations *= axes[axis].count;
    }
    for (int i = 0; i < combinations; i++)
        count += combine(g, axes, i, place / g->outputs, &ret[count]);
    return count;
}

static int64_t end_of(const grid_work *w, int64_t first)
{
    int64_t all = w->g.batch * w->g.outputs;
    return first + PLACES < all ? first + PLACES : all;
}

static void sample_piece(void *context, int64_t piece)
{
    const grid_work *w = context;
    int64_t channels = w->g.channels;
    grid_tap taps[MOST_TAPS];
    for (int64_t place = piece * PLACES; place < end_of(w, piece * PLACES); place++) {
        int count = taps_of(w, place, taps);
        float *y = w->to + place * channels;
        memset(y, 0, (size_t)channels * sizeof *y);
        for (int i = 0; i < count; i++) {
            const float *x = w->x + taps[i].x, weight = taps[i].weight;
            for (int64_t c = 0; c < channels; c++)
                y[c] += weight * x[c];
        }
    }
}

/* Piece: one image, whose places may meet. */
static void spread_piece(void *context, int64_t image)
{
    const grid_work *w = context;
    const tutti_grid *g = &w->g;
    int64_t channels = g->channels, size = channels;
    grid_tap taps[MOST_TAPS];
    for (int axis = 0; axis < g->axes; axis++)
        size *= g->size[axis];
    memset(w->to + image * size, 0, (size_t)size * sizeof *w->to);
    for (int64_t place = image * g->outputs; place < (image + 1) * g->outputs; place++) {
        int count = taps_of(w, place, taps);
        const float *grad = w->grad + place * channels;
        for (int i = 0; i < count; i++) {
            float *x = w->to + taps[i].x, weight = taps[i].weight;
            for (int64_t c = 0; c < channels; c++)
                x[c] += weight * grad[c];
        }
    }
}

static void slope_piece(void *context, int64_t piece)
{
    const grid_work *w = context;
    const tutti_grid *g = &w->g;
    grid_tap taps[MOST_TAPS];
    for (int64_t place = piece * PLACES; place < end_of(w, piece * PLACES); place++) {
        int count = taps_of(w, place, taps);
        const float *grad = w->grad + place * g->channels;
        double sums[TUTTI_GRID_AXES] = {0};
        for (int i = 0; i < count; i++) {
            float value = 0;
            for (int64_t c = 0; c < g->channels; c++)
                value += w->x[taps[i].x + c] * grad[c];
            for (int axis = 0; axis < g->axes; axis++)
                sums[axis] += (double)taps[i].slope[axis] * (double)value;
        }
        for (int axis = 0; axis < g->axes; axis++)
            w->to[place * g->axes + g->axes - 1 - axis] = (float)sums[axis];
    }
}

static int grid_sample_score(const tutti_kernel_query *query)
{
    return row_floats(query, 7) && tutti_type_count(&query->node.outputs[0]) > 0 ? 100 : 0;
}

static tutti_status run_sample(const tutti_kernel_call *call)
{
    grid_work w = grid_work_of_places(call);
    tutti_parallel(call, (w.g.batch * w.g.outputs + PLACES - 1) / PLACES, sample_piece, &w);
    return TUTTI_OK;
}

static tutti_status run_spread(const tutti_kernel_call *call)
{
    grid_work w = grid_work_of_image(call);
    tutti_parallel(call, w.g.batch, spread_piece, &w);
    return TUTTI_OK;
}

static tutti_status run_slope(const tutti_kernel_call *call)
{
    grid_work w = grid_work_of_places(call);
    tutti_parallel(call, (w.g.batch * w.g.outputs + PLACES - 1) / PLACES, slope_piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_grid_sample) = {
    .name = "grid_sample.places",
    .version = 1,
    .op = "grid_sample",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = grid_sample_score,
    .run = run_sample,
};

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_grid_sample_backward_input) = {
    .name = "grid_sample_backward_input.places",
    .version = 1,
    .op = "grid_sample_backward_input",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = grid_sample_score,
    .run = run_spread,
};

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_grid_sample_backward_grid) = {
    .name = "grid_sample_backward_grid.places",
    .version = 1,
    .op = "grid_sample_backward_grid",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = grid_sample_score,
    .run = run_slope,
};
