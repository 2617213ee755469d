/* conv2d_backward_input_scatter.c: the gradient of an input of few channels: each gradient of the
 * output is distributed over its window.
 *
 * With stride and dilation 1 the taps of a window in one row of the input, columns times channels,
 * lie side by side. They fill registers where the channels alone would not:
 *     spread[p, j cin + c] = over rows i and filters k: grad[h + before - i, p, k] kernel[i, j, c,
 * k] dx[h, w, c] = over columns j: spread[w + before - j, j cin + c] No zeros are multiplied for
 * what lies outside. Every row of dx is a sum in the same order whatever stands beside it: rows are
 * invariant. */
#include <stdlib.h>

#include "base/isa.h"
#include "device/cpu/conv/windows.h"
#include "device/cpu/slots.h"
#include "device/cpu/vector.h"

/* A tile: pixels times registers of a window's row. */
#if defined(__AVX512F__)
enum { PIXELS = 8, VECTORS = 2 };
#elif VEC_NEON
enum { PIXELS = 5, VECTORS = 4 };
#else
enum { PIXELS = 5, VECTORS = 2 };
#endif
enum { MOST_CHANNELS = 8, MOST_ROWS = 16, MOST_TAPS = 64 };
#define PIECE_FLOPS (1 << 17)

typedef struct plan {
    tutti_convolution shape;
    int64_t line;    /* taps of a window's row, columns times channels, in whole registers */
    int64_t rows;    /* of dx in a piece */
    int64_t pieces;  /* of an image */
    int64_t weights; /* floats: panels [rows of the window][filters][registers of a tile] */
    int threads;
} plan;

static bool conv2d_backward_input_scatter_make(const tutti_kernel_query *query, plan *ret)
{
    *ret = (plan){.threads = query->threads};
    if (!tutti__conv_query(query, -1, 0, 1, &ret->shape))
        return false;
    const tutti_convolution *c = &ret->shape;
    const tutti_windows *w = &c->windows;
    int64_t taps = w->size[1] * c->cin;
    ret->line = (taps + VEC_LANES - 1) / VEC_LANES * VEC_LANES;
    ret->weights = w->size[0] * c->cout * ret->line;
    ret->rows = PIECE_FLOPS / (2 * w->out[1] * ret->weights + 1) + 1;
    ret->pieces = (w->in[0] + ret->rows - 1) / ret->rows;
    return w->stride[0] == 1 && w->stride[1] == 1 && w->dilation[0] == 1 && w->dilation[1] == 1 &&
           w->size[0] <= MOST_ROWS && w->size[1] > 1 && c->cin <= MOST_CHANNELS &&
           taps <= MOST_TAPS;
}

static int conv2d_backward_input_scatter_score(const tutti_kernel_query *query)
{
    plan p;
    return conv2d_backward_input_scatter_make(query, &p) ? 120 : 0;
}

/* Room for one row, and to read a register of it at any channel. */
static size_t slot_bytes(const plan *p)
{
    return tutti__slot_bytes((size_t)(p->shape.windows.out[1] * p->line + VEC_LANES) *
                             sizeof(float));
}

static int64_t before_slots(const plan *p)
{
    return (p->weights + 15) / 16 * 16;
}

static size_t conv2d_backward_input_scatter_workspace(const tutti_kernel_query *query)
{
    plan p;
    if (!conv2d_backward_input_scatter_make(query, &p))
        return 0;
    return (size_t)before_slots(&p) * sizeof(float) +
           slot_bytes(&p) * (size_t)tutti__slot_count(p.threads);
}

