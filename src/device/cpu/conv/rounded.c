/* rounded.c: convolutions by products of bf16, see rounded.h. */
#include "device/cpu/conv/rounded.h"

#include <stdlib.h>
#include <string.h>

#include "device/cpu/slots.h"

enum {
    LAID_BYTES = 1 << 17, /* of the planes of one piece */
    STRIP_FLOATS = 1 << 13,
    ENOUGH_PIECES = 16,
    FEWEST_ROWS = 4,
};

static int64_t floor_divide(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -divide_up(-a, b);
}

bool tutti__rounded_tap(const tutti_windows *w, int axis, bool turned, int64_t k, int64_t remainder,
                        int64_t *ret_distance, int64_t *ret_remainder)
{
    int64_t stride = w->stride[axis], from = k * w->dilation[axis] - w->before[axis];
    if (turned)
        from = remainder - from;
    *ret_distance = floor_divide(from, stride);
    *ret_remainder = from - *ret_distance * stride;
    return !turned || *ret_remainder == 0;
}

/* The range of distances along one axis. */
static void measure_taps(tutti_rounded_plan *p, int axis)
{
    int64_t distance, rest, phases = p->turned ? p->windows.stride[axis] : 1;
    p->lowest[axis] = INT64_MAX;
    p->highest[axis] = INT64_MIN;
    for (int64_t phase = 0; phase < phases; phase++)
        for (int64_t k = 0; k < p->windows.size[axis]; k++)
            if (tutti__rounded_tap(&p->windows, axis, p->turned, k, phase, &distance, &rest)) {
                p->lowest[axis] = least(p->lowest[axis], distance);
                p->highest[axis] = most(p->highest[axis], distance);
            }
}

/* Outputs along one axis that have the same remainder: the most of any phase. */
static int64_t outputs_of(const tutti_rounded_plan *p, int axis)
{
    return divide_up(p->out[axis], p->turned ? p->windows.stride[axis] : 1);
}

static size_t laid_bytes(const tutti_rounded_plan *p)
{
    return tutti__slot_bytes((size_t)(p->planes * p->positions * p->tile->pad) * sizeof(uint16_t));
}

/* Positions of a plane for `high` rows of outputs: the rows they read, the zeros that end the last
 * one, and what a tile reads beyond them. */
static int64_t positions_of(const tutti_rounded_plan *p, int64_t high)
{
    return (high + p->highest[0] - p->lowest[0] + 1) * p->pitch + p->left + p->tile->rows;
}

static void rounded_cut(tutti_rounded_plan *p)
{
    int64_t rows = outputs_of(p, 0), columns = outputs_of(p, 1);
    int64_t inside = divide_up(p->in[1], p->apart[1]);
    p->left = most(0, -p->lowest[1]);
    int64_t right = most(0, columns + p->highest[1] - inside);
    p->pitch = most(columns, inside + most(p->left, right));
    int64_t line = p->planes * p->tile->pad * p->pitch * (int64_t)sizeof(uint16_t);
    int64_t high = LAID_BYTES / line - (p->highest[0] - p->lowest[0] + 1);
    int64_t pieces = divide_up(ENOUGH_PIECES, p->batch);
    high = least(high, divide_up(rows, pieces));
    high = least(most(high, FEWEST_ROWS), rows);
    p->blocks = divide_up(rows, high);
    p->high = divide_up(rows, p->blocks);
    p->positions = positions_of(p, p->high);
    p->strip = least(p->high, most(1, STRIP_FLOATS / (p->width * p->pitch)));
}

bool tutti__rounded_fits(const tutti_convolution *c)
{
    enum { FEW = 8, MOST_STRIDE = 64, FARTHEST = 1 << 16 };
    for (int a = 0; a < 2; a++)
        if (c->windows.stride[a] > MOST_STRIDE ||
            (c->windows.size[a] - 1) * c->windows.dilation[a] > FARTHEST)
            return false;
    return c->groups == 1 && c->cin >= FEW && c->cout >= FEW;
}

