/* conv2d.c: convolution forward, direct. */
#include <stdlib.h>

#include "device/cpu/conv/direct.h"
#include "program/isa.h"

typedef struct plan {
    tutti_direct_conv shape;
    tutti_conv_padding padding;
    int64_t padded; /* floats of padded input before the panels, a multiple of 16 */
} plan;

static bool make(const tutti_kernel_query *query, plan *ret)
{
    tutti_convolution c;
    if (!tutti__conv_query(query, 0, 1, -1, &c))
        return false;
    tutti__direct_forward(&c, &ret->shape, &ret->padding);
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

/* Kernel [taps, filters] into panels [taps][TILE_FILTERS]. */
static void pack(const tutti_direct_conv *c, const float *kernel, float *panels)
{
    for (int64_t p = 0; p < panel_count(c->filters); p++) {
        int64_t first = p * TILE_FILTERS, count = c->filters - first < TILE_FILTERS ? c->filters - first : TILE_FILTERS;
        for (int64_t t = 0; t < c->taps; t++, panels += TILE_FILTERS) {
            memcpy(panels, kernel + t * c->filters + first, (size_t)count * sizeof *panels);
            memset(panels + count, 0, (size_t)(TILE_FILTERS - count) * sizeof *panels);
        }
    }
}

static tutti_status run(const tutti_call *call)
{
    const plan *p = call->plan;
    float *padded = call->workspace, *panels = padded + p->padded;
    const float *x = tutti__conv_pad(call, &p->shape, &p->padding, call->inputs[0].data, padded);
    pack(&p->shape, call->inputs[1].data, panels);
    convolve(call, &p->shape, x, panels, call->outputs[0].data);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_direct) = {
    .name = "conv2d.direct",
    .version = 1,
    .op = "conv2d",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score,
    .workspace = workspace,
    .prepare = prepare,
    .discard = free,
    .run = run,
};
