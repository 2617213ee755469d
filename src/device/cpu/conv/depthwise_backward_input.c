/* depthwise_backward_input.c: dx[h, c] = sum over taps with h = o stride - before + tap dilation of
 * dy[o, c] k[tap, c]. */
#include "base/isa.h"
#include "device/cpu/conv/depthwise.h"

static int depthwise_backward_input_score(const tutti_kernel_query *query)
{
    depthwise d;
    return depthwise_make(query, -1, 0, 1, &d) ? 110 : 0;
}

static tutti_status depthwise_backward_input_prepare(const tutti_kernel_query *query,
                                                     void **ret_plan)
{
    depthwise d = {0};
    depthwise_make(query, -1, 0, 1, &d);
    return depthwise_keep(&d, ret_plan);
}

/* The output whose tap reads position `at`; -1 when there is none. */
static int64_t output_of(const tutti_windows *w, int axis, int64_t at, int64_t tap)
{
    int64_t from = at + w->before[axis] - tap * w->dilation[axis], out = from / w->stride[axis];
    return from >= 0 && from % w->stride[axis] == 0 && out < w->out[axis] ? out : -1;
}

/* Piece: one row of inputs. */
static void backward_row(void *context, int64_t piece)
{
    const depthwise *d = context;
    const tutti_windows *w = &d->w;
    int64_t row = piece % w->in[0], image = piece / w->in[0];
    const float *y = d->y + image * w->out[0] * w->out[1] * d->channels;
    float *to = d->to + piece * w->in[1] * d->channels;
    for (int64_t column = 0; column < w->in[1]; column++, to += d->channels)
        for (int64_t c = 0; c < d->channels; c += LANES) {
            int64_t count = d->channels - c < LANES ? d->channels - c : LANES;
            float sum[LANES] = {0};
            for (int64_t i = 0; i < w->size[0]; i++) {
                int64_t h = output_of(w, 0, row, i);
                for (int64_t j = 0; h >= 0 && j < w->size[1]; j++) {
                    int64_t v = output_of(w, 1, column, j);
                    if (v >= 0)
                        add_products(count, y + (h * w->out[1] + v) * d->channels + c,
                                     d->kernel + (i * w->size[1] + j) * d->channels + c, sum);
                }
            }
            memcpy(to + c, sum, (size_t)count * sizeof *to);
        }
}

static tutti_status depthwise_backward_input_run(const tutti_kernel_call *call)
{
    depthwise d = *(const depthwise *)call->plan;
    d.kernel = call->inputs[0].data;
    d.y = call->inputs[1].data;
    d.to = call->outputs[0].data;
    tutti_parallel(call, d.batch * d.w.in[0], backward_row, &d);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_backward_input_depthwise) = {
    .name = "conv2d_backward_input.depthwise",
    .version = 1,
    .op = "conv2d_backward_input",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = depthwise_backward_input_score,
    .prepare = depthwise_backward_input_prepare,
    .discard = free,
    .run = depthwise_backward_input_run,
};
