/* check_numerics.c: y = x; the first place of what is no number, or infinite, is the fault. */
#include "device/cuda/operators/operator.h"
#include "tables/cuda_texts.h"

static tutti_status check_numerics_run(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0];
    tutti_cu_pointer from = tutti__cuda_in(c, 0), to = tutti__cuda_out(c, 0), fault = c->fault;
    int64_t count = tutti__cuda_count(x);
    return tutti__cuda_start(c, &tutti_cuda_source_fold, "check_numerics",
                             tutti__cuda_blocks(count), 256, (void *[]){&from, &count, &to, &fault},
                             "-DTYPE=%s -DOUT=float -DFOLD=0 -DLANES=32",
                             tutti__cuda_dtype(x->dtype));
}

const tutti_cuda_kernel tutti_cuda_kernel_check_numerics = {
    .name = "check_numerics",
    .version = 1,
    .op = "check_numerics",
    .inplace = 1,
    .run = check_numerics_run,
};
