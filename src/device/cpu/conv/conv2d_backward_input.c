/* conv2d_backward_input.c: the gradient of the input: direct convolutions over the gradient of the
 * output, one for each remainder of the position by the stride. */
#include "base/isa.h"
#include "device/cpu/conv/direct.h"

static int conv2d_backward_input_score(const tutti_kernel_query *query)
{
    tutti_convolution c;
    return tutti__conv_query(query, -1, 0, 1, &c) ? 100 : 0;
}

static size_t conv2d_backward_input_workspace(const tutti_kernel_query *query)
{
    tutti_convolution c;
    if (!tutti__conv_query(query, -1, 0, 1, &c))
        return 0;
    tutti_conv_windows sizes = tutti__conv_windows_sizes(&c, true);
    return direct_workspace(&sizes);
}

static tutti_status conv2d_backward_input_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    tutti_convolution c;
    tutti_conv_windows *walk;
    tutti__conv_query(query, -1, 0, 1, &c);
    TUTTI_TRY(tutti__conv_windows(&c, true, &walk));
    *ret_plan = walk;
    return TUTTI_OK;
}

static tutti_status conv2d_backward_input_run(const tutti_kernel_call *call)
{
    direct_work work = {.x = call->inputs[1].data,
                        .kernel = call->inputs[0].data,
                        .y = call->outputs[0].data,
                        .backward = true,
                        .finish = conv_finish_of(NULL, false)};
    direct_run(call, call->plan, &work);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_backward_input_direct) = {
    .name = "conv2d_backward_input.direct",
    .version = 2,
    .op = "conv2d_backward_input",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT | TUTTI_KERNEL_TUNED,
    .score = conv2d_backward_input_score,
    .workspace = conv2d_backward_input_workspace,
    .prepare = conv2d_backward_input_prepare,
    .discard = free,
    .run = conv2d_backward_input_run,
};
