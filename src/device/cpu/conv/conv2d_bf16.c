/* conv2d_bf16.c: convolution by products of bf16, where the node allows them. */
#include <stdlib.h>

#include "base/isa.h"
#include "device/cpu/conv/rounded.h"

static bool make(const tutti_kernel_query *query, tutti_rounded_plan *ret)
{
    tutti_convolution c;
    return tutti__rounded_wanted(query->node.attrs, query->node.attr_count, TUTTI_ISA_TEXT) &&
           tutti__conv_query(query, 0, 1, -1, &c) &&
           tutti__rounded_sizes(&c, false, query->threads, ret);
}

static int score(const tutti_kernel_query *query)
{
    tutti_rounded_plan sizes;
    return make(query, &sizes) ? 130 : 0;
}

static size_t workspace(const tutti_kernel_query *query)
{
    tutti_rounded_plan sizes;
    return make(query, &sizes) ? tutti__rounded_workspace(&sizes) : 0;
}

static tutti_status prepare(const tutti_kernel_query *query, void **ret_plan)
{
    tutti_rounded_plan sizes, *plan;
    make(query, &sizes);
    TUTTI_TRY(tutti__rounded_plan(&sizes, &plan));
    *ret_plan = plan;
    return TUTTI_OK;
}

static tutti_status run(const tutti_call *call)
{
    tutti__rounded_run(call, call->plan,
                       (tutti_rounded_layer){.x = call->inputs[0].data,
                                             .kernel = call->inputs[1].data,
                                             .y = call->outputs[0].data});
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_bf16) = {
    .name = "conv2d.bf16",
    .version = 1,
    .op = "conv2d",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT | TUTTI_KERNEL_TUNED,
    .score = score,
    .workspace = workspace,
    .prepare = prepare,
    .discard = free,
    .run = run,
};
