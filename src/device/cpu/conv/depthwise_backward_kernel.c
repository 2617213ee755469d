/* depthwise_backward_kernel.c: dk[tap, c] = sum over images and outputs o of
 * x[o stride - before + tap dilation, c] dy[o, c]. Every tap and stretch of channels is one piece,
 * whose sum runs over the rows in order; rows are summed by themselves first. */
#include "base/isa.h"
#include "device/cpu/conv/depthwise.h"

static int depthwise_backward_kernel_score(const tutti_kernel_query *query)
{
    depthwise d;
    return depthwise_make(query, 0, -1, 1, &d) ? 110 : 0;
}

static tutti_status depthwise_backward_kernel_prepare(const tutti_kernel_query *query,
                                                      void **ret_plan)
{
    depthwise d = {0};
    depthwise_make(query, 0, -1, 1, &d);
    return depthwise_keep(&d, ret_plan);
}

/* The outputs [first, end) of an axis whose tap reads input. */
static void outputs_of(const tutti_windows *w, int axis, int64_t tap, int64_t *ret_first,
                       int64_t *ret_end)
{
    int64_t first = 0, end = w->out[axis], shift = tap * w->dilation[axis];
    while (first < end && tutti__window_start(w, axis, first) + shift < 0)
        first++;
    while (end > first && tutti__window_start(w, axis, end - 1) + shift >= w->in[axis])
        end--;
    *ret_first = first;
    *ret_end = end;
}

static void depthwise_backward_kernel_sum_piece(void *context, int64_t piece)
{
    const depthwise *d = context;
    const tutti_windows *w = &d->w;
    int64_t stretches = (d->channels + LANES - 1) / LANES, tap = piece / stretches,
            c = piece % stretches * LANES, i = tap / w->size[1], j = tap % w->size[1], top, bottom,
            left, right;
    int64_t count = d->channels - c < LANES ? d->channels - c : LANES;
    float sum[LANES] = {0};
    outputs_of(w, 0, i, &top, &bottom);
    outputs_of(w, 1, j, &left, &right);
    for (int64_t row = top; row < bottom + (d->batch - 1) * w->out[0]; row++) {
        int64_t image = row / w->out[0], o = row % w->out[0];
        if (o < top || o >= bottom)
            continue;
        int64_t h = tutti__window_start(w, 0, o) + i * w->dilation[0];
        const float *x = d->x + (image * w->in[0] + h) * w->in[1] * d->channels + c;
        const float *y = d->y + row * w->out[1] * d->channels + c;
        float line[LANES] = {0};
        for (int64_t v = left; v < right; v++)
            add_products(count,
                         x + (tutti__window_start(w, 1, v) + j * w->dilation[1]) * d->channels,
                         y + v * d->channels, line);
        for (int64_t l = 0; l < LANES; l++)
            sum[l] += line[l];
    }
    memcpy(d->to + tap * d->channels + c, sum, (size_t)count * sizeof *sum);
}

static tutti_status depthwise_backward_kernel_run(const tutti_kernel_call *call)
{
    depthwise d = *(const depthwise *)call->plan;
    d.x = call->inputs[0].data;
    d.y = call->inputs[1].data;
    d.to = call->outputs[0].data;
    int64_t stretches = (d.channels + LANES - 1) / LANES;
    tutti_parallel(call, d.w.size[0] * d.w.size[1] * stretches, depthwise_backward_kernel_sum_piece,
                   &d);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_backward_kernel_depthwise) = {
    .name = "conv2d_backward_kernel.depthwise",
    .version = 1,
    .op = "conv2d_backward_kernel",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .score = depthwise_backward_kernel_score,
    .prepare = depthwise_backward_kernel_prepare,
    .discard = free,
    .run = depthwise_backward_kernel_run,
};
