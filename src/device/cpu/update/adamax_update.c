/* adamax_update.c: Adamax in one pass over the memory. */
#include "base/isa.h"
#include "device/cpu/update/update.h"

VEC_INLINE void element(const float *n, vec g, vec *x)
{
    vec size = vec_abs(g) + n[ADAMAX_INSIDE], faded = n[ADAMAX_BETA2] * x[2];
    x[1] = n[ADAMAX_BETA1] * x[1] + n[ADAMAX_REST1] * g;
    x[2] = vec_select(vec_gt(faded, size), faded, size);
    x[0] -= n[ADAMAX_RATE] * x[1] / (x[2] + n[ADAMAX_OUTSIDE]);
}

static void adamax_update_piece(void *work, int64_t index)
{
    update_piece(work, index, 2, element);
}

static tutti_status adamax_update_run(const tutti_kernel_call *call)
{
    return tutti__update_run(call, adamax_update_piece, NULL);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_adamax_update_pass) = {
    .name = "adamax_update.pass",
    .version = 1,
    .op = "adamax_update",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__update_score,
    .workspace = tutti__update_workspace,
    .run = adamax_update_run,
};

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_adamax_update_rows_pass) = {
    .name = "adamax_update_rows.pass",
    .version = 1,
    .op = "adamax_update_rows",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__update_score,
    .workspace = tutti__update_workspace,
    .run = adamax_update_run,
};
