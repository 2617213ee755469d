/* nadam_update.c: Nadam in one pass over the memory. */
#include "base/isa.h"
#include "device/cpu/update/update.h"

VEC_INLINE void element(const float *n, vec g, vec *x)
{
    x[1] = n[NADAM_BETA1] * x[1] + n[NADAM_REST1] * g;
    x[2] = n[NADAM_BETA2] * x[2] + n[NADAM_REST2] * (g * g);
    x[0] -= (n[NADAM_OF_MEAN] * x[1] + n[NADAM_OF_GRADIENT] * g) /
            (vec_sqrt(x[2] * n[NADAM_INVERSE]) + n[NADAM_EPSILON]);
}

static void nadam_update_piece(void *work, int64_t index)
{
    update_piece(work, index, 2, element);
}

static tutti_status nadam_update_run(const tutti_kernel_call *call)
{
    return tutti__update_run(call, nadam_update_piece, NULL);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_nadam_update_pass) = {
    .name = "nadam_update.pass",
    .version = 1,
    .op = "nadam_update",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__update_score,
    .workspace = tutti__update_workspace,
    .run = nadam_update_run,
};

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_nadam_update_rows_pass) = {
    .name = "nadam_update_rows.pass",
    .version = 1,
    .op = "nadam_update_rows",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__update_score,
    .workspace = tutti__update_workspace,
    .run = nadam_update_run,
};