static tutti_status conv2d_backward_input_scatter_prepare(const tutti_kernel_query *query,
                                                          void **ret_plan)
{
    plan *p = malloc(sizeof *p);
    if (p == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of '%s'", query->node.name);
    conv2d_backward_input_scatter_make(query, p);
    *ret_plan = p;
    return TUTTI_OK;
}

typedef struct work {
    const plan *plan;
    const float *kernel, *grad;
    float *weights, *dx;
    tutti_slots slots;
} work;

/* Registers of the panel that begins at one. */
static int64_t panel_vectors(const plan *p, int64_t first)
{
    int64_t left = p->line / VEC_LANES - first;
    return left > VECTORS ? VECTORS : left;
}

/* Piece: a row of the window, [columns and channels][filters] to [filters][registers] of each
 * panel. */
static void pack_piece(void *context, int64_t row)
{
    const work *w = context;
    const plan *p = w->plan;
    int64_t filters = p->shape.cout, taps = p->shape.windows.size[1] * p->shape.cin;
    const float *from = w->kernel + row * taps * filters;
    for (int64_t first = 0; first < p->line; first += VECTORS * VEC_LANES) {
        int64_t width = panel_vectors(p, first / VEC_LANES) * VEC_LANES;
        float *to = w->weights + (p->shape.windows.size[0] * first + row * width) * filters;
        for (int64_t k = 0; k < filters; k++, to += width)
            for (int64_t t = 0; t < width; t++)
                to[t] = first + t < taps ? from[(first + t) * filters + k] : 0;
    }
}

/* Rows of the window that meet gradients: of each its gradients and weights. */
typedef struct meeting {
    int64_t count, filters;
    const float *grad[MOST_ROWS], *weights[MOST_ROWS];
    int64_t line;  /* floats from one pixel's sums to the next one's */
    float *spread; /* at the panel */
} meeting;

#define SPREAD_LINE(weights)                                                                       \
    vec line[VECTORS];                                                                             \
    VEC_UNROLL for (int v = 0; v < vectors; v++) line[v] = vec_load((weights) + v * VEC_LANES)

#if VEC_NEON
/* The multiply-add takes one lane of a register as its scalar. */
#define SPREAD_LANE(lane)                                                                          \
    do {                                                                                           \
        SPREAD_LINE(weights + (lane)*vectors * VEC_LANES);                                         \
        VEC_UNROLL for (int p = 0; p < pixels; p++) VEC_UNROLL for (int v = 0; v < vectors; v++)   \
            sum[p][v] = vfmaq_laneq_f32(sum[p][v], line[v], four[p], lane);                        \
    } while (0)
#endif

/* spread[pixels, registers], from the pixel `at`. */
VEC_INLINE void spread_pixels(int pixels, int vectors, const meeting *m, int64_t at)
{
    vec sum[PIXELS][VECTORS];
    VEC_UNROLL for (int p = 0; p < pixels; p++) VEC_UNROLL for (int v = 0; v < vectors; v++)
        sum[p][v] = vec_splat(0);
    for (int64_t i = 0; i < m->count; i++) {
        const float *grad = m->grad[i] + at * m->filters, *weights = m->weights[i];
        int64_t k = 0;
#if VEC_NEON
        for (; k + 4 <= m->filters; k += 4, weights += 4 * vectors * VEC_LANES) {
            vec four[PIXELS];
            VEC_UNROLL for (int p = 0; p < pixels; p++) four[p] =
                vec_load(grad + p * m->filters + k);
            SPREAD_LANE(0);
            SPREAD_LANE(1);
            SPREAD_LANE(2);
            SPREAD_LANE(3);
        }
#endif
        for (; k < m->filters; k++, weights += vectors * VEC_LANES) {
            SPREAD_LINE(weights);
            VEC_UNROLL for (int p = 0; p < pixels; p++)
            {
                vec scalar = vec_splat(grad[p * m->filters + k]);
                VEC_UNROLL for (int v = 0; v < vectors; v++) sum[p][v] =
                    vec_fma(line[v], scalar, sum[p][v]);
            }
        }
    }
    float *to = m->spread + at * m->line;
    VEC_UNROLL for (int p = 0; p < pixels; p++) VEC_UNROLL for (int v = 0; v < vectors; v++)
        vec_store(to + p * m->line + v * VEC_LANES, sum[p][v]);
}

/* A row of pixels: as many at once as registers allow, then the rest at once. */
VEC_INLINE void spread_row(int vectors, const meeting *m, int64_t columns)
{
    int64_t at = 0;
    for (; at + PIXELS <= columns; at += PIXELS)
        spread_pixels(PIXELS, vectors, m, at);
    if (columns - at >= 4) {
        spread_pixels(4, vectors, m, at);
        at += 4;
    }
    switch (columns - at) {
    case 3:
        spread_pixels(3, vectors, m, at);
        break;
    case 2:
        spread_pixels(2, vectors, m, at);
        break;
    case 1:
        spread_pixels(1, vectors, m, at);
        break;
    default:
        break;
    }
}

typedef void row_function(const meeting *m, int64_t columns);
#define SPREAD_ROW(vectors)                                                                        \
    static void spread_row_##vectors(const meeting *m, int64_t columns)                            \
    {                                                                                              \
        spread_row(vectors, m, columns);                                                           \
    }
SPREAD_ROW(1)
SPREAD_ROW(2)
#if VEC_NEON
SPREAD_ROW(3)
SPREAD_ROW(4)
static row_function *const row_functions[] = {spread_row_1, spread_row_2, spread_row_3,
                                              spread_row_4};
#else
static row_function *const row_functions[] = {spread_row_1, spread_row_2};
#endif

/* One row of dx from the windows over it. */
static void gather_row(const plan *p, const float *spread, float *dx)
{
    const tutti_windows *w = &p->shape.windows;
    const int64_t channels = p->shape.cin, step = p->line - channels;
    for (int64_t column = 0; column < w->in[1]; column++, dx += channels) {
        int64_t last = column + w->before[1], first = 0, end = last + 1;
        first = last >= w->out[1] ? last - w->out[1] + 1 : 0;
        end = end > w->size[1] ? w->size[1] : end;
        const float *at = spread + last * p->line;
        for (int64_t c = 0; c < channels; c += VEC_LANES) {
            vec sum = vec_splat(0);
            for (int64_t j = first; j < end; j++)
                sum = sum + vec_load(at - j * step + c);
#if VEC_MASKED
            vec_store_part(dx + c, sum, channels - c < VEC_LANES ? channels - c : VEC_LANES);
#else
            for (int64_t i = 0; i < VEC_LANES && c + i < channels; i++)
                dx[c + i] = sum[i];
#endif
        }
    }
}

/* The windows over row `row` of dx of one image, panel after panel. */
static void spread_windows(const work *w, int64_t image, int64_t row, float *spread)
{
    const plan *p = w->plan;
    const tutti_windows *windows = &p->shape.windows;
    const int64_t filters = p->shape.cout;
    for (int64_t first = 0; first < p->line; first += VECTORS * VEC_LANES) {
        int64_t vectors = panel_vectors(p, first / VEC_LANES);
        const float *panel = w->weights + windows->size[0] * first * filters;
        meeting m = {.filters = filters, .line = p->line, .spread = spread + first};
        for (int64_t i = 0; i < windows->size[0]; i++) {
            int64_t from = row + windows->before[0] - i;
            if (from < 0 || from >= windows->out[0])
                continue;
            m.grad[m.count] =
                w->grad + (image * windows->out[0] + from) * windows->out[1] * filters;
            m.weights[m.count++] = panel + i * filters * vectors * VEC_LANES;
        }
        row_functions[vectors - 1](&m, windows->out[1]);
    }
}

/* Piece: some rows of dx of one image. */
static void spread_piece(void *context, int64_t piece)
{
    work *w = context;
    const plan *p = w->plan;
    const tutti_windows *windows = &p->shape.windows;
    int64_t image = piece / p->pieces, row = piece % p->pieces * p->rows, end = row + p->rows;
    float *spread = tutti__slot_take(&w->slots);
    for (; row < end && row < windows->in[0]; row++) {
        spread_windows(w, image, row, spread);
        gather_row(p, spread,
                   w->dx + (image * windows->in[0] + row) * windows->in[1] * p->shape.cin);
    }
    tutti__slot_give(&w->slots, spread);
}

static tutti_status conv2d_backward_input_scatter_run(const tutti_kernel_call *call)
{
    const plan *p = call->plan;
    work w = {.plan = p,
              .kernel = call->inputs[0].data,
              .grad = call->inputs[1].data,
              .weights = call->workspace,
              .dx = call->outputs[0].data};
    tutti__slots_start(&w.slots, w.weights + before_slots(p), slot_bytes(p), p->threads);
    tutti_parallel(call, p->shape.windows.size[0], pack_piece, &w);
    tutti_parallel(call, p->shape.batch * p->pieces, spread_piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_backward_input_scatter) = {
    .name = "conv2d_backward_input.spread",
    .version = 1,
    .op = "conv2d_backward_input",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT | TUTTI_KERNEL_TUNED,
    .score = conv2d_backward_input_scatter_score,
    .workspace = conv2d_backward_input_scatter_workspace,
    .prepare = conv2d_backward_input_scatter_prepare,
    .discard = free,
    .run = conv2d_backward_input_scatter_run,
};
