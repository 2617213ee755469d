/* depthwise_forward.c: y[o, c] = sum over taps of x[o stride - before + tap dilation, c] k[tap, c].
 */
#include "base/isa.h"
#include "device/cpu/conv/depthwise.h"

static int depthwise_forward_score(const tutti_kernel_query *query)
{
    depthwise d;
    return depthwise_make(query, 0, 1, -1, &d) ? 110 : 0;
}

static tutti_status depthwise_forward_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    depthwise d = {0};
    depthwise_make(query, 0, 1, -1, &d);
    return depthwise_keep(&d, ret_plan);
}

/* Piece: one row of outputs. */
static void forward_row(void *context, int64_t piece)
{
    const depthwise *d = context;
    const tutti_windows *w = &d->w;
    int64_t row = piece % w->out[0], image = piece / w->out[0], top, bottom;
    const float *x = d->x + image * w->in[0] * w->in[1] * d->channels;
    float *y = d->to + piece * w->out[1] * d->channels;
    tutti__window_taps(w, 0, row, &top, &bottom);
    for (int64_t column = 0; column < w->out[1]; column++, y += d->channels) {
        int64_t left, right, h = tutti__window_start(w, 0, row),
                             v = tutti__window_start(w, 1, column);
        tutti__window_taps(w, 1, column, &left, &right);
        for (int64_t c = 0; c < d->channels; c += LANES) {
            int64_t count = d->channels - c < LANES ? d->channels - c : LANES;
            float sum[LANES] = {0};
            for (int64_t i = top; i < bottom; i++)
                for (int64_t j = left; j < right; j++)
                    add_products(
                        count,
                        x +
                            ((h + i * w->dilation[0]) * w->in[1] + v + j * w->dilation[1]) *
                                d->channels +
                            c,
                        d->kernel + (i * w->size[1] + j) * d->channels + c, sum);
            memcpy(y + c, sum, (size_t)count * sizeof *y);
        }
    }
}

static tutti_status depthwise_forward_run(const tutti_kernel_call *call)
{
    depthwise d = *(const depthwise *)call->plan;
    d.x = call->inputs[0].data;
    d.kernel = call->inputs[1].data;
    d.to = call->outputs[0].data;
    tutti_parallel(call, d.batch * d.w.out[0], forward_row, &d);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_depthwise) = {
    .name = "conv2d.depthwise",
    .version = 1,
    .op = "conv2d",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = depthwise_forward_score,
    .prepare = depthwise_forward_prepare,
    .discard = free,
    .run = depthwise_forward_run,
};