bool tutti__rounded_sizes(const tutti_convolution *c, bool turned, int threads,
                          tutti_rounded_plan *ret)
{
    const tutti_gemm_tile *tile = tutti__gemm_bf16_tile();
    if (!tutti__rounded_fits(c))
        return false;
    *ret = (tutti_rounded_plan){.tile = tile,
                                .windows = c->windows,
                                .turned = turned,
                                .batch = c->batch,
                                .channels = turned ? c->cout : c->cin,
                                .filters = turned ? c->cin : c->cout,
                                .threads = threads};
    ret->phases = turned ? c->windows.stride[0] * c->windows.stride[1] : 1;
    ret->depth = divide_up(ret->channels, tile->pad) * tile->pad;
    ret->width = tutti__gemm_panels(tile, ret->filters).padded;
    for (int a = 0; a < 2; a++) {
        ret->in[a] = turned ? c->windows.out[a] : c->windows.in[a];
        ret->out[a] = turned ? c->windows.in[a] : c->windows.out[a];
        ret->apart[a] = turned ? 1 : c->windows.stride[a];
        measure_taps(ret, a);
    }
    ret->planes = ret->apart[0] * ret->apart[1] * ret->depth / tile->pad;
    rounded_cut(ret);
    return laid_bytes(ret) < INT32_MAX;
}

static int64_t kernel_cells(const tutti_rounded_plan *p)
{
    return p->windows.size[0] * p->windows.size[1];
}

static size_t panel_bytes(const tutti_rounded_plan *p)
{
    return tutti__slot_bytes((size_t)(kernel_cells(p) * p->depth * p->width) * sizeof(uint16_t));
}

/* Planes, then sums of a strip, whose rows are filled up to whole tiles. */
static size_t slot_bytes(const tutti_rounded_plan *p)
{
    int64_t rows = p->strip * p->pitch + p->tile->rows;
    return laid_bytes(p) + tutti__slot_bytes((size_t)(rows * p->width) * sizeof(float));
}

size_t tutti__rounded_workspace(const tutti_rounded_plan *p)
{
    return panel_bytes(p) + slot_bytes(p) * (size_t)tutti__slot_count(p->threads);
}

/* Adds tap (i, j) at a distance, from the planes of a remainder. */
static void add_tap(const tutti_rounded_plan *p, tutti_rounded_phase *phase, int64_t cell,
                    const int64_t distance[2], const int64_t rest[2], int64_t *cells, int32_t *at)
{
    int64_t groups = p->depth / p->tile->pad;
    int64_t plane = (rest[0] * p->apart[1] + rest[1]) * groups;
    int64_t place = (distance[0] - p->lowest[0]) * p->pitch + p->left + distance[1];
    cells[phase->taps] = cell;
    for (int64_t group = 0; group < groups; group++)
        at[phase->taps * groups + group] =
            (int32_t)(((plane + group) * p->positions + place) * p->tile->pad);
    phase->taps++;
}

static void fill_phase(const tutti_rounded_plan *p, const int64_t remainder[2],
                       tutti_rounded_phase *phase, int64_t *cells, int32_t *at)
{
    const tutti_windows *w = &p->windows;
    for (int a = 0; a < 2; a++) {
        phase->step[a] = p->turned ? w->stride[a] : 1;
        phase->first[a] = remainder[a];
        phase->count[a] = most(0, divide_up(p->out[a] - remainder[a], phase->step[a]));
    }
    phase->cell = cells;
    phase->at = at;
    for (int64_t i = 0; i < w->size[0]; i++)
        for (int64_t j = 0; j < w->size[1]; j++) {
            int64_t distance[2], rest[2];
            if (tutti__rounded_tap(w, 0, p->turned, i, remainder[0], &distance[0], &rest[0]) &&
                tutti__rounded_tap(w, 1, p->turned, j, remainder[1], &distance[1], &rest[1]))
                add_tap(p, phase, i * w->size[1] + j, distance, rest, cells, at);
        }
}

