/* conv2d_backward_kernel_bf16.c: the gradient of a convolution's kernel by products of bf16, where
 * the node allows them.
 *
 *     dkernel[tap] [channels, filters] = sum over images and outputs u of x[u + d(tap)]' grad[u]
 *
 * Products of bf16 take several steps of k at once (`pad`, gemm/tile.h); here these are images. x
 * is laid out as [row][column][channel][pad images], with zeros round the images, so that the rows
 * of a product stand ready for every tap, at the place of its first output: nothing is packed
 * twice.
 *
 * Stacks of `pad` images go by, several at a time where they are small, some rows of outputs at a
 * time where they are large: all threads pack them, then all threads multiply, each for some taps
 * and filters, so that every sum runs over the images in order. */
#include <stdlib.h>
#include <string.h>

#include "base/isa.h"
#include "device/cpu/conv/rounded.h"
#include "device/cpu/slots.h"

enum { ROUND_BYTES = 1 << 19 }; /* packed at a time */

typedef struct plan {
    const tutti_gemm_tile *tile;
    tutti_windows windows;
    int64_t batch, channels, filters;
    int64_t depth, width;  /* channels and filters, filled up to whole tiles and panels */
    int64_t high;          /* rows of outputs that are packed at a time */
    int64_t rows, columns; /* of x that those read */
    int64_t stacks;        /* that are packed at a time; 1 where `high` is not all rows */
    int64_t stack;         /* elements of a stack of x */
    int32_t at[];          /* [stacks][high][width of y]: where the input of tap (0, 0) stands */
} plan;

/* Rows and stacks at a time, by what they take. */
static void conv2d_backward_kernel_bf16_cut(plan *p)
{
    const tutti_windows *w = &p->windows;
    int64_t pad = p->tile->pad, element = (int64_t)sizeof(uint16_t);
    p->columns = (w->out[1] - 1) * w->stride[1] + (w->size[1] - 1) * w->dilation[1] + 1;
    int64_t line = element * pad * (w->stride[0] * p->columns * p->channels + w->out[1] * p->width);
    p->high = least(w->out[0], most(4, ROUND_BYTES / line));
    p->high = divide_up(w->out[0], divide_up(w->out[0], p->high));
    p->rows = (p->high - 1) * w->stride[0] + (w->size[0] - 1) * w->dilation[0] + 1;
    p->stack = p->rows * p->columns * p->channels * pad;
    int64_t bytes = element * (p->stack + p->high * w->out[1] * p->width * pad);
    p->stacks =
        p->high < w->out[0] ? 1 : least(divide_up(p->batch, pad), most(1, ROUND_BYTES / bytes));
}

static bool conv2d_backward_kernel_bf16_make(const tutti_kernel_query *query, plan *ret)
{
    tutti_convolution c;
    if (!tutti__bf16_products(query->node.attrs, query->node.attr_count, TUTTI_ISA_TEXT) ||
        !tutti__conv_query(query, 0, -1, 1, &c) || !tutti__rounded_fits(&c))
        return false;
    *ret = (plan){.tile = tutti__gemm_bf16_tile(),
                  .windows = c.windows,
                  .batch = c.batch,
                  .channels = c.cin,
                  .filters = c.cout};
    ret->depth = divide_up(c.cin, ret->tile->rows) * ret->tile->rows;
    ret->width = tutti__gemm_panels(ret->tile, c.cout).padded;
    conv2d_backward_kernel_bf16_cut(ret);
    return ret->stacks * ret->stack < INT32_MAX;
}

static int conv2d_backward_kernel_bf16_score(const tutti_kernel_query *query)
{
    plan p;
    if (!conv2d_backward_kernel_bf16_make(query, &p))
        return 0;
    return 2 * p.batch >= p.tile->pad ? 130 : 50; /* else most of a stack is zeros */
}

/* With what a tile reads beyond the last channels. */
static size_t x_bytes(const plan *p)
{
    return tutti__slot_bytes((size_t)(p->stacks * p->stack + p->tile->rows * p->tile->pad) *
                             sizeof(uint16_t));
}

/* Steps of k for each output. */
static int64_t outputs_of(const plan *p)
{
    return p->stacks * p->high * p->windows.out[1];
}

