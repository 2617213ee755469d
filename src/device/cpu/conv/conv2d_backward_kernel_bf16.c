/* conv2d_backward_kernel_bf16.c: the gradient of a convolution's kernel by products of bf16, where
 * the node allows them.
 *
 *     dkernel[tap] [channels, filters] = sum over outputs u of x[u + d(tap)]' grad[u]
 *
 * A sum over positions: x and grad are packed along them, as the tiles of products take their rows
 * and columns (gemm/tile.h). There are panels of x for each column of the kernel and each remainder
 * of the row by the stride; in them a tap's row is a place (rounded.h). Rows of outputs are filled
 * up with zeros of grad to whole groups of positions, and images stand one after the other with
 * rows of zeros between them, so that the sum over a group of images is one product.
 *
 * Groups of images go by: all threads pack them, then all threads multiply, each for some taps and
 * channels, so that every sum runs over the images in order. */
#include <stdlib.h>
#include <string.h>

#include "base/isa.h"
#include "device/cpu/conv/rounded.h"
#include "device/cpu/slots.h"

enum { GROUP_BYTES = 1 << 19, PACKED_ROWS = 8 };

typedef struct plan {
    const tutti_gemm_tile *tile;
    tutti_windows windows;
    int64_t batch, channels, filters;
    int64_t depth, width; /* channels and filters, filled up to whole panels */
    int64_t top, rows;    /* rows of zeros before an image's first, from one image to the next */
    int64_t pitch;        /* positions of a row */
    int64_t group;        /* images */
    int64_t positions;    /* of a panel of x */
    int64_t panels;       /* of x, each of `depth` channels: columns of the kernel, remainders */
    int64_t line, before; /* columns of a rounded row, of those before the image */
    int threads;
} plan;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t round_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b * b;
}

/* Rows of zeros above and between images, so that every tap finds its rows. */
static void make_rows(plan *p)
{
    const tutti_windows *w = &p->windows;
    int64_t lowest = INT64_MAX, highest = INT64_MIN, distance, rest;
    for (int64_t k = 0; k < w->size[0]; k++) {
        tutti__rounded_tap(w, 0, false, k, 0, &distance, &rest);
        lowest = least(lowest, distance);
        highest = most(highest, distance);
    }
    int64_t inside = (w->in[0] + w->stride[0] - 1) / w->stride[0];
    p->top = most(0, -lowest);
    int64_t bottom = most(0, w->out[0] + highest - inside);
    p->rows = most(w->out[0], inside + most(p->top, bottom));
}

static void make_columns(plan *p)
{
    const tutti_windows *w = &p->windows;
    p->pitch = round_up(w->out[1], p->tile->pad);
    p->before = w->before[1];
    p->line = most(p->before + w->in[1],
                   (p->pitch - 1) * w->stride[1] + (w->size[1] - 1) * w->dilation[1] + 1);
}

static bool make(const tutti_kernel_query *query, plan *ret)
{
    tutti_convolution c;
    enum { FEW = 8 };
    if (!tutti__rounded_wanted(query, TUTTI_ISA_TEXT) || !tutti__conv_query(query, 0, -1, 1, &c) ||
        c.cin < FEW || c.cout < FEW)
        return false;
    *ret = (plan){.tile = tutti__gemm_bf16_tile(),
                  .windows = c.windows,
                  .batch = c.batch,
                  .channels = c.cin,
                  .filters = c.cout,
                  .threads = query->threads};
    ret->depth = round_up(c.cin, ret->tile->rows);
    ret->width = tutti__gemm_panels(ret->tile, c.cout).padded;
    ret->panels = c.windows.size[1] * c.windows.stride[0];
    make_rows(ret);
    make_columns(ret);
    int64_t image = ret->rows * ret->pitch * (ret->panels * ret->depth + ret->width) *
                    (int64_t)sizeof(uint16_t);
    ret->group = most(1, least(c.batch, GROUP_BYTES / image));
    ret->positions = (ret->group * ret->rows + ret->top) * ret->pitch;
    return true;
}