/* Each cell of the kernel is a tap of one phase. */
tutti_status tutti__rounded_plan(const tutti_rounded_plan *sizes, tutti_rounded_plan **ret)
{
    int64_t groups = sizes->depth / sizes->tile->pad, taps = kernel_cells(sizes), tap = 0;
    size_t phases = (size_t)sizes->phases * sizeof(tutti_rounded_phase);
    tutti_rounded_plan *p = calloc(1, sizeof *p + phases + (size_t)taps * sizeof(int64_t) +
                                          (size_t)(taps * groups) * sizeof(int32_t));
    if (p == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of a convolution");
    *p = *sizes;
    p->phase = (tutti_rounded_phase *)(p + 1);
    int64_t *cells = (int64_t *)(void *)(p->phase + p->phases);
    int32_t *at = (int32_t *)(void *)(cells + taps);
    int64_t across = p->turned ? p->windows.stride[1] : 1;
    for (int64_t i = 0; i < p->phases; i++) {
        p->phase[i].first_tap = tap;
        fill_phase(p, (int64_t[]){i / across, i % across}, &p->phase[i], cells + tap,
                   at + tap * groups);
        tap += p->phase[i].taps;
    }
    *ret = p;
    return TUTTI_OK;
}

typedef struct work {
    const tutti_rounded_plan *plan;
    tutti_rounded_layer layer;
    uint16_t *panels; /* [phase][panel][taps][depth][columns of the panel] */
    tutti_slots slots;
} work;

/* Columns from `start` on: how many the panel there has. */
static int64_t panel_width(const tutti_rounded_plan *p, int64_t start)
{
    int64_t wide = tutti__gemm_panels(p->tile, p->filters).wides * p->tile->wide;
    return start < wide ? p->tile->wide : p->tile->narrow;
}

/* Piece: one tap of a phase, in all panels. */
static void pack_tap(void *context, int64_t tap)
{
    const work *w = context;
    const tutti_rounded_plan *p = w->plan;
    const tutti_rounded_phase *phase = p->phase;
    while (tap >= phase->first_tap + phase->taps)
        phase++;
    int64_t index = tap - phase->first_tap, width;
    uint16_t *panels = w->panels + phase->first_tap * p->depth * p->width;
    for (int64_t start = 0; start < p->width; start += width) {
        width = panel_width(p, start);
        int64_t step = p->turned ? 1 : p->filters, stride = p->turned ? p->channels : 1;
        tutti_gemm_lines lines = {.width = width,
                                  .count = least(width, p->filters - start),
                                  .k = p->channels,
                                  .step = step,
                                  .stride = stride,
                                  .columns = true};
        lines.source =
            w->layer.kernel + phase->cell[index] * p->channels * p->filters + start * stride;
        p->tile->pack_lines(&lines, panels + (start * phase->taps + index * width) * p->depth);
    }
}

/* Zeros at `count` positions of every plane of one remainder. */
static void lay_zeros(const tutti_rounded_plan *p, uint16_t *planes, int64_t position,
                      int64_t count)
{
    int64_t pad = p->tile->pad;
    for (int64_t group = 0; group < p->depth / pad; group++) {
        uint16_t *to = planes + (group * p->positions + position) * pad;
        for (int64_t i = 0; i < count * pad; i++) /* a few */
            to[i] = 0;
    }
}

/* Row u of the image's rows of one remainder, at `position` of its planes. */
static void lay_row(const tutti_rounded_plan *p, const float *image, int64_t u,
                    const int64_t rest[2], uint16_t *planes, int64_t position)
{
    int64_t row = u * p->apart[0] + rest[0], stride = p->apart[1] * p->channels;
    int64_t count = divide_up(p->in[1] - rest[1], p->apart[1]);
    if (row < 0 || row >= p->in[0] || count <= 0) {
        lay_zeros(p, planes, position, p->pitch);
        return;
    }
    lay_zeros(p, planes, position, p->left);
    lay_zeros(p, planes, position + p->left + count, p->pitch - p->left - count);
    p->tile->pack_pixels(count, p->channels, image + (row * p->in[1] + rest[1]) * p->channels,
                         stride, p->positions, planes + (position + p->left) * p->tile->pad);
}

/* Whether some tap reads inputs of a remainder. */
static bool is_read(const tutti_rounded_plan *p, int axis, int64_t remainder)
{
    int64_t distance, rest = -1;
    for (int64_t k = 0; k < p->windows.size[axis] && rest != remainder; k++)
        tutti__rounded_tap(&p->windows, axis, false, k, 0, &distance, &rest);
    return p->turned || rest == remainder;
}

/* The planes that outputs from row `first` on read. */
static void lay(const tutti_rounded_plan *p, const float *image, int64_t first, uint16_t *laid)
{
    int64_t rows = p->high + p->highest[0] - p->lowest[0], remainders = p->apart[0] * p->apart[1];
    for (int64_t i = 0; i < remainders; i++) {
        int64_t rest[2] = {i / p->apart[1], i % p->apart[1]};
        uint16_t *planes = laid + i * (p->depth * p->positions);
        if (!is_read(p, 0, rest[0]) || !is_read(p, 1, rest[1]))
            continue;
        for (int64_t row = 0; row < rows; row++)
            lay_row(p, image, first + p->lowest[0] + row, rest, planes, row * p->pitch);
        lay_zeros(p, planes, rows * p->pitch, p->left);
    }
}

/* Sums of `m` positions whose first row of A is `a`. */
static void rounded_multiply(const work *w, const tutti_rounded_phase *phase, int64_t m,
                             const uint16_t *a, float *sums)
{
    const tutti_rounded_plan *p = w->plan;
    const uint16_t *panels = w->panels + phase->first_tap * p->depth * p->width;
    int64_t k = phase->taps * p->depth, width;
    for (int64_t start = 0; start < p->width; start += width) {
        width = panel_width(p, start);
        for (int64_t block = 0; block < k; block += p->tile->depth)
            p->tile->multiply_at(
                m, least(p->tile->depth, k - block), a, phase->at + block / p->tile->pad,
                panels + start * k + block * width, width, sums + start, p->width, block > 0);
    }
    if (k == 0)
        memset(sums, 0, (size_t)(m * p->width) * sizeof *sums);
}

static void store_row(const work *w, const tutti_rounded_phase *phase, const float *sums, float *to)
{
    const tutti_rounded_plan *p = w->plan;
    bool plain = w->layer.bias == NULL && !w->layer.relu;
    tutti_gemm_finish finish = {.rows = phase->count[1],
                                .n = p->filters,
                                .from = sums,
                                .ld = p->width,
                                .bias = w->layer.bias,
                                .relu = w->layer.relu,
                                .to = to,
                                .ldc = phase->step[1] * p->filters};
    if (plain && p->width == p->filters && phase->step[1] == 1)
        memcpy(to, sums, (size_t)(finish.rows * finish.n) * sizeof *to);
    else
        p->tile->finish(&finish);
}

/* Outputs of a phase in `rows` rows from row u on; their planes begin at `a`. */
static void run_strip(const work *w, const tutti_rounded_phase *phase, int64_t image, int64_t u,
                      int64_t rows, const uint16_t *a, float *sums)
{
    const tutti_rounded_plan *p = w->plan;
    rounded_multiply(w, phase, (rows - 1) * p->pitch + phase->count[1], a, sums);
    for (int64_t row = 0; row < rows; row++) {
        int64_t y = image * p->out[0] + phase->first[0] + (u + row) * phase->step[0];
        store_row(w, phase, sums + row * p->pitch * p->width,
                  w->layer.y + (y * p->out[1] + phase->first[1]) * p->filters);
    }
}

/* Piece: `high` rows of outputs of every phase, of one image. */
static void rounded_run_piece(void *context, int64_t piece)
{
    work *w = context;
    const tutti_rounded_plan *p = w->plan;
    int64_t image = piece / p->blocks, first = piece % p->blocks * p->high;
    uint16_t *laid = tutti__slot_take(&w->slots);
    float *sums = (float *)(void *)((char *)laid + laid_bytes(p));
    lay(p, w->layer.x + image * p->in[0] * p->in[1] * p->channels, first, laid);
    for (const tutti_rounded_phase *phase = p->phase; phase < p->phase + p->phases; phase++) {
        int64_t end = least(first + p->high, phase->count[0]);
        for (int64_t u = first; u < end && phase->count[1] > 0; u += p->strip)
            run_strip(w, phase, image, u, least(p->strip, end - u),
                      laid + (u - first) * p->pitch * p->tile->pad, sums);
    }
    tutti__slot_give(&w->slots, laid);
}

void tutti__rounded_run(const tutti_kernel_call *call, const tutti_rounded_plan *p,
                        tutti_rounded_layer layer)
{
    work w = {.plan = p, .layer = layer, .panels = call->workspace};
    tutti__slots_start(&w.slots, (char *)call->workspace + panel_bytes(p), slot_bytes(p),
                       p->threads);
    tutti_parallel(call, kernel_cells(p), pack_tap, &w);
    tutti_parallel(call, p->batch * p->blocks, rounded_run_piece, &w);
}
