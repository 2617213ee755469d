/* grid_sample_linear.c: images sampled at places between four pixels, and the gradients of image
 * and places, in floats. What PLACES places use is found for all of them side by side, in doubles;
 * places whose four pixels lie in the image, as most do, then ask nothing about them. */
#include "device/cpu/resize/grid_work.h"
#include "device/cpu/vector_f64.h"

/* What places use along an axis: elements base and base + 1, with weights 1 - part and part, whose
 * slopes along the coordinate are -slope and slope. */
typedef struct linear_axis {
    int32_t base[PLACES];
    double part[PLACES], slope[PLACES];
} linear_axis;

/* Axis 0 is the second coordinate of a place. As tutti__grid_axis; where there is nothing p is -2,
 * or beyond the last element, so that both elements are outside. */
static void find_axis(const tutti_grid *g, int axis, const float *grid, int64_t count,
                      linear_axis *ret)
{
    const double size = (double)g->size[axis], last = size - 1;
    const double factor = (g->align_corners ? last : size) / 2, shift = g->align_corners ? 0 : 0.5;
    const double low = g->border ? 0 : -2, high = g->border ? last : size + 1;
    const double still = g->border ? 0 : factor;
    double at[PLACES], whole[PLACES];
    for (int64_t i = 0; i < count; i++)
        at[i] = (double)grid[2 * i + 1 - axis];
    for (int64_t i = count; i % DVEC_LANES != 0; i++)
        at[i] = 0;
    for (int64_t i = 0; i < count; i += DVEC_LANES) {
        const dvec none = dvec_splat(-2), one = dvec_splat(1);
        dvec p = (dvec_load(at + i) + 1.0) * factor - shift;
        p = dvec_select(dvec_lt(dvec_abs(p), dvec_splat(1e15)), p, none);
        const dvec slope =
            dvec_select(dvec_lt(p, dvec_splat(high)), dvec_splat(factor), dvec_splat(still));
        dvec_store(ret->slope + i,
                   dvec_select(dvec_gt(p, dvec_splat(low)), slope, dvec_splat(still)));
        p = dvec_at_most(dvec_at_least(p, low), high);
        const dvec near = (p + 0x1.8p52) - 0x1.8p52;
        const dvec base = near - dvec_select(dvec_lt(p, near), one, dvec_splat(0));
        dvec_store(whole + i, base);
        dvec_store(ret->part + i, p - base);
    }
    TILE_FOR(int64_t i = 0; i < count; i++)
    ret->base[i] = (int32_t)whole[i];
}

typedef struct linear_places {
    linear_axis axes[2];
    float weights[4][PLACES]; /* of (row, column), (row + 1, column), (row, column + 1), … */
    int32_t offset[PLACES];   /* of (row, column) in the image, in pixels */
    int32_t inside[PLACES];   /* all four are elements */
    int64_t count;
} linear_places;

static void find_places(const grid_work *w, int64_t first, int64_t count, linear_places *ret)
{
    const tutti_grid *g = &w->g;
    const int32_t rows = (int32_t)g->size[0], columns = (int32_t)g->size[1];
    const linear_axis *row = &ret->axes[0], *column = &ret->axes[1];
    for (int axis = 0; axis < 2; axis++)
        find_axis(g, axis, w->grid + 2 * first, count, &ret->axes[axis]);
    ret->count = count;
    TILE_FOR(int64_t i = 0; i < count; i++)
    {
        const double y = row->part[i], x = column->part[i];
        ret->weights[0][i] = (float)((1 - y) * (1 - x));
        ret->weights[1][i] = (float)(y * (1 - x));
        ret->weights[2][i] = (float)((1 - y) * x);
        ret->weights[3][i] = (float)(y * x);
    }
    TILE_FOR(int64_t i = 0; i < count; i++)
    ret->offset[i] = row->base[i] * columns + column->base[i];
    TILE_FOR(int64_t i = 0; i < count; i++)
    ret->inside[i] = ((row->base[i] >= 0) & (row->base[i] < rows - 1)) &
                     ((column->base[i] >= 0) & (column->base[i] < columns - 1));
}

/* Whether pixel `tap` of a place is an element. */
static bool is_element(const tutti_grid *g, const linear_places *p, int64_t i, int tap)
{
    int64_t row = p->axes[0].base[i] + tap % 2, column = p->axes[1].base[i] + tap / 2;
    return row >= 0 && row < g->size[0] && column >= 0 && column < g->size[1];
}