static int score(const tutti_kernel_query *query)
{
    plan p;
    return make(query, &p) ? 130 : 0;
}

static size_t x_bytes(const plan *p)
{
    return tutti__slot_bytes((size_t)(p->panels * p->depth * p->positions) * sizeof(uint16_t));
}

static size_t grad_bytes(const plan *p)
{
    return tutti__slot_bytes((size_t)(p->group * p->rows * p->pitch * p->width) * sizeof(uint16_t));
}

static size_t line_bytes(const plan *p)
{
    return tutti__slot_bytes((size_t)(p->line * p->channels) * sizeof(uint16_t));
}

static size_t workspace(const tutti_kernel_query *query)
{
    plan p;
    if (!make(query, &p))
        return 0;
    return x_bytes(&p) + grad_bytes(&p) + line_bytes(&p) * (size_t)tutti__slot_count(p.threads);
}

static tutti_status prepare(const tutti_kernel_query *query, void **ret_plan)
{
    plan *p = malloc(sizeof *p);
    if (!p)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    make(query, p);
    *ret_plan = p;
    return TUTTI_OK;
}

typedef struct work {
    const plan *plan;
    const float *x, *grad;
    uint16_t *packed_x;    /* [remainder][column of the kernel][channels / rows][positions][rows] */
    uint16_t *packed_grad; /* [panel][positions][columns of the panel] */
    float *kernel_grad;
    tutti_slots slots;
    int64_t first, images; /* of the group at hand */
} work;

/* The panel of x for a column of the kernel, a remainder and channels from c on. */
static uint16_t *x_panel(const work *w, int64_t rest, int64_t column, int64_t c)
{
    const plan *p = w->plan;
    return w->packed_x + ((rest * p->windows.size[1] + column) * p->depth + c) * p->positions;
}

/* A row of x, rounded, with zeros round it; NULL: all zeros. */
static void round_row(const plan *p, const float *x, uint16_t *line)
{
    int64_t inside = x == NULL ? 0 : p->windows.in[1] * p->channels;
    int64_t before = p->before * p->channels, after = p->line * p->channels - before - inside;
    memset(line, 0, (size_t)before * sizeof *line);
    p->tile->round(inside, x, line + before);
    memset(line + before + inside, 0, (size_t)after * sizeof *line);
}

/* Row `row` of the group, counted from the first zeros, into all panels of x. */
static void pack_x_row(const work *w, int64_t row, int64_t rest, uint16_t *line)
{
    const plan *p = w->plan;
    const tutti_windows *v = &p->windows;
    int64_t image = row < p->top ? -1 : (row - p->top) / p->rows;
    int64_t in = row < p->top ? -1 : (row - p->top) % p->rows * v->stride[0] + rest;
    bool inside = image >= 0 && image < w->images && in < v->in[0];
    int64_t from = ((w->first + image) * v->in[0] + in) * v->in[1] * p->channels;
    round_row(p, inside ? w->x + from : NULL, line);
    for (int64_t column = 0; column < v->size[1]; column++)
        for (int64_t c = 0; c < p->depth; c += p->tile->rows) {
            tutti_gemm_lines lines = {.width = p->tile->rows,
                                      .count = least(p->tile->rows, p->channels - c),
                                      .k = p->pitch,
                                      .source = line + column * v->dilation[1] * p->channels + c,
                                      .step = v->stride[1] * p->channels,
                                      .stride = 1,
                                      .bf16 = true};
            p->tile->pack_lines(&lines,
                                x_panel(w, rest, column, c) + row * p->pitch * p->tile->rows);
        }
}

/* Columns from `start` on: how many the panel there has. */
static int64_t panel_width(const plan *p, int64_t start)
{
    int64_t wide = tutti__gemm_panels(p->tile, p->filters).wides * p->tile->wide;
    return start < wide ? p->tile->wide : p->tile->narrow;
}

static uint16_t *grad_panel(const work *w, int64_t start)
{
    return w->packed_grad + start * w->plan->group * w->plan->rows * w->plan->pitch;
}

