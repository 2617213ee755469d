/* conv2d_backward_input_winograd.c: the gradient of the input of a 3 x 3 convolution: a convolution
 * over the gradient of the output, with the kernel turned round, by transformed tiles. */
#include "base/isa.h"
#include "device/cpu/conv/winograd_run.h"

static bool conv2d_backward_input_winograd_make(const tutti_kernel_query *query, winograd_plan *ret)
{
    tutti_convolution c;
    return tutti__conv_query(query, -1, 0, 1, &c) && winograd_plan_make(query, &c, true, ret) &&
           winograd_pays(ret);
}

static int conv2d_backward_input_winograd_score(const tutti_kernel_query *query)
{
    winograd_plan p;
    return conv2d_backward_input_winograd_make(query, &p) ? 120 : 0;
}

static size_t conv2d_backward_input_winograd_workspace(const tutti_kernel_query *query)
{
    winograd_plan p;
    return conv2d_backward_input_winograd_make(query, &p) ? winograd_workspace(&p) : 0;
}

static tutti_status conv2d_backward_input_winograd_prepare(const tutti_kernel_query *query,
                                                           void **ret_plan)
{
    winograd_plan p = {0};
    conv2d_backward_input_winograd_make(query, &p);
    return winograd_plan_keep(&p, ret_plan);
}

static tutti_status conv2d_backward_input_winograd_run(const tutti_kernel_call *call)
{
    conv_finish finish = conv_finish_of(NULL, false);
    winograd_run(call, call->plan, true, call->inputs[1].data, call->inputs[0].data, NULL, &finish);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_backward_input_winograd) = {
    .name = "conv2d_backward_input.winograd",
    .version = 1,
    .op = "conv2d_backward_input",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT | TUTTI_KERNEL_TUNED,
    .score = conv2d_backward_input_winograd_score,
    .workspace = conv2d_backward_input_winograd_workspace,
    .prepare = conv2d_backward_input_winograd_prepare,
    .discard = free,
    .run = conv2d_backward_input_winograd_run,
};
