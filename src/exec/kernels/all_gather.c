/* all_gather.c: everybody gets all inputs, joined along dimension "dim" in the order of ranks. */
#include "exec/kernels/collective.h"

static tutti_status all_gather_run(const tutti_kernel_call *call)
{
    tutti_meeting meeting;
    tutti_tensor *output = NULL;
    TUTTI_TRY(tutti__meet(call, &meeting));
    tutti_status status = tutti__borrow_output(call, &output);
    int dim = tutti__dim_attr(call, "dim", call->outputs[0].rank);
    int64_t at = 0;
    for (int i = 0; status == TUTTI_OK && i < meeting.size; i++) {
        int64_t size = tutti_tensor_dims(meeting.all[i])[dim];
        status = tutti__copy_piece(meeting.all[i], dim, 0, size, output, dim, at);
        at += size;
    }
    tutti__meeting_end(&meeting);
    tutti_tensor_release(output);
    return status;
}

const tutti_kernel tutti_kernel_all_gather = {
    .name = "all_gather.local",
    .version = 1,
    .op = "all_gather",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = all_gather_run,
};
