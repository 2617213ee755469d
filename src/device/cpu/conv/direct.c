/* direct.c: direct convolution in tiles, see direct.h. */
#include "device/cpu/conv/direct.h"

#include <string.h>

#include "tensor/tensor.h"

#define PIECE_FLOPS (1 << 19)
enum { ENOUGH_PIECES = 16 }; /* fewer blocks than this are cut along filters too */

/* Floats before the panels of a phase. */
static int64_t phase_start(const direct_work *w, const tutti_conv_phase *phase)
{
    return phase->first_cell * w->walk->channels * panel_count(w->walk->filters) * PANEL;
}

/* Forward: kernel [cell][channels][filters]. Lines of PANEL filters are copied. */
static void pack_forward(const tutti_conv_windows *w, const float *from, int64_t first,
                         int64_t count, float *to)
{
    for (int64_t c = 0; c < w->channels; c++, to += PANEL) {
        memcpy(to, from + c * w->filters + first, (size_t)count * sizeof *to);
        memset(to + count, 0, (size_t)(PANEL - count) * sizeof *to);
    }
}

/* Backward: kernel [cell][filters][channels]. */
static void pack_backward(const tutti_conv_windows *w, const float *from, int64_t first,
                          int64_t count, float *to)
{
    for (int64_t f = 0; f < PANEL; f++)
        for (int64_t c = 0; c < w->channels; c++)
            to[c * PANEL + f] = f < count ? from[(first + f) * w->channels + c] : 0;
}

void direct_pack_piece(void *context, int64_t panel)
{
    const direct_work *w = context;
    const tutti_conv_windows *walk = w->walk;
    int64_t first = panel * PANEL, left = walk->filters - first,
            count = left < PANEL ? left : PANEL;
    for (int64_t p = 0; p < walk->phases; p++) {
        const tutti_conv_phase *phase = &walk->phase[p];
        float *to =
            w->panels + phase_start(w, phase) + panel * phase->cells * walk->channels * PANEL;
        for (int64_t i = 0; i < phase->cells; i++, to += walk->channels * PANEL) {
            const float *from = w->kernel + phase->cell[i] * walk->channels * walk->filters;
            (w->backward ? pack_backward : pack_forward)(walk, from, first, count, to);
        }
    }
}

void direct_pack_standing(void *context, int64_t panel)
{
    const direct_standing *w = context;
    int64_t channels = w->walk->channels, first = panel * PANEL, left = w->walk->filters - first,
            floats = w->walk->cells * channels * PANEL;
    const int64_t dims[4] = {w->size[0], w->size[1], channels, left < PANEL ? left : PANEL};
    const int64_t to[4] = {dims[1] * channels * PANEL, channels * PANEL, PANEL, 1};
    float *at = w->panels + panel * floats;
    if (left < PANEL)
        memset(at, 0, (size_t)floats * sizeof *at);
    tutti__copy_strided(4, dims, sizeof *at, at, to,
                        w->kernel + first * w->strides[3] * (int64_t)sizeof *at, w->strides);
}

/* One tap of the window: acc[p] += scalar of pixel p * a line of the panel. */
#define DIRECT_LINE(w, at)                                                                         \
    vec line[VECTORS];                                                                             \
    VEC_UNROLL for (int v = 0; v < vectors; v++) line[v] =                                         \
        vec_load((w) + (at)*PANEL + v * VEC_LANES)

#if defined(__aarch64__)
/* Four taps: the multiply-add takes one lane of a register as its scalar. */
#define DIRECT_LANE(lane)                                                                          \
    do {                                                                                           \
        DIRECT_LINE(w, lane);                                                                      \
        VEC_UNROLL for (int p = 0; p < PIXELS; p++) VEC_UNROLL for (int v = 0; v < vectors; v++)   \
            acc[p][v] = vfmaq_laneq_f32(acc[p][v], line[v], four[p], lane);                        \
    } while (0)
#endif