static size_t grad_bytes(const plan *p)
{
    return tutti__slot_bytes((size_t)(outputs_of(p) * p->width * p->tile->pad) * sizeof(uint16_t));
}

static int64_t kernel_cells(const plan *p)
{
    return p->windows.size[0] * p->windows.size[1];
}

static size_t conv2d_backward_kernel_bf16_workspace(const tutti_kernel_query *query)
{
    plan p;
    if (!conv2d_backward_kernel_bf16_make(query, &p))
        return 0;
    return x_bytes(&p) + grad_bytes(&p) +
           (size_t)(kernel_cells(&p) * p.depth * p.width) * sizeof(float);
}

static tutti_status conv2d_backward_kernel_bf16_prepare(const tutti_kernel_query *query,
                                                        void **ret_plan)
{
    plan sizes = {0};
    conv2d_backward_kernel_bf16_make(query, &sizes);
    plan *p = malloc(sizeof *p + (size_t)outputs_of(&sizes) * sizeof p->at[0]);
    if (!p)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of a convolution");
    *p = sizes;
    const tutti_windows *w = &p->windows;
    for (int64_t i = 0; i < outputs_of(p); i++) {
        int64_t column = i % w->out[1], row = i / w->out[1] % p->high;
        int64_t stack = i / w->out[1] / p->high;
        int64_t place = row * w->stride[0] * p->columns + column * w->stride[1];
        p->at[i] = (int32_t)(stack * p->stack + place * p->channels * p->tile->pad);
    }
    *ret_plan = p;
    return TUTTI_OK;
}

typedef struct work {
    const plan *plan;
    const float *x, *grad;
    uint16_t *packed_x;    /* [stack][row][column][channel][pad images] */
    uint16_t *packed_grad; /* [panel][stack][row][column][columns of the panel, pad images] */
    float *sums;           /* [cell][depth][width] */
    float *kernel_grad;
    int64_t image, row;   /* the first of those at hand */
    int64_t stacks, high; /* at hand */
} work;

/* Images of a stack: fewer in the last one. */
static int64_t images_of(const work *w, int64_t stack)
{
    int64_t pad = w->plan->tile->pad;
    return least(pad, w->plan->batch - (w->image + stack * pad));
}

/* Piece: one row of x in one stack. */
static void pack_x_piece(void *context, int64_t piece)
{
    const work *w = context;
    const plan *p = w->plan;
    const tutti_windows *v = &p->windows;
    int64_t stack = piece / p->rows, index = piece % p->rows, pad = p->tile->pad;
    int64_t row = tutti__window_start(v, 0, w->row) + index, cell = p->channels * pad;
    uint16_t *to = w->packed_x + stack * p->stack + index * p->columns * cell;
    int64_t before = least(v->before[1], p->columns);
    int64_t inside = row < 0 || row >= v->in[0] ? 0 : least(v->in[1], p->columns - before);
    memset(to, 0, (size_t)(before * cell) * sizeof *to);
    memset(to + (before + inside) * cell, 0,
           (size_t)((p->columns - before - inside) * cell) * sizeof *to);
    if (inside == 0)
        return;
    int64_t line = v->in[1] * p->channels, image = w->image + stack * pad;
    tutti_gemm_images images = {.images = images_of(w, stack),
                                .apart = v->in[0] * line,
                                .pixels = 1,
                                .count = inside * p->channels,
                                .width = inside * p->channels,
                                .source = w->x + (image * v->in[0] + row) * line};
    p->tile->pack_images(&images, to + before * cell);
}

/* Columns from `start` on: how many the panel there has. */
static int64_t panel_width(const plan *p, int64_t start)
{
    int64_t wide = tutti__gemm_panels(p->tile, p->filters).wides * p->tile->wide;
    return start < wide ? p->tile->wide : p->tile->narrow;
}

