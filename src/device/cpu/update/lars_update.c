/* lars_update.c: LARS in two passes over the memory: norms, then the move. */
#include "base/isa.h"
#include "device/cpu/update/update.h"

VEC_INLINE vec measure(const float *n, vec g, const vec *x)
{
    (void)n, (void)x;
    return g;
}

VEC_INLINE void element(const float *n, vec g, vec *x)
{
    vec move = n[LARS_RATE] * (g + n[LARS_DECAY] * x[0]);
    x[1] = n[LARS_MOMENTUM] * x[1] + move;
    x[0] -= x[1];
}

VEC_INLINE void element_nesterov(const float *n, vec g, vec *x)
{
    vec move = n[LARS_RATE] * (g + n[LARS_DECAY] * x[0]);
    x[1] = n[LARS_MOMENTUM] * x[1] + move;
    x[0] -= n[LARS_MOMENTUM] * x[1] + move;
}

static void lars_update_piece(void *work, int64_t index)
{
    if (((const tutti_update_work *)work)->numbers[LARS_NESTEROV] != 0)
        update_piece(work, index, 1, element_nesterov);
    else
        update_piece(work, index, 1, element);
}

/* The momentum is no part of what is measured. */
static void measure_piece(void *work, int64_t index)
{
    update_measure(work, index, 0, measure);
}

static tutti_status lars_update_run(const tutti_kernel_call *call)
{
    return tutti__update_run(call, lars_update_piece, measure_piece);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_lars_update_pass) = {
    .name = "lars_update.pass",
    .version = 1,
    .op = "lars_update",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__update_score,
    .workspace = tutti__update_workspace,
    .run = lars_update_run,
};