/* What becomes of the sums of PIXELS outputs and one panel. */
typedef struct panel_finish {
    const conv_finish *all;
    vec bias[VECTORS];
    const float *const *residual; /* of each pixel; NULL: none */
} panel_finish;

/* The window of PIXELS outputs, whose inputs are at x, times one panel, of which the first
 * `vectors` registers count, and `lanes` of the last of these; output p goes to y[p] + f. */
VEC_INLINE void walk_window(int vectors, bool plain, const tutti_conv_phase *phase,
                            const float *const *x, const float *w, const panel_finish *end,
                            float *const *y, int64_t f, int64_t lanes)
{
    vec acc[PIXELS][VECTORS];
    VEC_UNROLL for (int p = 0; p < PIXELS; p++) VEC_UNROLL for (int v = 0; v < vectors; v++)
        acc[p][v] = vec_splat(0);
    for (int64_t run = 0; run < phase->runs; run++) {
        const float *at[PIXELS];
        int64_t k = 0, length = phase->length;
        VEC_UNROLL for (int p = 0; p < PIXELS; p++) at[p] = x[p] + phase->offset[run];
#if defined(__aarch64__)
        for (; k + 4 <= length; k += 4, w += 4 * PANEL) {
            vec four[PIXELS];
            VEC_UNROLL for (int p = 0; p < PIXELS; p++) four[p] = vec_load(at[p] + k);
            DIRECT_LANE(0);
            DIRECT_LANE(1);
            DIRECT_LANE(2);
            DIRECT_LANE(3);
        }
#endif
        for (; k < length; k++, w += PANEL) {
            DIRECT_LINE(w, 0);
            VEC_UNROLL for (int p = 0; p < PIXELS; p++)
            {
                vec scalar = vec_splat(at[p][k]);
                VEC_UNROLL for (int v = 0; v < vectors; v++) acc[p][v] =
                    vec_fma(line[v], scalar, acc[p][v]);
            }
        }
    }
    if (plain) {
        const float low = end->all->low[0];
        VEC_UNROLL for (int p = 0; p < PIXELS; p++) VEC_UNROLL for (int v = 0; v < vectors; v++)
            vec_store_lanes(y[p] + f + v * VEC_LANES, vec_not_below(acc[p][v] + end->bias[v], low),
                            v + 1 < vectors ? VEC_LANES : lanes);
        return;
    }
    VEC_UNROLL for (int p = 0; p < PIXELS; p++) VEC_UNROLL for (int v = 0; v < vectors; v++)
    {
        int64_t at = f + v * VEC_LANES, count = v + 1 < vectors ? VEC_LANES : lanes;
        const float *residual = end->residual == NULL ? NULL : end->residual[p] + at;
        vec_store_lanes(y[p] + at,
                        conv_finished(end->all, acc[p][v] + end->bias[v], residual, count), count);
    }
}

typedef void walk_function(const tutti_conv_phase *phase, const float *const *x, const float *w,
                           const panel_finish *end, float *const *y, int64_t f, int64_t left);

/* One panel whose registers are filled, or of which one is, or with `left` filters that fill none;
 * plain: bias and a lower bound are all there is to do. */
#define WALK(name, vectors, plain, lanes)                                                          \
    static void name(const tutti_conv_phase *phase, const float *const *x, const float *w,         \
                     const panel_finish *end, float *const *y, int64_t f, int64_t left)            \
    {                                                                                              \
        (void)left;                                                                                \
        walk_window(vectors, plain, phase, x, w, end, y, f, lanes);                                \
    }
WALK(walk_wide, VECTORS, true, VEC_LANES)
WALK(walk_narrow, 1, true, VEC_LANES)
WALK(walk_wide_full, VECTORS, false, VEC_LANES)
WALK(walk_narrow_full, 1, false, VEC_LANES)
#if VEC_MASKED
WALK(walk_wide_edge, VECTORS, true, left - (VECTORS - 1) * VEC_LANES)
WALK(walk_narrow_edge, 1, true, left)
WALK(walk_wide_edge_full, VECTORS, false, left - (VECTORS - 1) * VEC_LANES)
WALK(walk_narrow_edge_full, 1, false, left)

