/* depthwise.h: convolutions of bytes in which every channel has a filter of its own. The kernel
 * less its zeros stands in the workspace as i16 [taps, channels]; sums of a block of channels stay
 * in registers or the first cache over all taps. */
#ifndef TUTTI_DEVICE_CPU_INT8_DEPTHWISE_H
#define TUTTI_DEVICE_CPU_INT8_DEPTHWISE_H

#include "device/cpu/int8/finish.h"
#include "ops/network/window.h"
#include "program/kernel.h"

enum { DEPTHWISE_BLOCK = 128 };

typedef struct depthwise_work {
    const tutti_view *x;
    const int16_t *kernel;
    int16_t zero;
    tutti_convolution c;
    tutti_int8_finish finish;
} depthwise_work;

#define DEPTHWISE_ADD(name, T)                                                                     \
    static inline void name(const T *restrict x, const int16_t *restrict kernel, int16_t zero,     \
                            int64_t count, int32_t *restrict sums)                                 \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++)                                                        \
            sums[i] += (int16_t)(x[i] - zero) * kernel[i];                                         \
    }
DEPTHWISE_ADD(depthwise_add_u8, uint8_t)
DEPTHWISE_ADD(depthwise_add_i8, int8_t)

/* Channels [first, first + count) at output column ox of row oy of image n. */
static void depthwise_block(const depthwise_work *w, const int64_t at[3], int64_t first,
                            int64_t count)
{
    const tutti_windows *v = &w->c.windows;
    int64_t channels = w->c.groups, ky, ky_end, kx_first, kx_end;
    int32_t sums[DEPTHWISE_BLOCK] = {0};
    tutti__window_taps(v, 0, at[1], &ky, &ky_end);
    tutti__window_taps(v, 1, at[2], &kx_first, &kx_end);
    for (; ky < ky_end; ky++)
        for (int64_t kx = kx_first; kx < kx_end; kx++) {
            int64_t iy = tutti__window_start(v, 0, at[1]) + ky * v->dilation[0];
            int64_t ix = tutti__window_start(v, 1, at[2]) + kx * v->dilation[1];
            int64_t from = ((at[0] * v->in[0] + iy) * v->in[1] + ix) * channels + first;
            const int16_t *taps = w->kernel + (ky * v->size[1] + kx) * channels + first;
            if (w->x->dtype == TUTTI_U8)
                depthwise_add_u8((const uint8_t *)w->x->data + from, taps, w->zero, count, sums);
            else
                depthwise_add_i8((const int8_t *)w->x->data + from, taps, w->zero, count, sums);
        }
    tutti__int8_finish(&w->finish, (at[0] * v->out[0] + at[1]) * v->out[1] + at[2], first, count,
                       sums);
}

/* One row of one image. */
static void depthwise_piece(void *context, int64_t index)
{
    const depthwise_work *w = context;
    int64_t channels = w->c.groups, rows = w->c.windows.out[0];
    int64_t at[3] = {index / rows, index % rows, 0};
    for (; at[2] < w->c.windows.out[1]; at[2]++)
        for (int64_t first = 0; first < channels; first += DEPTHWISE_BLOCK)
            depthwise_block(w, at, first,
                            channels - first < DEPTHWISE_BLOCK ? channels - first
                                                               : DEPTHWISE_BLOCK);
}

static int depthwise_score(const tutti_kernel_query *query, const tutti_int_conv *c)
{
    const tutti_infer *node = &query->node;
    int64_t groups = tutti_attr_int(node->attrs, node->attr_count, "groups");
    bool own = groups > 1 && groups == node->inputs[c->x].dims[3] &&
               groups == node->inputs[c->kernel].dims[3];
    return own && tutti_type_count(&node->outputs[0]) > 0 ? 150 : 0;
}

static size_t depthwise_workspace(const tutti_kernel_query *query, const tutti_int_conv *c)
{
    return (size_t)tutti_type_count(&query->node.inputs[c->kernel]) * sizeof(int16_t) + 64;
}

static tutti_status depthwise_run(const tutti_kernel_call *call, const tutti_int_conv *c)
{
    const tutti_view *x = &call->inputs[c->x], *kernel = &call->inputs[c->kernel];
    int64_t count = tutti_view_count(kernel), channels = kernel->dims[3];
    int16_t *moved = call->workspace;
    for (int64_t i = 0; i < count; i++)
        moved[i] = (int16_t)(tutti__byte_at(kernel, i) -
                             tutti__zero_of(call, c->kernel_zero, i % channels));
    depthwise_work w = {.x = x,
                        .kernel = moved,
                        .zero = (int16_t)tutti__zero_of(call, c->x_zero, 0),
                        .c = tutti__convolution(call->attrs, call->attr_count, x->dims,
                                                kernel->dims, call->outputs[0].dims),
                        .finish = tutti__int8_finish_of(call, c->finish, c->bias, channels)};
    tutti_parallel(call, w.c.batch * w.c.windows.out[0], depthwise_piece, &w);
    return TUTTI_OK;
}

#endif
