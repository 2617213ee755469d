/* all_to_all.c: rank i gets piece i along "split_dim" of every input, joined along "concat_dim". */
#include "exec/kernels/collective.h"

static tutti_status exchange(const tutti_kernel_call *call, const tutti_meeting *meeting,
                             tutti_tensor *output)
{
    int rank = call->outputs[0].rank;
    int split = tutti__dim_attr(call, "split_dim", rank),
        concat = tutti__dim_attr(call, "concat_dim", rank);
    int64_t piece = tutti_tensor_dims(meeting->all[0])[split] / meeting->size;
    int64_t length = split == concat ? piece : tutti_tensor_dims(meeting->all[0])[concat];
    for (int i = 0; i < meeting->size; i++)
        TUTTI_TRY(tutti__copy_piece(meeting->all[i], split, meeting->rank * piece, piece, output,
                                    concat, i * length));
    return TUTTI_OK;
}

static tutti_status all_to_all_run(const tutti_kernel_call *call)
{
    tutti_meeting meeting;
    tutti_tensor *output;
    TUTTI_TRY(tutti__meet(call, &meeting));
    tutti_status status = tutti__borrow_output(call, &output);
    if (status == TUTTI_OK) {
        status = exchange(call, &meeting, output);
        tutti_tensor_release(output);
    }
    tutti__meeting_end(&meeting);
    return status;
}

const tutti_kernel tutti_kernel_all_to_all = {
    .name = "all_to_all.local",
    .version = 1,
    .op = "all_to_all",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = all_to_all_run,
};
