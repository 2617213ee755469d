/* conv2d_pool_gradient_sparse.c: the gradients of kernel and bias of p = max_pool2d(y),
 * y = relu(conv2d(x, kernel) + bias), for few filters: of a window's pixels only its maximum has a
 * gradient, so that one patch of x is summed for each window and filter instead of one for each
 * pixel:
 *     dkernel[taps, f] = over windows w: g[w, f] x[place[w, f] + taps]
 * The taps of one row of a patch lie side by side and fill registers, which few filters do not. */
#include "base/isa.h"
#include "device/cpu/conv/pool_gradient.h"

enum { MOST_RUNS = 5, MOST_VECTORS = 4, PLACE_COST = 6 };
#define MOST_PLACES (1 << 22) /* in an image, far below what padding could bring to 2^24 */

static bool has_runs(const tutti_convolution *c)
{
    int64_t length = c->windows.size[1] * c->cin;
    return c->windows.dilation[1] == 1 && length <= MOST_VECTORS * VEC_LANES &&
           (length >= VEC_LANES || (VEC_MASKED && !VEC_NEON));
}

/* Whether patches of maxima take less than patches of all pixels: in registers, for a window. */
static bool pays(const tutti_convolution *c, int64_t cells)
{
    int64_t length = c->windows.size[1] * c->cin, rows = c->windows.size[0];
    int64_t patch = rows * ((length + VEC_LANES - 1) / VEC_LANES);
    return c->cout * (patch + PLACE_COST) <
           cells * rows * length * ((c->cout + VEC_LANES - 1) / VEC_LANES);
}

/* Places and gradients of a block's windows, and room for a register behind each. */
static int64_t place_floats(const plan *p)
{
    const tutti_windows *w = &p->layer.windows;
    return p->sum.block / w->size[0] * w->out[1] * p->layer.shape.cout + VEC_LANES;
}

static bool conv2d_pool_gradient_sparse_make(const tutti_kernel_query *query, plan *ret)
{
    if (!pool_gradient_make(query, ret))
        return false;
    const tutti_convolution *c = &ret->layer.shape;
    const tutti_windows *w = &ret->layer.windows;
    ret->slot = tutti__slot_bytes((size_t)place_floats(ret) * (sizeof(float) + sizeof(int32_t)));
    return has_runs(c) && pays(c, w->size[0] * w->size[1]) &&
           c->windows.in[0] * c->windows.in[1] * c->cin < MOST_PLACES;
}

static int conv2d_pool_gradient_sparse_score(const tutti_kernel_query *query)
{
    plan p;
    return conv2d_pool_gradient_sparse_make(query, &p) ? 120 : 0;
}

static size_t conv2d_pool_gradient_sparse_workspace(const tutti_kernel_query *query)
{
    plan p;
    return conv2d_pool_gradient_sparse_make(query, &p) ? pool_gradient_workspace(&p) : 0;
}

static tutti_status conv2d_pool_gradient_sparse_prepare(const tutti_kernel_query *query,
                                                        void **ret_plan)
{
    plan p;
    conv2d_pool_gradient_sparse_make(query, &p); /* which gave it a score */
    return pool_gradient_prepare(query, &p, ret_plan);
}

/* What the windows of a block hand on, [windows][filters]. */
typedef struct places {
    int32_t *at;  /* where the patch of the maximum begins in x */
    float *given; /* the gradient, or 0 where the maximum is not above 0 */
} places;

/* One window and channel: the first maximum, a NaN being greater than all. */
static inline void place_one(const tutti_windows *w, const tutti_conv_phase *phase,
                             int64_t channels, const float *y, float grad, int32_t base,
                             int32_t *ret_at, float *ret_given)
{
    float most = *y;
    *ret_at = base;
    for (int64_t i = 0; i < w->size[0]; i++)
        for (int64_t j = 0; j < w->size[1]; j++) {
            float value = y[(i * w->in[1] + j) * channels];
            if (!(value > most) && (value == value || most != most))
                continue;
            most = value;
            *ret_at = base + (int32_t)(i * phase->row + j * phase->column);
        }
    *ret_given = most > 0 ? grad : 0;
}

