/* adam_update.c: Adam in one pass over the memory. */
#include "base/isa.h"
#include "device/cpu/update/update.h"

VEC_INLINE void moments(const float *n, vec g, vec *x)
{
    x[1] = n[ADAM_BETA1] * x[1] + n[ADAM_REST1] * g;
    x[2] = n[ADAM_BETA2] * x[2] + n[ADAM_REST2] * (g * g);
}

VEC_INLINE void element(const float *n, vec g, vec *x)
{
    moments(n, g, x);
    x[0] -= n[ADAM_RATE] * x[1] / (vec_sqrt(x[2] * n[ADAM_INVERSE]) + n[ADAM_EPSILON]);
}

VEC_INLINE void element_amsgrad(const float *n, vec g, vec *x)
{
    moments(n, g, x);
    x[3] = vec_select(vec_gt(x[3], x[2]), x[3], x[2]);
    x[0] -= n[ADAM_RATE] * x[1] / (vec_sqrt(x[3] * n[ADAM_INVERSE]) + n[ADAM_EPSILON]);
}

static void adam_update_piece(void *work, int64_t index)
{
    if (((const tutti_update_work *)work)->slots == 3)
        update_piece(work, index, 3, element_amsgrad);
    else
        update_piece(work, index, 2, element);
}

static tutti_status adam_update_run(const tutti_kernel_call *call)
{
    return tutti__update_run(call, adam_update_piece, NULL);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_adam_update_pass) = {
    .name = "adam_update.pass",
    .version = 2,
    .op = "adam_update",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__update_score,
    .workspace = tutti__update_workspace,
    .run = adam_update_run,
};

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_adam_update_rows_pass) = {
    .name = "adam_update_rows.pass",
    .version = 1,
    .op = "adam_update_rows",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__update_score,
    .workspace = tutti__update_workspace,
    .run = adam_update_run,
};
