/* conv2d_backward_kernel.c: the gradient of the kernel: for every tap and filter a sum over all
 * pixels.
 *
 * A tile is TILE_PIXELS taps times TILE_FILTERS filters in registers, while the pixels of some
 * images go by. Images are cut into chunks by shape; each chunk has a partial sum of its own, and
 * these are added over one binary tree. */
#include <stdlib.h>

#include "device/cpu/conv/direct.h"
#include "program/isa.h"

#define MOST_CHUNKS 16
#define MOST_PARTIALS ((int64_t)4 << 20) /* floats */
#define TILE_TAPS TILE_PIXELS

typedef struct plan {
    tutti_direct_conv shape;
    tutti_conv_padding padding;
    int64_t padded, chunks, tiles; /* tiles of taps */
    int64_t *offsets;              /* of each tap in x */
} plan;

static bool make(const tutti_kernel_query *query, plan *ret)
{
    tutti_convolution c;
    if (!tutti__conv_query(query, 0, -1, 1, &c))
        return false;
    tutti__direct_forward(&c, &ret->shape, &ret->padding);
    ret->padded = (tutti__conv_padded_size(&ret->shape, &ret->padding) + 15) / 16 * 16;
    int64_t size = ret->shape.taps * ret->shape.filters;
    int64_t chunks = size > 0 ? MOST_PARTIALS / size : 1;
    chunks = chunks > MOST_CHUNKS ? MOST_CHUNKS : chunks;
    chunks = chunks > ret->shape.batch ? ret->shape.batch : chunks;
    ret->chunks = chunks < 1 ? 1 : chunks;
    ret->tiles = (ret->shape.taps + TILE_TAPS - 1) / TILE_TAPS;
    return true;
}

static int score(const tutti_kernel_query *query)
{
    plan p;
    return make(query, &p) ? 100 : 0;
}

static size_t workspace(const tutti_kernel_query *query)
{
    plan p;
    if (!make(query, &p))
        return 0;
    return (size_t)(p.padded + p.chunks * p.shape.taps * p.shape.filters) * sizeof(float);
}

static void discard(void *pointer)
{
    plan *p = pointer;
    if (p)
        free(p->offsets);
    free(p);
}

static tutti_status prepare(const tutti_kernel_query *query, void **ret_plan)
{
    plan *p = calloc(1, sizeof *p);
    if (p) {
        make(query, p);
        p->offsets = calloc((size_t)p->shape.taps + 1, sizeof *p->offsets);
    }
    if (!p || !p->offsets) {
        discard(p);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    }
    const tutti_direct_conv *c = &p->shape;
    for (int64_t t = 0; t < c->taps; t++) {
        int64_t i = t / (c->size[1] * c->channels), j = t / c->channels % c->size[1];
        p->offsets[t] =
            i * c->dilation[0] * c->row + j * c->dilation[1] * c->channels + t % c->channels;
    }
    *ret_plan = p;
    return TUTTI_OK;
}

typedef struct work {
    const plan *plan;
    const float *x, *grad;
    float *partial;
} work;

/* One row of pixels: sums of `taps` taps times the panel's filters. */
static inline __attribute__((always_inline)) void add_row(int taps, const tutti_direct_conv *c,
                                                          const float *const *x, const float *grad,
                                                          int64_t filters,
                                                          vec acc[TILE_TAPS][TILE_VECTORS])
{
    for (int64_t column = 0; column < c->out[1]; column++, grad += c->filters) {
        vec g[TILE_VECTORS];
        if (filters >= TILE_FILTERS) {
            for (int v = 0; v < TILE_VECTORS; v++)
                g[v] = vec_load(grad + v * VEC_LANES);
        } else {
            float all[TILE_FILTERS] = {0};
            memcpy(all, grad, (size_t)filters * sizeof *all);
            for (int v = 0; v < TILE_VECTORS; v++)
                g[v] = vec_load(all + v * VEC_LANES);
        }
        for (int t = 0; t < taps; t++) {
            vec s = vec_splat(x[t][column * c->pixel]);
            for (int v = 0; v < TILE_VECTORS; v++)
                acc[t][v] = vec_fma(s, g[v], acc[t][v]);
        }
    }
}