/* `lanes` channels of it. */
VEC_INLINE void place_vector(int64_t rows, int64_t columns, const tutti_conv_phase *phase,
                             int64_t row, int64_t channels, int64_t lanes, const float *y,
                             const float *grad, int32_t base, int32_t *ret_at, float *ret_given)
{
    const vec none = vec_splat(0);
    float spots[VEC_LANES];
    vec most = vec_load_lanes(y, lanes), at = vec_splat(0);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i == 0; j < columns; j++) {
            vec value = vec_load_lanes(y + i * row + j * channels, lanes);
            vec greater = vec_maximum(most, value);
            /* Places are whole numbers below 2^24, which floats hold. */
            vec here = vec_splat((float)(i * phase->row + j * phase->column));
            at = vec_select(vec_eq(most, greater), at, here);
            most = greater;
        }
    vec_store_lanes(ret_given, vec_select(vec_gt(most, none), vec_load_lanes(grad, lanes), none),
                    lanes);
    vec_store(spots, at);
    for (int64_t c = 0; c < lanes; c++)
        ret_at[c] = base + (int32_t)spots[c];
}

/* One row of windows: whole registers of channels, of which the last may overlap the one before. */
static void place_row(const plan *p, const float *y, const float *grad, int32_t base, places to)
{
    const tutti_windows *w = &p->layer.windows;
    const tutti_conv_phase *phase = p->sum.walk->phase;
    const int64_t channels = p->layer.shape.cout, row = w->in[1] * channels;
    const bool pairs = w->size[0] == 2 && w->size[1] == 2;
    for (int64_t column = 0; column < w->out[1]; column++) {
        for (int64_t c = 0; c < channels && channels < VEC_LANES && !VEC_MASKED; c++)
            place_one(w, phase, channels, y + c, grad[c], base, to.at + c, to.given + c);
        if (VEC_MASKED && channels < VEC_LANES)
            place_vector(w->size[0], w->size[1], phase, row, channels, channels, y, grad, base,
                         to.at, to.given);
        for (int64_t next = 0; next < channels && channels >= VEC_LANES; next += VEC_LANES) {
            int64_t c = next + VEC_LANES > channels ? channels - VEC_LANES : next;
            if (pairs)
                place_vector(2, 2, phase, row, channels, VEC_LANES, y + c, grad + c, base,
                             to.at + c, to.given + c);
            else
                place_vector(w->size[0], w->size[1], phase, row, channels, VEC_LANES, y + c,
                             grad + c, base, to.at + c, to.given + c);
        }
        y += w->size[1] * channels;
        base += (int32_t)(w->size[1] * phase->column);
        grad += channels;
        to.at += channels;
        to.given += channels;
    }
}

/* The windows of a block; returns their number. */
static int64_t place_block(const work *w, block_place at, places to)
{
    const plan *p = w->plan;
    const tutti_windows *windows = &p->layer.windows;
    int64_t channels = p->layer.shape.cout, line = windows->in[1] * channels, row = at.row,
            count = 0, each = windows->out[1];
    for (; row + windows->size[0] <= at.row + at.rows && row / windows->size[0] < windows->out[0];
         row += windows->size[0], count += each)
        place_row(p, w->y + (at.image * windows->in[0] + row) * line,
                  w->grad + (at.image * windows->out[0] + row / windows->size[0]) * each * channels,
                  (int32_t)((row - at.row) * p->sum.walk->phase->row),
                  (places){to.at + count * channels, to.given + count * channels});
    return count;
}

/* Patches of one filter: of `count` windows, from places that are `step` apart. */
typedef struct patches {
    const float *x;
    const int64_t *offset; /* of each row of the patch */
    int64_t length;        /* of a row */
    places from;
    int64_t count, step;
} patches;

/* sums[runs][length]; the last register of a row ends with it. */
VEC_INLINE void sum_patches(int runs, int vectors, bool whole, const patches *p, float *sums)
{
    vec sum[MOST_RUNS][MOST_VECTORS];
    const int64_t last = whole ? p->length - VEC_LANES : 0;
    const int64_t lanes = whole ? VEC_LANES : p->length;
    VEC_UNROLL for (int r = 0; r < runs; r++) VEC_UNROLL for (int v = 0; v < vectors; v++)
        sum[r][v] = vec_splat(0);
    for (int64_t w = 0; w < p->count; w++) {
        const float *x = p->x + p->from.at[w * p->step];
        vec g = vec_splat(p->from.given[w * p->step]);
        VEC_UNROLL for (int r = 0; r < runs; r++) VEC_UNROLL for (int v = 0; v < vectors; v++)
        {
            const float *from = x + p->offset[r] + (v + 1 < vectors ? v * VEC_LANES : last);
            sum[r][v] = vec_fma(vec_load_lanes(from, lanes), g, sum[r][v]);
        }
    }
    VEC_UNROLL for (int r = 0; r < runs; r++) VEC_UNROLL for (int v = 0; v < vectors; v++)
        vec_store_lanes(sums + r * p->length + (v + 1 < vectors ? v * VEC_LANES : last), sum[r][v],
                        lanes);
}