static void pack_grad_row(const work *w, int64_t row)
{
    const plan *p = w->plan;
    const int64_t *out = p->windows.out;
    int64_t image = w->first + row / p->rows, u = row % p->rows, width;
    for (int64_t start = 0; start < p->width; start += width) {
        width = panel_width(p, start);
        uint16_t *to = grad_panel(w, start) + row * p->pitch * width;
        tutti_gemm_lines lines = {.width = width,
                                  .count = least(width, p->filters - start),
                                  .k = out[1],
                                  .step = p->filters,
                                  .stride = 1,
                                  .columns = true};
        if (u < out[0]) {
            lines.source = w->grad + (image * out[0] + u) * out[1] * p->filters + start;
            p->tile->pack_lines(&lines, to);
        } else {
            memset(to, 0, (size_t)(p->pitch * width) * sizeof *to);
        }
    }
}

/* Piece: PACKED_ROWS rows of x and of grad. */
static void pack_piece(void *context, int64_t piece)
{
    work *w = context;
    const plan *p = w->plan;
    int64_t rows = p->positions / p->pitch, first = piece * PACKED_ROWS;
    uint16_t *line = tutti__slot_take(&w->slots);
    for (int64_t row = first; row < least(first + PACKED_ROWS, rows); row++) {
        for (int64_t rest = 0; rest < p->windows.stride[0]; rest++)
            pack_x_row(w, row, rest, line);
        if (row < w->images * p->rows)
            pack_grad_row(w, row);
    }
    tutti__slot_give(&w->slots, line);
}

/* Piece: one tap of the kernel and one panel of channels. */
static void multiply_piece(void *context, int64_t piece)
{
    const work *w = context;
    const plan *p = w->plan;
    const tutti_windows *v = &p->windows;
    const tutti_gemm_tile *tile = p->tile;
    int64_t panels = p->depth / tile->rows, cell = piece / panels, c = piece % panels * tile->rows;
    int64_t distance, rest, width, count = least(tile->rows, p->channels - c);
    tutti__rounded_tap(v, 0, false, cell / v->size[1], 0, &distance, &rest);
    const uint16_t *a =
        x_panel(w, rest, cell % v->size[1], c) + (p->top + distance) * p->pitch * tile->rows;
    int64_t k = ((w->images - 1) * p->rows + v->out[0]) * p->pitch;
    float *to = w->kernel_grad + (cell * p->channels + c) * p->filters;
    for (int64_t start = 0; start < p->width; start += width) {
        width = panel_width(p, start);
        for (int64_t block = 0; block < k; block += tile->depth)
            tile->multiply(count, least(width, p->filters - start), least(tile->depth, k - block),
                           a + block * tile->rows, grad_panel(w, start) + block * width, width,
                           to + start, p->filters, w->first > 0 || block > 0);
    }
}

static tutti_status run(const tutti_call *call)
{
    const plan *p = call->plan;
    char *memory = call->workspace;
    work w = {.plan = p,
              .x = call->inputs[0].data,
              .grad = call->inputs[1].data,
              .packed_x = (uint16_t *)(void *)memory,
              .packed_grad = (uint16_t *)(void *)(memory + x_bytes(p)),
              .kernel_grad = call->outputs[0].data};
    tutti__slots_start(&w.slots, memory + x_bytes(p) + grad_bytes(p), line_bytes(p), p->threads);
    int64_t rows = p->positions / p->pitch;
    int64_t pieces = p->windows.size[0] * p->windows.size[1] * (p->depth / p->tile->rows);
    for (; w.first < p->batch; w.first += p->group) {
        w.images = least(p->group, p->batch - w.first);
        tutti_parallel(call, (rows + PACKED_ROWS - 1) / PACKED_ROWS, pack_piece, &w);
        tutti_parallel(call, pieces, multiply_piece, &w);
    }
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_backward_kernel_bf16) = {
    .name = "conv2d_backward_kernel.bf16",
    .version = 1,
    .op = "conv2d_backward_kernel",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_TUNED,
    .score = score,
    .workspace = workspace,
    .prepare = prepare,
    .discard = free,
    .run = run,
};
