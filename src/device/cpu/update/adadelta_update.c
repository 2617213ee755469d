/* adadelta_update.c: Adadelta in one pass over the memory. */
#include "base/isa.h"
#include "device/cpu/update/update.h"

VEC_INLINE void element(const float *n, vec g, vec *x)
{
    x[1] = n[ADADELTA_RHO] * x[1] + n[ADADELTA_REST] * (g * g);
    vec move = g * vec_sqrt((x[2] + n[ADADELTA_EPSILON]) / (x[1] + n[ADADELTA_EPSILON]));
    x[2] = n[ADADELTA_RHO] * x[2] + n[ADADELTA_REST] * (move * move);
    x[0] -= n[ADADELTA_RATE] * move;
}

static void adadelta_update_piece(void *work, int64_t index)
{
    update_piece(work, index, 2, element);
}

static tutti_status adadelta_update_run(const tutti_kernel_call *call)
{
    return tutti__update_run(call, adadelta_update_piece, NULL);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_adadelta_update_pass) = {
    .name = "adadelta_update.pass",
    .version = 1,
    .op = "adadelta_update",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__update_score,
    .workspace = tutti__update_workspace,
    .run = adadelta_update_run,
};
