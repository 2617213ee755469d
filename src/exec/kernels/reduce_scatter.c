/* reduce_scatter.c: rank i gets piece i along dimension "dim" of the reduction of all inputs. */
#include "exec/kernels/collective.h"

static tutti_status scatter(const tutti_kernel_call *call, const tutti_meeting *meeting,
                            tutti_tensor *sum)
{
    tutti_tensor *output;
    int dim = tutti__dim_attr(call, "dim", call->outputs[0].rank);
    int64_t size = tutti_tensor_dims(sum)[dim] / meeting->size;
    TUTTI_TRY(tutti__borrow_output(call, &output));
    tutti_status status = tutti__copy_piece(sum, dim, meeting->rank * size, size, output, dim, 0);
    tutti_tensor_release(output);
    return status;
}

static tutti_status reduce_scatter_run(const tutti_kernel_call *call)
{
    tutti_meeting meeting;
    tutti_tensor *sum = NULL;
    TUTTI_TRY(tutti__meet(call, &meeting));
    tutti_status status = tutti__meeting_reduce(call, &meeting, &sum);
    if (status == TUTTI_OK)
        status = scatter(call, &meeting, sum);
    tutti_tensor_release(sum);
    tutti__meeting_end(&meeting);
    return status;
}

const tutti_kernel tutti_kernel_reduce_scatter = {
    .name = "reduce_scatter.local",
    .version = 1,
    .op = "reduce_scatter",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = reduce_scatter_run,
};