static inline __attribute__((always_inline)) void sum_tile(int taps, const work *w, int64_t chunk,
                                                           int64_t first_tap, int64_t panel)
{
    const plan *p = w->plan;
    const tutti_direct_conv *c = &p->shape;
    int64_t begin = c->batch * chunk / p->chunks, end = c->batch * (chunk + 1) / p->chunks;
    int64_t filters = c->filters - panel * TILE_FILTERS;
    vec acc[TILE_TAPS][TILE_VECTORS];
    for (int t = 0; t < taps; t++)
        for (int v = 0; v < TILE_VECTORS; v++)
            acc[t][v] = vec_splat(0);
    for (int64_t image = begin; image < end; image++)
        for (int64_t row = 0; row < c->out[0]; row++) {
            const float *x[TILE_TAPS],
                *base = w->x + image * c->image + row * c->stride[0] * c->row;
            for (int t = 0; t < taps; t++)
                x[t] = base + p->offsets[first_tap + t];
            add_row(taps, c, x,
                    w->grad + (image * c->out[0] + row) * c->out[1] * c->filters +
                        panel * TILE_FILTERS,
                    filters, acc);
        }
    float *to = w->partial + (chunk * c->taps + first_tap) * c->filters + panel * TILE_FILTERS;
    for (int t = 0; t < taps; t++)
        store_pixel(to + t * c->filters, acc[t], filters);
}

/* Piece: a chunk's tile. The last tile moves back; taps computed twice get the same bits. With
 * pieces side by side two threads may then write the same bytes, so the tiles of one chunk and
 * panel are one piece. */
static void sum_piece(void *context, int64_t piece)
{
    const work *w = context;
    const tutti_direct_conv *c = &w->plan->shape;
    int64_t panels = panel_count(c->filters), chunk = piece / panels, panel = piece % panels;
    for (int64_t tile = 0; tile < w->plan->tiles; tile++) {
        int64_t first = tile * TILE_TAPS;
        if (c->taps < TILE_TAPS) {
            for (int64_t t = 0; t < c->taps; t++)
                sum_tile(1, w, chunk, t, panel);
            return;
        }
        sum_tile(TILE_TAPS, w, chunk, first + TILE_TAPS > c->taps ? c->taps - TILE_TAPS : first,
                 panel);
    }
}

typedef struct reduction {
    float *partial, *to;
    int64_t size, chunks;
} reduction;

#define REDUCE_PIECE 4096

static void reduce_piece(void *context, int64_t piece)
{
    const reduction *r = context;
    int64_t first = piece * REDUCE_PIECE,
            end = first + REDUCE_PIECE < r->size ? first + REDUCE_PIECE : r->size;
    for (int64_t stride = 1; stride < r->chunks; stride *= 2)
        for (int64_t c = 0; c + stride < r->chunks; c += 2 * stride) {
            float *a = r->partial + c * r->size;
            const float *b = r->partial + (c + stride) * r->size;
            for (int64_t i = first; i < end; i++)
                a[i] += b[i];
        }
    memcpy(r->to + first, r->partial + first, (size_t)(end - first) * sizeof(float));
}

static tutti_status run(const tutti_call *call)
{
    const plan *p = call->plan;
    float *padded = call->workspace;
    work w = {.plan = p, .grad = call->inputs[1].data, .partial = padded + p->padded};
    w.x = tutti__conv_pad(call, &p->shape, &p->padding, call->inputs[0].data, padded);
    tutti_parallel(call, p->chunks * panel_count(p->shape.filters), sum_piece, &w);
    reduction r = {w.partial, call->outputs[0].data, p->shape.taps * p->shape.filters, p->chunks};
    tutti_parallel(call, (r.size + REDUCE_PIECE - 1) / REDUCE_PIECE, reduce_piece, &r);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_backward_kernel_direct) = {
    .name = "conv2d_backward_kernel.direct",
    .version = 1,
    .op = "conv2d_backward_kernel",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .score = score,
    .workspace = workspace,
    .prepare = prepare,
    .discard = discard,
    .run = run,
};