static walk_function *walk_edge(int64_t left, bool plain)
{
    if (left > VEC_LANES)
        return plain ? walk_wide_edge : walk_wide_edge_full;
    return plain ? walk_narrow_edge : walk_narrow_edge_full;
}
#else /* through memory beside */
static void walk_beside(const tutti_conv_phase *phase, const float *const *x, const float *w,
                        const panel_finish *end, float *const *y, int64_t f, int64_t left)
{
    float whole[PIXELS][PANEL], added[PIXELS][PANEL] = {{0}}, *to[PIXELS];
    const float *residual[PIXELS];
    panel_finish inner = *end;
    for (int p = 0; p < PIXELS; p++) {
        to[p] = whole[p];
        residual[p] = added[p];
        for (int64_t i = 0; i < left && end->residual != NULL; i++)
            added[p][i] = end->residual[p][f + i];
    }
    inner.residual = end->residual == NULL ? NULL : residual;
    (left > VEC_LANES ? walk_wide_full : walk_narrow_full)(phase, x, w, &inner, to, 0, left);
    VEC_UNROLL for (int p = 0; p < PIXELS; p++) for (int64_t i = 0; i < left; i++) y[p][f + i] =
        whole[p][i];
}

static walk_function *walk_edge(int64_t left, bool plain)
{
    (void)left;
    (void)plain;
    return walk_beside;
}
#endif
#undef WALK

static walk_function *walk_of(int64_t left, bool plain)
{
    if (left == PANEL)
        return plain ? walk_wide : walk_wide_full;
    if (left == VEC_LANES)
        return plain ? walk_narrow : walk_narrow_full;
    return walk_edge(left, plain);
}

static panel_finish finish_of(const conv_finish *all, int64_t f, int64_t left)
{
    panel_finish end = {.all = all};
    float some[PANEL] = {0};
    if (all->bias != NULL)
        memcpy(some, all->bias + f, (size_t)left * sizeof *some);
    VEC_UNROLL for (int v = 0; v < VECTORS; v++) end.bias[v] = vec_load(some + v * VEC_LANES);
    return end;
}

/* `count` outputs times panels first..end: `x` their inputs and `y` their places, both filled up to
 * a multiple of PIXELS with any of them; `residual` what is added to each, or NULL. */
static void convolve_panels(const direct_work *w, const float *const *x, float *const *y,
                            const float *const *residual, int64_t count, int64_t first, int64_t end)
{
    const tutti_conv_phase *phase = w->phase;
    int64_t filters = w->walk->filters, size = phase->cells * w->walk->channels * PANEL;
    bool plain = conv_finish_is_plain(&w->finish);
    const float *panel =
        (w->packed != NULL ? w->packed : w->panels) + phase_start(w, phase) + first * size;
    for (int64_t f = first * PANEL; f < end * PANEL && f < filters; f += PANEL, panel += size) {
        int64_t left = filters - f < PANEL ? filters - f : PANEL;
        panel_finish last = finish_of(&w->finish, f, left);
        walk_function *walk = walk_of(left, plain);
        for (int64_t p = 0; p < count; p += PIXELS) {
            last.residual = residual == NULL ? NULL : residual + p;
            walk(phase, x + p, panel, &last, y + p, f, left);
        }
    }
}

void direct_convolve_block(const direct_work *w, const float *const *x, float *const *y,
                           int64_t count)
{
    convolve_panels(w, x, y, NULL, count, 0, panel_count(w->walk->filters));
}

/* Where outputs first .. first + count of a phase, counted through all images, are made from and
 * go to. */
