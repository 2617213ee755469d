/* assign.c: assign(v, x): v = x; y = x. */
#include "device/cuda/operators/operator.h"

static tutti_status assign_run(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[1];
    int64_t bytes = tutti__cuda_count(x) * (int64_t)tutti_dtype_size(x->dtype);
    TUTTI_TRY(tutti__cuda_copy(c, tutti__cuda_in(c, 0), tutti__cuda_in(c, 1), bytes));
    return tutti__cuda_copy(c, tutti__cuda_out(c, 0), tutti__cuda_in(c, 1), bytes);
}

const tutti_cuda_kernel tutti_cuda_kernel_assign = {
    .name = "assign",
    .version = 1,
    .op = "assign",
    .run = assign_run,
};
