/* conv2d_backward_input.c: the gradient of the input: a direct convolution over the gradient of the
 * output, spread by the stride, with the kernel turned round. */
#include <stdlib.h>

#include "device/cpu/conv/direct.h"
#include "program/isa.h"

typedef struct plan {
    tutti_direct_conv shape;
    tutti_conv_padding padding;
    int64_t padded;
} plan;

static bool make(const tutti_kernel_query *query, plan *ret)
{
    tutti_convolution c;
    if (!tutti__conv_query(query, -1, 0, 1, &c))
        return false;
    tutti__direct_backward(&c, &ret->shape, &ret->padding);
    ret->padded = (tutti__conv_padded_size(&ret->shape, &ret->padding) + 15) / 16 * 16;
    return true;
}

static int score(const tutti_kernel_query *query)
{
    plan p;
    return make(query, &p) ? 100 : 0;
}

static size_t workspace(const tutti_kernel_query *query)
{
    plan p;
    return make(query, &p) ? (size_t)(p.padded + panels_size(p.shape.taps, p.shape.filters)) * sizeof(float) : 0;
}

static tutti_status prepare(const tutti_kernel_query *query, void **ret_plan)
{
    plan *p = calloc(1, sizeof *p);
    if (!p)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    make(query, p);
    *ret_plan = p;
    return TUTTI_OK;
}

/* Kernel [kh, kw, cin, cout] into panels over cin of taps (kh, kw turned round, cout). Here cin are the
 * filters of the shape and cout its channels. */
static void pack(const tutti_direct_conv *c, const float *kernel, float *panels)
{
    int64_t cells = c->size[0] * c->size[1], cin = c->filters, cout = c->channels;
    for (int64_t p = 0; p < panel_count(cin); p++)
        for (int64_t cell = 0; cell < cells; cell++) {
            const float *from = kernel + (cells - 1 - cell) * cin * cout;
            for (int64_t o = 0; o < cout; o++, panels += TILE_FILTERS)
                for (int64_t i = 0; i < TILE_FILTERS; i++) {
                    int64_t channel = p * TILE_FILTERS + i;
                    panels[i] = channel < cin ? from[channel * cout + o] : 0;
                }
        }
}

static tutti_status run(const tutti_call *call)
{
    const plan *p = call->plan;
    float *padded = call->workspace, *panels = padded + p->padded;
    const float *grad = tutti__conv_pad(call, &p->shape, &p->padding, call->inputs[1].data, padded);
    pack(&p->shape, call->inputs[0].data, panels);
    convolve(call, &p->shape, grad, panels, call->outputs[0].data);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_backward_input_direct) = {
    .name = "conv2d_backward_input.direct",
    .version = 1,
    .op = "conv2d_backward_input",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score,
    .workspace = workspace,
    .prepare = prepare,
    .discard = free,
    .run = run,
};
