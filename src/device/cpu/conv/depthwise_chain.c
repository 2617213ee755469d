/* depthwise_chain.c: y = g(f(conv2d(x, kernel) + bias) + residual) of inference, each channel by
 * itself. A register holds channels; COLUMNS outputs beside each other share the kernel's taps. */
#include "base/isa.h"
#include "device/cpu/conv/finish.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 4, PIECE_OUTPUTS = 1 << 13 }; /* floats of outputs in a piece, about */

typedef struct depthwise_plan {
    tutti_conv_chain chain;
    int64_t batch, channels, rows, pieces; /* rows of a piece; pieces of an image */
} depthwise_plan;

typedef struct depthwise_work {
    const depthwise_plan *plan;
    const float *x, *kernel;
    float *y;
    conv_finish finish;
} depthwise_work;

/* Outputs of one row, columns from `column` on: the taps that read input, and where tap (0, 0)
 * would read. */
typedef struct depthwise_place {
    const float *x; /* tap (0, 0) of the first column; may lie outside */
    int64_t top, bottom, left, right;
    float *y;
} depthwise_place;

static bool depthwise_chain_make(const tutti_kernel_query *query, depthwise_plan *ret)
{
    if (!tutti__conv_chain(&query->node, &ret->chain))
        return false;
    const tutti_convolution *c = &ret->chain.shape;
    ret->batch = c->batch;
    ret->channels = c->groups;
    ret->rows = PIECE_OUTPUTS / (c->windows.out[1] * c->groups) + 1;
    ret->pieces = (c->windows.out[0] + ret->rows - 1) / ret->rows;
    return c->groups > 1 && c->cin == 1 && c->cout == 1;
}

static int depthwise_chain_score(const tutti_kernel_query *query)
{
    depthwise_plan p;
    return depthwise_chain_make(query, &p) ? 110 : 0;
}

static tutti_status depthwise_chain_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    depthwise_plan *p = malloc(sizeof *p);
    if (p == NULL || !depthwise_chain_make(query, p)) {
        free(p);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of '%s'", query->node.name);
    }
    *ret_plan = p;
    return TUTTI_OK;
}

/* `count` <= COLUMNS outputs of VEC_LANES channels from c on; taps of a window that is whole are
 * known to the compiler. */
VEC_INLINE void convolve_lanes(const depthwise_work *w, const depthwise_place *at, int64_t c,
                               int columns, int64_t height, int64_t width)
{
    const tutti_windows *windows = &w->plan->chain.shape.windows;
    const int64_t channels = w->plan->channels, row = windows->in[1] * channels,
                  step = windows->stride[1] * channels;
    const bool whole = height > 0;
    const int64_t top = whole ? 0 : at->top, bottom = whole ? height : at->bottom,
                  left = whole ? 0 : at->left, right = whole ? width : at->right;
    const float *taps = w->kernel + c;
    vec sum[COLUMNS], bias = w->finish.bias == NULL ? vec_splat(0) : vec_load(w->finish.bias + c);
    VEC_UNROLL for (int p = 0; p < columns; p++) sum[p] = vec_splat(0);
    for (int64_t i = top; i < bottom; i++) {
        const float *from = at->x + i * windows->dilation[0] * row + c;
        for (int64_t j = left; j < right; j++) {
            vec tap = vec_load(taps + (i * windows->size[1] + j) * channels);
            const float *pixel = from + j * windows->dilation[1] * channels;
            VEC_UNROLL for (int p = 0; p < columns; p++) sum[p] =
                vec_fma(vec_load(pixel + p * step), tap, sum[p]);
        }
    }
    VEC_UNROLL for (int p = 0; p < columns; p++)
    {
        float *to = at->y + p * channels + c;
        const float *residual =
            w->finish.residual == NULL ? NULL : w->finish.residual + (to - w->y);
        vec_store(to, conv_finished(&w->finish, sum[p] + bias, residual, VEC_LANES));
    }
}

/* 3 x 3 with strides and dilations of 1: three rows of COLUMNS + 2 pixels serve COLUMNS outputs. */
VEC_INLINE void convolve_three(const depthwise_work *w, const depthwise_place *at, int64_t c)
{
    const int64_t channels = w->plan->channels, row = w->plan->chain.shape.windows.in[1] * channels;
    vec sum[COLUMNS], bias = w->finish.bias == NULL ? vec_splat(0) : vec_load(w->finish.bias + c);
    VEC_UNROLL for (int p = 0; p < COLUMNS; p++) sum[p] = vec_splat(0);
    VEC_UNROLL for (int i = 0; i < 3; i++)
    {
        vec pixel[COLUMNS + 2], tap[3];
        VEC_UNROLL for (int j = 0; j < COLUMNS + 2; j++) pixel[j] =
            vec_load(at->x + i * row + j * channels + c);
        VEC_UNROLL for (int j = 0; j < 3; j++) tap[j] =
            vec_load(w->kernel + (i * 3 + j) * channels + c);
        VEC_UNROLL for (int j = 0; j < 3; j++) VEC_UNROLL for (int p = 0; p < COLUMNS; p++) sum[p] =
            vec_fma(pixel[p + j], tap[j], sum[p]);
    }
    VEC_UNROLL for (int p = 0; p < COLUMNS; p++)
    {
        float *to = at->y + p * channels + c;
        const float *residual =
            w->finish.residual == NULL ? NULL : w->finish.residual + (to - w->y);
        vec_store(to, conv_finished(&w->finish, sum[p] + bias, residual, VEC_LANES));
    }
}

