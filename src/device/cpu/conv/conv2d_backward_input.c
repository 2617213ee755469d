/* conv2d_backward_input.c: the gradient of the input: a direct convolution over the gradient of the
 * output, spread by the stride, with the kernel turned round. */
#include "device/cpu/conv/direct.h"
#include "program/isa.h"

static bool make(const tutti_kernel_query *query, direct_plan *ret)
{
    return direct_plan_make(query, -1, 0, 1, tutti__direct_backward, ret);
}

static int score(const tutti_kernel_query *query)
{
    direct_plan p;
    return make(query, &p) ? 100 : 0;
}

static size_t workspace(const tutti_kernel_query *query)
{
    direct_plan p;
    return make(query, &p) ? direct_plan_workspace(&p) : 0;
}

static tutti_status prepare(const tutti_kernel_query *query, void **ret_plan)
{
    direct_plan p = {0};
    make(query, &p);
    return direct_plan_keep(&p, ret_plan);
}

/* Kernel [kh, kw, cin, cout] into panels over cin of taps (kh, kw turned round, cout). Here cin are
 * the filters of the shape and cout its channels. */
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
    return direct_run(call, call->inputs[1].data, call->inputs[0].data, pack);
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
