/* max_pool2d_backward.c: each window's gradient goes to its first maximum. */
#include "base/isa.h"
#include "device/cpu/pool/max_gradient.h"

static void run_image(void *context, int64_t image)
{
    max_gradient_image(false, context, image);
}

static tutti_status max_pool2d_backward_run(const tutti_kernel_call *call)
{
    max_gradient w = {call->plan, call->inputs[0].data, call->inputs[1].data,
                      call->outputs[0].data};
    tutti_parallel(call, w.plan->batch, run_image, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_max_pool2d_backward_images) = {
    .name = "max_pool2d_backward.images",
    .version = 3,
    .op = "max_pool2d_backward",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = pool_score,
    .prepare = pool_prepare,
    .discard = free,
    .run = max_pool2d_backward_run,
};