/* Piece: one row of grad in one stack. */
static void pack_grad_piece(void *context, int64_t piece)
{
    const work *w = context;
    const plan *p = w->plan;
    const int64_t *out = p->windows.out;
    int64_t stack = piece / w->high, row = w->row + piece % w->high, pad = p->tile->pad, width;
    int64_t line = out[1] * p->filters, image = w->image + stack * pad;
    for (int64_t start = 0; start < p->width; start += width) {
        width = panel_width(p, start);
        uint16_t *to = w->packed_grad + (start * outputs_of(p) + piece * out[1] * width) * pad;
        tutti_gemm_images images = {.images = images_of(w, stack),
                                    .apart = out[0] * line,
                                    .pixels = out[1],
                                    .stride = p->filters,
                                    .count = least(width, p->filters - start),
                                    .width = width,
                                    .source = w->grad + (image * out[0] + row) * line + start,
                                    .columns = true};
        if (images.count < width)
            memset(to, 0, (size_t)(out[1] * width * pad) * sizeof *to);
        p->tile->pack_images(&images, to);
    }
}

static void pack_piece(void *context, int64_t piece)
{
    const work *w = context;
    int64_t rows = w->stacks * w->plan->rows;
    if (piece < rows)
        pack_x_piece(context, piece);
    else
        pack_grad_piece(context, piece - rows);
}

/* Panels of filters. */
static int64_t panel_count(const plan *p)
{
    tutti_gemm_panels panels = tutti__gemm_panels(p->tile, p->filters);
    return panels.wides + panels.narrows;
}

/* Piece: one tap and one panel of filters. */
static void multiply_piece(void *context, int64_t piece)
{
    const work *w = context;
    const plan *p = w->plan;
    const tutti_windows *v = &p->windows;
    int64_t panels = panel_count(p), cell = piece / panels, start = 0, pad = p->tile->pad;
    for (int64_t i = 0; i < piece % panels; i++)
        start += panel_width(p, start);
    int64_t width = panel_width(p, start), depth = p->tile->depth / pad;
    int64_t outputs = w->stacks * w->high * v->out[1];
    int64_t place =
        cell / v->size[1] * v->dilation[0] * p->columns + cell % v->size[1] * v->dilation[1];
    const uint16_t *a = w->packed_x + place * p->channels * pad;
    const uint16_t *b = w->packed_grad + start * outputs_of(p) * pad;
    for (int64_t first = 0; first < outputs; first += depth)
        p->tile->multiply_at(p->channels, least(depth, outputs - first) * pad, a, p->at + first,
                             b + first * width * pad, width,
                             w->sums + cell * p->depth * p->width + start, p->width,
                             w->image > 0 || w->row > 0 || first > 0);
}

/* Piece: one tap. */
static void store_piece(void *context, int64_t cell)
{
    const work *w = context;
    const plan *p = w->plan;
    for (int64_t c = 0; c < p->channels; c++)
        memcpy(w->kernel_grad + (cell * p->channels + c) * p->filters,
               w->sums + (cell * p->depth + c) * p->width,
               (size_t)p->filters * sizeof *w->kernel_grad);
}

static tutti_status conv2d_backward_kernel_bf16_run(const tutti_kernel_call *call)
{
    const plan *p = call->plan;
    char *memory = call->workspace;
    work w = {.plan = p,
              .x = call->inputs[0].data,
              .grad = call->inputs[1].data,
              .packed_x = (uint16_t *)(void *)memory,
              .packed_grad = (uint16_t *)(void *)(memory + x_bytes(p)),
              .sums = (float *)(void *)(memory + x_bytes(p) + grad_bytes(p)),
              .kernel_grad = call->outputs[0].data};
    int64_t pad = p->tile->pad;
    for (; w.image < p->batch; w.image += p->stacks * pad) {
        w.stacks = least(p->stacks, divide_up(p->batch - w.image, pad));
        for (w.row = 0; w.row < p->windows.out[0]; w.row += p->high) {
            w.high = least(p->high, p->windows.out[0] - w.row);
            tutti_parallel(call, w.stacks * (p->rows + w.high), pack_piece, &w);
            tutti_parallel(call, kernel_cells(p) * panel_count(p), multiply_piece, &w);
        }
    }
    tutti_parallel(call, kernel_cells(p), store_piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_backward_kernel_bf16) = {
    .name = "conv2d_backward_kernel.bf16",
    .version = 1,
    .op = "conv2d_backward_kernel",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_TUNED,
    .score = conv2d_backward_kernel_bf16_score,
    .workspace = conv2d_backward_kernel_bf16_workspace,
    .prepare = conv2d_backward_kernel_bf16_prepare,
    .discard = free,
    .run = conv2d_backward_kernel_bf16_run,
};
