/* sgd_update.c: gradient descent in one pass over the memory. */
#include "base/isa.h"
#include "device/cpu/update/update.h"

VEC_INLINE void element(const float *n, vec g, vec *x)
{
    x[0] -= n[SGD_RATE] * g;
}

VEC_INLINE void element_momentum(const float *n, vec g, vec *x)
{
    x[1] = n[SGD_MOMENTUM] * x[1] + n[SGD_INNER] * g;
    x[0] += n[SGD_OUTER] * (n[SGD_OF_SLOT] * x[1] + n[SGD_OF_GRADIENT] * g);
}

static void sgd_update_piece(void *work, int64_t index)
{
    if (((const tutti_update_work *)work)->slots == 1)
        update_piece(work, index, 1, element_momentum);
    else
        update_piece(work, index, 0, element);
}

static tutti_status sgd_update_run(const tutti_kernel_call *call)
{
    return tutti__update_run(call, sgd_update_piece, NULL);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_sgd_update_pass) = {
    .name = "sgd_update.pass",
    .version = 2,
    .op = "sgd_update",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__update_score,
    .workspace = tutti__update_workspace,
    .run = sgd_update_run,
};

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_sgd_update_rows_pass) = {
    .name = "sgd_update_rows.pass",
    .version = 1,
    .op = "sgd_update_rows",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__update_score,
    .workspace = tutti__update_workspace,
    .run = sgd_update_run,
};