static void find_outputs(const direct_work *w, int64_t first, int64_t count, const float **x,
                         float **y)
{
    const tutti_conv_windows *walk = w->walk;
    const tutti_conv_phase *phase = w->phase;
    int64_t column = first % phase->count[1], rows = first / phase->count[1],
            row = rows % phase->count[0], image = rows / phase->count[0];
    for (int64_t i = 0; i < count; i++) {
        x[i] = w->x + image * walk->image + phase->base + row * phase->row + column * phase->column;
        y[i] =
            w->y + ((image * walk->out[0] + phase->first[0] + row * phase->step[0]) * walk->out[1] +
                    phase->first[1] + column * phase->step[1]) *
                       walk->filters;
        if (++column == phase->count[1]) {
            column = 0;
            row = row + 1 == phase->count[0] ? 0 : row + 1;
            image += row == 0;
        }
    }
}

static void convolve_outputs(const direct_work *w, int64_t first, int64_t count, int64_t panel,
                             int64_t last)
{
    const float *x[BLOCK], *residual[BLOCK];
    float *y[BLOCK];
    int64_t filters = w->walk->filters;
    if (count < 1)
        return;
    find_outputs(w, first, count, x, y);
    for (int64_t i = count; i % PIXELS != 0; i++) {
        x[i] = x[0];
        y[i] = y[0];
    }
    for (int64_t i = 0; w->finish.residual != NULL && i < BLOCK && i < count + PIXELS; i++)
        residual[i] = w->finish.residual + (i < count ? y[i] - w->y : y[0] - w->y);
    convolve_panels(w, x, y, w->finish.residual == NULL ? NULL : residual, count, panel, last);
    int64_t from = panel * PANEL, to = last * PANEL < filters ? last * PANEL : filters;
    for (int64_t i = 0; w->finish.loop != NULL && i < count; i++)
        conv_activate(&w->finish, y[i] + from, to - from);
}

/* Piece: a few blocks of outputs, a few panels. Pieces that share panels follow each other. */
static void convolve_piece(void *context, int64_t piece)
{
    const direct_work *w = context;
    int64_t all = w->walk->batch * w->phase->count[0] * w->phase->count[1],
            each = w->blocks * BLOCK, across = (all + each - 1) / each,
            first = piece % across * each, end = first + each < all ? first + each : all;
    int64_t panel = piece / across * w->group, panels = panel_count(w->walk->filters),
            last = panel + w->group < panels ? panel + w->group : panels;
    for (; first < end; first += BLOCK)
        convolve_outputs(w, first, end - first < BLOCK ? end - first : BLOCK, panel, last);
}

/* How the outputs of a phase are cut, by shape: blocks until a piece is large enough; where that
 * gives few pieces, along filters. */
static int64_t cut_outputs(direct_work *w)
{
    const tutti_conv_windows *walk = w->walk;
    int64_t outputs = walk->batch * w->phase->count[0] * w->phase->count[1],
            panels = panel_count(walk->filters), depth = w->phase->cells * walk->channels + 8;
    w->blocks = PIECE_FLOPS / (2 * BLOCK * depth * walk->filters) + 1;
    int64_t across = (outputs + w->blocks * BLOCK - 1) / (w->blocks * BLOCK);
    int64_t most = 2 * (outputs < BLOCK ? outputs : BLOCK) * depth * walk->filters / PIECE_FLOPS,
            groups = (ENOUGH_PIECES + across - 1) / across;
    groups = groups > most ? most : groups;
    w->group = groups < 1 ? panels : (panels + groups - 1) / groups;
    w->groups = (panels + w->group - 1) / w->group;
    return across * w->groups;
}

void direct_run(const tutti_kernel_call *call, const tutti_conv_windows *walk, direct_work *w)
{
    float *padded = call->workspace;
    w->walk = walk;
    w->panels = walk->padded > 0 ? padded + walk->padded : padded; /* there may be no workspace */
    w->x = tutti__conv_pad(call, walk, w->x, padded);
    if (w->packed == NULL)
        tutti_parallel(call, panel_count(walk->filters), direct_pack_piece, w);
    for (int64_t p = 0; p < walk->phases; p++) {
        w->phase = &walk->phase[p];
        tutti_parallel(call, cut_outputs(w), convolve_piece, w);
    }
}