/* Of pixel `tap`, from (row, column), in floats. */
static inline int64_t tap_offset(const tutti_grid *g, int tap)
{
    return (tap % 2 * g->size[1] + tap / 2) * g->channels;
}

static void sample_edge(const tutti_grid *g, const linear_places *p, int64_t i, const float *x,
                        float *y)
{
    memset(y, 0, (size_t)g->channels * sizeof *y);
    for (int tap = 0; tap < 4; tap++)
        for (int64_t c = 0; c < g->channels && is_element(g, p, i, tap); c++)
            y[c] += p->weights[tap][i] * x[tap_offset(g, tap) + c];
}

static void spread_edge(const tutti_grid *g, const linear_places *p, int64_t i, const float *grad,
                        float *x)
{
    for (int tap = 0; tap < 4; tap++)
        for (int64_t c = 0; c < g->channels && is_element(g, p, i, tap); c++)
            x[tap_offset(g, tap) + c] += p->weights[tap][i] * grad[c];
}

/* Channels side by side; `few` is their number where it is small, else 0. */
VEC_INLINE void sample_inside(const tutti_grid *g, const linear_places *p, int64_t i,
                              const float *x, int few, float *y)
{
    const int64_t down = tap_offset(g, 1), right = tap_offset(g, 2);
    const float a = p->weights[0][i], b = p->weights[1][i], c = p->weights[2][i],
                d = p->weights[3][i];
    if (few > 0) {
        VEC_UNROLL for (int k = 0; k < few; k++) y[k] =
            ((a * x[k] + b * x[k + down]) + c * x[k + right]) + d * x[k + down + right];
        return;
    }
    const float *below = x + down, *beside = x + right, *across = x + down + right;
    ROW_MAP(y, g->channels,
            ((a * ROW_AT(x) + b * ROW_AT(below)) + c * ROW_AT(beside)) + d * ROW_AT(across));
}

VEC_INLINE void spread_inside(const tutti_grid *g, const linear_places *p, int64_t i,
                              const float *grad, int few, float *x)
{
    for (int tap = 0; tap < 4; tap++) {
        float *to = x + tap_offset(g, tap);
        const float weight = p->weights[tap][i];
        if (few > 0) {
            VEC_UNROLL for (int k = 0; k < few; k++) to[k] += weight * grad[k];
        } else {
            ROW_MAP(to, g->channels, ROW_AT(to) + weight * ROW_AT(grad));
        }
    }
}

/* The products of the four pixels with grad; 0 of what is none. */
VEC_INLINE void slope_values(const tutti_grid *g, const linear_places *p, int64_t i, const float *x,
                             const float *grad, int few, double *ret)
{
    for (int tap = 0; tap < 4; tap++) {
        const float *from = x + tap_offset(g, tap);
        float value = 0;
        if (p->inside[i] || is_element(g, p, i, tap)) {
            if (few > 0) {
                VEC_UNROLL for (int k = 0; k < few; k++) value += from[k] * grad[k];
            } else {
                ROW_SUM(value, g->channels, ROW_AT(from) * ROW_AT(grad));
            }
        }
        ret[tap] = (double)value;
    }
}

VEC_INLINE void slope_place(const grid_work *w, const linear_places *p, int64_t i, const float *x,
                            const float *grad, int few, float *to)
{
    const double row = p->axes[0].part[i], column = p->axes[1].part[i];
    double v[4];
    slope_values(&w->g, p, i, x, grad, few, v);
    to[0] = (float)(p->axes[1].slope[i] * ((1 - row) * (v[2] - v[0]) + row * (v[3] - v[1])));
    to[1] = (float)(p->axes[0].slope[i] * ((1 - column) * (v[1] - v[0]) + column * (v[3] - v[2])));
}

typedef enum linear_kind { SAMPLE, SPREAD, SLOPE } linear_kind;