typedef void patches_function(const patches *p, float *sums);
#define SUM_PATCHES(name, runs, vectors, whole)                                                    \
    static void name(const patches *p, float *sums)                                                \
    {                                                                                              \
        sum_patches(runs, vectors, whole, p, sums);                                                \
    }
#define SUM_RUNS(runs)                                                                             \
    SUM_PATCHES(sum_##runs##_part, runs, 1, false)                                                 \
    SUM_PATCHES(sum_##runs##_1, runs, 1, true)                                                     \
    SUM_PATCHES(sum_##runs##_2, runs, 2, true)                                                     \
    SUM_PATCHES(sum_##runs##_3, runs, 3, true)                                                     \
    SUM_PATCHES(sum_##runs##_4, runs, 4, true)
#define RUNS_ROW(runs)                                                                             \
    {                                                                                              \
        sum_##runs##_part, sum_##runs##_1, sum_##runs##_2, sum_##runs##_3, sum_##runs##_4          \
    }
SUM_RUNS(1)
SUM_RUNS(2)
SUM_RUNS(3)
SUM_RUNS(4)
SUM_RUNS(5)
static patches_function *const patches_functions[MOST_RUNS][1 + MOST_VECTORS] = {
    RUNS_ROW(1), RUNS_ROW(2), RUNS_ROW(3), RUNS_ROW(4), RUNS_ROW(5)};

/* One filter of a block: sums[taps][width], at the filter, = or += its patches. */
static void sum_filter(const kernel_sum *sum, patches *p, float *sums, bool add)
{
    const tutti_conv_phase *phase = sum->walk->phase;
    float some[MOST_RUNS * MOST_VECTORS * VEC_LANES], bias = 0;
    int64_t vectors = phase->length < VEC_LANES ? 0 : (phase->length - 1) / VEC_LANES + 1;
    p->length = phase->length;
    for (int64_t first = 0; first < phase->runs; first += MOST_RUNS) {
        int64_t runs = phase->runs - first < MOST_RUNS ? phase->runs - first : MOST_RUNS;
        p->offset = phase->offset + first;
        patches_functions[runs - 1][vectors](p, some);
        float *to = sums + first * phase->length * sum->width;
        for (int64_t t = 0; t < runs * phase->length; t++)
            to[t * sum->width] = add ? to[t * sum->width] + some[t] : some[t];
    }
    for (int64_t w = 0; w < p->count; w++)
        bias += p->from.given[w * p->step];
    float *to = sums + sum->taps * sum->width;
    *to = add ? *to + bias : bias;
}

/* Piece: a chunk, block after block. */
static void conv2d_pool_gradient_sparse_sum_piece(void *context, int64_t chunk)
{
    work *w = context;
    const kernel_sum *p = &w->plan->sum;
    float *slot = tutti__slot_take(&w->slots), *sums = w->partial + chunk * p->lines * p->width;
    const places all = {(int32_t *)(slot + place_floats(w->plan)), slot};
    int64_t first = chunk_begin(p, chunk), filters = p->walk->filters;
    memset(sums, 0, (size_t)(p->lines * p->width) * sizeof *sums);
    for (int64_t block = first; block < chunk_begin(p, chunk + 1); block++) {
        block_place at = block_at(p, block);
        patches patch = {.x = w->x + at.image * p->walk->image + at.row * p->walk->phase->row,
                         .count = place_block(w, at, all),
                         .step = filters};
        for (int64_t f = 0; f < filters; f++) {
            patch.from = (places){all.at + f, all.given + f};
            sum_filter(p, &patch, sums + f, block > first);
        }
    }
    tutti__slot_give(&w->slots, slot);
}

static tutti_status conv2d_pool_gradient_sparse_run(const tutti_kernel_call *call)
{
    return pool_gradient_run(call, conv2d_pool_gradient_sparse_sum_piece);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_pool_gradient_sparse) = {
    .name = "fused.conv2d_pool_gradient_sparse",
    .version = 1,
    .op = "fused",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .score = conv2d_pool_gradient_sparse_score,
    .workspace = conv2d_pool_gradient_sparse_workspace,
    .prepare = conv2d_pool_gradient_sparse_prepare,
    .discard = pool_gradient_discard,
    .run = conv2d_pool_gradient_sparse_run,
};
