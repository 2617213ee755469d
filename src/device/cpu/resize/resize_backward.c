/* resize_backward.c: the gradient of resize's input, axis after axis. */
#include "device/cpu/resize/resize.h"

static int resize_backward_score(const tutti_kernel_query *query)
{
    return resize_takes(query) ? 100 : 0;
}

static size_t resize_backward_workspace(const tutti_kernel_query *query)
{
    return resize_workspace(query, true);
}

static tutti_status resize_backward_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    return resize_prepare(query, true, ret_plan);
}

static tutti_status resize_backward_run(const tutti_kernel_call *call)
{
    return resize_run(call);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_resize_backward) = {
    .name = "resize_backward.lines",
    .version = 1,
    .op = "resize_backward",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = resize_backward_score,
    .workspace = resize_backward_workspace,
    .prepare = resize_backward_prepare,
    .discard = resize_discard,
    .run = resize_backward_run,
};
