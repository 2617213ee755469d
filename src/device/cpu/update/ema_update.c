/* ema_update.c: running means in one pass over the memory. */
#include "base/isa.h"
#include "device/cpu/update/update.h"

VEC_INLINE void element(const float *n, vec value, vec *x)
{
    x[0] = n[EMA_DECAY] * x[0] + n[EMA_REST] * value;
}

static void ema_update_piece(void *work, int64_t index)
{
    update_piece(work, index, 0, element);
}

static tutti_status ema_update_run(const tutti_kernel_call *call)
{
    return tutti__update_run(call, ema_update_piece, NULL);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_ema_update_pass) = {
    .name = "ema_update.pass",
    .version = 1,
    .op = "ema_update",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__update_score,
    .workspace = tutti__update_workspace,
    .run = ema_update_run,
};