/* Places of one image, the first is number `first` of the batch. */
VEC_INLINE void run_places(const grid_work *w, linear_kind kind, int few, int64_t first,
                           const linear_places *p)
{
    const tutti_grid *g = &w->g;
    const int64_t channels = g->channels,
                  image = first / g->outputs * g->size[0] * g->size[1] * channels;
    for (int64_t i = 0; i < p->count; i++) {
        const int64_t place = (first + i) * channels, at = image + p->offset[i] * channels;
        if (kind == SLOPE)
            slope_place(w, p, i, w->x + at, w->grad + place, few, w->to + 2 * (first + i));
        else if (kind == SAMPLE && p->inside[i])
            sample_inside(g, p, i, w->x + at, few, w->to + place);
        else if (kind == SAMPLE)
            sample_edge(g, p, i, w->x + at, w->to + place);
        else if (p->inside[i])
            spread_inside(g, p, i, w->grad + place, few, w->to + at);
        else
            spread_edge(g, p, i, w->grad + place, w->to + at);
    }
}

/* Places [first, end) of one image. */
VEC_INLINE void run_range(const grid_work *w, linear_kind kind, int64_t first, int64_t end)
{
    linear_places p;
    for (; first < end; first += PLACES) {
        find_places(w, first, end - first < PLACES ? end - first : PLACES, &p);
        if (w->g.channels == 1)
            run_places(w, kind, 1, first, &p);
        else if (w->g.channels == 2)
            run_places(w, kind, 2, first, &p);
        else if (w->g.channels == 3)
            run_places(w, kind, 3, first, &p);
        else
            run_places(w, kind, 0, first, &p);
    }
}

static int64_t blocks(const grid_work *w)
{
    return (w->g.outputs + PLACES - 1) / PLACES;
}

/* Piece: up to PLACES places of one image. */
VEC_INLINE void run_piece(const grid_work *w, linear_kind kind, int64_t piece)
{
    int64_t image = piece / blocks(w), first = piece % blocks(w) * PLACES;
    int64_t end = first + PLACES < w->g.outputs ? first + PLACES : w->g.outputs;
    run_range(w, kind, image * w->g.outputs + first, image * w->g.outputs + end);
}

static void sample_piece(void *context, int64_t piece)
{
    run_piece(context, SAMPLE, piece);
}

static void slope_piece(void *context, int64_t piece)
{
    run_piece(context, SLOPE, piece);
}

/* Piece: one image, whose places may meet. */
static void spread_piece(void *context, int64_t image)
{
    const grid_work *w = context;
    const int64_t size = w->g.size[0] * w->g.size[1] * w->g.channels;
    memset(w->to + image * size, 0, (size_t)size * sizeof *w->to);
    run_range(w, SPREAD, image * w->g.outputs, (image + 1) * w->g.outputs);
}

/* `x` and `grid`: inputs, or -1 for the output. Pixels are counted in 32 bits. */
static int score_for(const tutti_kernel_query *query, int x, int grid)
{
    const tutti_infer *node = &query->node;
    const tutti_type *image = x < 0 ? &node->outputs[0] : &node->inputs[x];
    const char *mode = tutti_attr_string(node->attrs, node->attr_count, "mode");
    const char *padding = tutti_attr_string(node->attrs, node->attr_count, "padding");
    return row_floats(query, 7) && tutti_type_is_static(image) && image->rank == 4 &&
                   tutti_type_count(&node->outputs[0]) > 0 &&
                   tutti_type_count(&node->inputs[grid]) > 0 && tutti_type_count(image) > 0 &&
                   image->dims[1] < 32768 && image->dims[2] < 32768 &&
                   strcmp(mode, "linear") == 0 && strcmp(padding, "reflection") != 0
               ? 120
               : 0;
}

static int score_first(const tutti_kernel_query *query)
{
    return score_for(query, 0, 1);
}

static int score_spread(const tutti_kernel_query *query)
{
    return score_for(query, -1, 0);
}

static tutti_status run_sample(const tutti_kernel_call *call)
{
    grid_work w = grid_work_of_places(call);
    tutti_parallel(call, w.g.batch * blocks(&w), sample_piece, &w);
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
    tutti_parallel(call, w.g.batch * blocks(&w), slope_piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_grid_sample_linear) = {
    .name = "grid_sample.linear",
    .version = 1,
    .op = "grid_sample",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score_first,
    .run = run_sample,
};

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_grid_sample_backward_input_linear) = {
    .name = "grid_sample_backward_input.linear",
    .version = 1,
    .op = "grid_sample_backward_input",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score_spread,
    .run = run_spread,
};

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_grid_sample_backward_grid_linear) = {
    .name = "grid_sample_backward_grid.linear",
    .version = 1,
    .op = "grid_sample_backward_grid",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score_first,
    .run = run_slope,
};
