/* resize.c: larger and smaller images, axis after axis. */
#include "device/cpu/resize/resize.h"

static int resize_score(const tutti_kernel_query *query)
{
    return resize_takes(query) ? 100 : 0;
}

static size_t workspace(const tutti_kernel_query *query)
{
    return resize_workspace(query, false);
}

static tutti_status prepare(const tutti_kernel_query *query, void **ret_plan)
{
    return resize_prepare(query, false, ret_plan);
}

static tutti_status run(const tutti_kernel_call *call)
{
    return resize_run(call);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_resize) = {
    .name = "resize.lines",
    .version = 1,
    .op = "resize",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = resize_score,
    .workspace = workspace,
    .prepare = prepare,
    .discard = resize_discard,
    .run = run,
};
