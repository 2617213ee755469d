/* conv2d.c: convolution forward, direct. */
#include "device/cpu/conv/direct.h"
#include "program/isa.h"

static bool make(const tutti_kernel_query *query, direct_plan *ret)
{
    return direct_plan_make(query, 0, 1, -1, tutti__direct_forward, ret);
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

/* Kernel [taps, filters] into panels [taps][TILE_FILTERS]. */
static void pack(const tutti_direct_conv *c, const float *kernel, float *panels)
{
    for (int64_t p = 0; p < panel_count(c->filters); p++) {
        int64_t first = p * TILE_FILTERS,
                count = c->filters - first < TILE_FILTERS ? c->filters - first : TILE_FILTERS;
        for (int64_t t = 0; t < c->taps; t++, panels += TILE_FILTERS) {
            memcpy(panels, kernel + t * c->filters + first, (size_t)count * sizeof *panels);
            memset(panels + count, 0, (size_t)(TILE_FILTERS - count) * sizeof *panels);
        }
    }
}

static tutti_status run(const tutti_call *call)
{
    return direct_run(call, call->inputs[0].data, call->inputs[1].data, pack);
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
