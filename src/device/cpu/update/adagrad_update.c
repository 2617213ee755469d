/* adagrad_update.c: Adagrad in one pass over the memory. */
#include "base/isa.h"
#include "device/cpu/update/update.h"

VEC_INLINE void element(const float *n, vec g, vec *x)
{
    x[1] += g * g;
    x[0] -= n[ADAGRAD_RATE] * g / (vec_sqrt(x[1] + n[ADAGRAD_INSIDE]) + n[ADAGRAD_OUTSIDE]);
}

static void adagrad_update_piece(void *work, int64_t index)
{
    update_piece(work, index, 1, element);
}

static tutti_status adagrad_update_run(const tutti_kernel_call *call)
{
    return tutti__update_run(call, adagrad_update_piece, NULL);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_adagrad_update_pass) = {
    .name = "adagrad_update.pass",
    .version = 1,
    .op = "adagrad_update",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__update_score,
    .workspace = tutti__update_workspace,
    .run = adagrad_update_run,
};

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_adagrad_update_rows_pass) = {
    .name = "adagrad_update_rows.pass",
    .version = 1,
    .op = "adagrad_update_rows",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__update_score,
    .workspace = tutti__update_workspace,
    .run = adagrad_update_run,
};