/* Channels that do not fill a register. */
static void convolve_rest(const depthwise_work *w, const depthwise_place *at, int64_t c,
                          int columns)
{
    const tutti_windows *windows = &w->plan->chain.shape.windows;
    const conv_finish *f = &w->finish;
    int64_t channels = w->plan->channels, row = windows->in[1] * channels;
    for (int p = 0; p < columns; p++)
        for (int64_t k = c; k < channels; k++) {
            float sum = 0, *to = at->y + p * channels + k;
            for (int64_t i = at->top; i < at->bottom; i++)
                for (int64_t j = at->left; j < at->right; j++) {
                    float pixel =
                              at->x[i * windows->dilation[0] * row +
                                    (p * windows->stride[1] + j * windows->dilation[1]) * channels +
                                    k],
                          tap = w->kernel[(i * windows->size[1] + j) * channels + k];
                    sum = VEC_FUSED ? fmaf(pixel, tap, sum) : sum + pixel * tap;
                }
            sum += f->bias == NULL ? 0 : f->bias[k];
            sum = sum < f->low[0] ? f->low[0] : sum > f->high[0] ? f->high[0] : sum;
            if (f->residual != NULL) {
                sum += f->residual[to - w->y];
                sum = sum < f->low[1] ? f->low[1] : sum > f->high[1] ? f->high[1] : sum;
            }
            *to = sum;
        }
}

/* COLUMNS outputs whose windows lie inside the row, or one at its edge. */
static void convolve_columns(const depthwise_work *w, const depthwise_place *at, int columns)
{
    const tutti_windows *windows = &w->plan->chain.shape.windows;
    int64_t c = 0, channels = w->plan->channels;
    bool high = at->top == 0 && at->bottom == windows->size[0];
    bool three = high && windows->size[0] == 3 && windows->size[1] == 3;
    bool dense = windows->stride[1] == 1 && windows->dilation[0] == 1 && windows->dilation[1] == 1;
    if (columns == 1)
        for (; c + VEC_LANES <= channels; c += VEC_LANES)
            convolve_lanes(w, at, c, 1, 0, 0);
    else if (three && dense)
        for (; c + VEC_LANES <= channels; c += VEC_LANES)
            convolve_three(w, at, c);
    else if (three)
        for (; c + VEC_LANES <= channels; c += VEC_LANES)
            convolve_lanes(w, at, c, COLUMNS, 3, 3);
    else
        for (; c + VEC_LANES <= channels; c += VEC_LANES)
            convolve_lanes(w, at, c, COLUMNS, 0, 0);
    if (c < channels)
        convolve_rest(w, at, c, columns);
}

static void convolve_row(const depthwise_work *w, int64_t image, int64_t row)
{
    const tutti_windows *windows = &w->plan->chain.shape.windows;
    const int64_t channels = w->plan->channels, line = windows->in[1] * channels;
    int64_t top, bottom, columns = windows->out[1];
    float *y = w->y + (image * windows->out[0] + row) * columns * channels;
    const float *x = w->x + (image * windows->in[0] + tutti__window_start(windows, 0, row)) * line;
    tutti__window_taps(windows, 0, row, &top, &bottom);
    for (int64_t column = 0, step; column < columns; column += step) {
        int64_t left, right, last_left, last_right;
        bool room = column + COLUMNS <= columns;
        tutti__window_taps(windows, 1, column, &left, &right);
        tutti__window_taps(windows, 1, room ? column + COLUMNS - 1 : column, &last_left,
                           &last_right);
        room = room && left == 0 && right == windows->size[1] && last_left == 0 &&
               last_right == windows->size[1];
        step = room ? COLUMNS : 1;
        depthwise_place at = {.x = x + tutti__window_start(windows, 1, column) * channels,
                              .top = top,
                              .bottom = bottom,
                              .left = left,
                              .right = right,
                              .y = y + column * channels};
        convolve_columns(w, &at, (int)step);
    }
    conv_activate(&w->finish, y, columns * channels);
}

/* Piece: a few rows of outputs of one image. */
static void rows_piece(void *context, int64_t piece)
{
    const depthwise_work *w = context;
    const depthwise_plan *p = w->plan;
    int64_t first = piece % p->pieces * p->rows, end = first + p->rows,
            rows = p->chain.shape.windows.out[0];
    for (int64_t row = first; row < end && row < rows; row++)
        convolve_row(w, piece / p->pieces, row);
}

static tutti_status depthwise_chain_run(const tutti_kernel_call *call)
{
    const depthwise_plan *p = call->plan;
    depthwise_work w = {.plan = p,
                        .x = call->inputs[p->chain.x].data,
                        .kernel = call->inputs[p->chain.kernel].data,
                        .y = call->outputs[0].data,
                        .finish = conv_finish_chain(&p->chain, call)};
    tutti_parallel(call, p->batch * p->pieces, rows_piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_depthwise_chain) = {
    .name = "fused.depthwise_chain",
    .version = 1,
    .op = "fused",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = depthwise_chain_score,
    .prepare = depthwise_chain_prepare,
    .discard = free,
    .run = depthwise_chain_run,
};
