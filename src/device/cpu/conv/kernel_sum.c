/* kernel_sum.c: the gradient of the kernel, see kernel_sum.h. */
#include "device/cpu/conv/kernel_sum.h"

#include <string.h>

#define REDUCE_PIECE 4096

tutti_status kernel_sum_prepare(const tutti_convolution *c, kernel_sum *p)
{
    TUTTI_TRY(tutti__conv_windows(c, false, &p->walk));
    p->offsets = calloc((size_t)p->taps, sizeof *p->offsets);
    if (p->offsets == NULL) {
        free(p->walk);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of a convolution");
    }
    const tutti_conv_phase *phase = p->walk->phase;
    for (int64_t t = 0; t < p->taps; t++)
        p->offsets[t] = phase->offset[t / phase->length] + t % phase->length;
    return TUTTI_OK;
}

/* Rows of pixels that go by. */
typedef struct band {
    const float *x, *grad, *end; /* end: of the memory that grad points into */
    int64_t rows;
    float *sums; /* [taps][width] of the chunk, at the panel */
    bool add;
} band;

/* sum[t] += x[t] grad */
VEC_INLINE void add_pixel(int taps, int vectors, const float *const *x, int64_t at,
                          const float *grad, vec sum[ROWS + 1][VECTORS])
{
    vec g[VECTORS];
    VEC_UNROLL for (int v = 0; v < vectors; v++) g[v] = vec_load(grad + v * VEC_LANES);
    VEC_UNROLL for (int t = 0; t < taps; t++)
    {
        vec scalar = vec_splat(x[t][at]);
        VEC_UNROLL for (int v = 0; v < vectors; v++) sum[t][v] = vec_fma(scalar, g[v], sum[t][v]);
    }
}

/* sums[taps, PANEL] = or += over the pixels of the band x[pixel + tap] grad[pixel]; of the panel
 * the first `vectors` registers. */
VEC_INLINE void sum_tile(int taps, int vectors, const kernel_sum *p, const band *b, int64_t first)
{
    const int64_t panel = (int64_t)vectors * VEC_LANES;
    const tutti_conv_phase *phase = p->walk->phase;
    vec sum[ROWS + 1][VECTORS];
    float *to = b->sums + first * p->width;
    VEC_UNROLL for (int t = 0; t < taps; t++) VEC_UNROLL for (int v = 0; v < vectors; v++)
        sum[t][v] = b->add ? vec_load(to + t * p->width + v * VEC_LANES) : vec_splat(0);
    const float *grad = b->grad;
    for (int64_t row = 0; row < b->rows; row++) {
        const float *x[ROWS + 1];
        VEC_UNROLL for (int t = 0; t < taps; t++) x[t] =
            b->x + row * phase->row + p->offsets[first + t];
        /* Lanes past the filters are sums that nobody reads, but past the end nothing is read. */
        int64_t column = 0, at = 0, whole = (b->end - panel - grad) / p->walk->filters + 1;
        whole = grad + panel > b->end ? 0 : whole < phase->count[1] ? whole : phase->count[1];
        for (; column < whole; column++, at += phase->column, grad += p->walk->filters)
            add_pixel(taps, vectors, x, at, grad, sum);
        for (; column < phase->count[1]; column++, at += phase->column, grad += p->walk->filters) {
            float some[PANEL] = {0};
            memcpy(some, grad, (size_t)(b->end - grad) * sizeof *some);
            add_pixel(taps, vectors, x, at, some, sum);
        }
    }
    VEC_UNROLL for (int t = 0; t < taps; t++) VEC_UNROLL for (int v = 0; v < vectors; v++)
        vec_store(to + t * p->width + v * VEC_LANES, sum[t][v]);
}

typedef void sum_function(const kernel_sum *p, const band *b, int64_t first);
#define SUM_TILE(name, taps, vectors)                                                              \
    static void name(const kernel_sum *p, const band *b, int64_t first)                            \
    {                                                                                              \
        sum_tile(taps, vectors, p, b, first);                                                      \
    }
SUM_TILE(sum_rows, ROWS, VECTORS)
SUM_TILE(sum_rows_more, ROWS + 1, VECTORS)
SUM_TILE(sum_rows_narrow, ROWS, 1)
SUM_TILE(sum_rows_more_narrow, ROWS + 1, 1)
SUM_TILE(sum_one, 1, VECTORS)

/* All taps of a band, for the first of so many filters that fill a panel: tiles of ROWS + 1 as many
 * as make the rest a multiple of ROWS; taps that this cannot cut are taken one by one. */
static void sum_band(const kernel_sum *p, const band *b, int64_t filters)
{
    bool narrow = filters <= VEC_LANES;
    sum_function *rows = narrow ? sum_rows_narrow : sum_rows;
    sum_function *more = narrow ? sum_rows_more_narrow : sum_rows_more;
    int64_t longer = p->taps % ROWS, tap = 0;
    if (longer * (ROWS + 1) > p->taps)
        longer = p->taps / (ROWS + 1);
    for (; longer > 0; longer--, tap += ROWS + 1)
        more(p, b, tap);
    for (; tap + ROWS <= p->taps; tap += ROWS)
        rows(p, b, tap);
    for (; tap < p->taps; tap++)
        sum_one(p, b, tap);
}

void kernel_sum_block(const kernel_sum *p, block_place at, const float *x, const float *grad,
                      const float *end, float *sums, bool add)
{
    const tutti_conv_windows *walk = p->walk;
    for (int64_t f = 0; f < walk->filters; f += PANEL) {
        band b = {.x = x + at.image * walk->image + at.row * walk->phase->row,
                  .grad = grad + f,
                  .end = end,
                  .rows = at.rows,
                  .sums = sums + f,
                  .add = add};
        sum_band(p, &b, walk->filters - f);
    }
}

typedef struct reduction {
    const kernel_sum *sum;
    float *partial, *to, *more; /* more: where the lines after the taps go; NULL: nowhere */
    int64_t lines;              /* of one piece */
} reduction;

static void reduce_piece(void *context, int64_t piece)
{
    const reduction *r = context;
    const kernel_sum *p = r->sum;
    int64_t line = piece * r->lines, last = line + r->lines < p->lines ? line + r->lines : p->lines;
    int64_t first = line * p->width, end = last * p->width, size = p->lines * p->width;
    for (int64_t stride = 1; stride < p->chunks; stride *= 2)
        for (int64_t c = 0; c + stride < p->chunks; c += 2 * stride) {
            float *a = r->partial + c * size;
            const float *b = r->partial + (c + stride) * size;
            for (int64_t i = first; i < end; i++)
                a[i] += b[i];
        }
    int64_t filters = p->walk->filters;
    for (; line < last; line++) {
        float *to = line < p->taps ? r->to + line * filters : r->more;
        if (to != NULL)
            memcpy(to, r->partial + line * p->width, (size_t)filters * sizeof(float));
    }
}

void kernel_sum_finish(const tutti_kernel_call *call, const kernel_sum *p, float *partial,
                       float *to, float *more)
{
    reduction r = {p, partial, to, more, REDUCE_PIECE / p->width + 1};
    tutti_parallel(call, (p->lines + r.lines - 1) / r.lines, reduce_piece, &r);
}
