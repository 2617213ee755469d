/* lamb_update.c: LAMB in two passes over the memory: norms, then the move. */
#include "base/isa.h"
#include "device/cpu/update/update.h"

VEC_INLINE vec direction(const float *n, vec m, vec s)
{
    return m * n[LAMB_INVERSE1] / (vec_sqrt(s * n[LAMB_INVERSE2]) + n[LAMB_EPSILON]);
}

VEC_INLINE vec measure(const float *n, vec g, const vec *x)
{
    return direction(n, n[LAMB_BETA1] * x[1] + n[LAMB_REST1] * g,
                     n[LAMB_BETA2] * x[2] + n[LAMB_REST2] * (g * g));
}

VEC_INLINE void element(const float *n, vec g, vec *x)
{
    x[1] = n[LAMB_BETA1] * x[1] + n[LAMB_REST1] * g;
    x[2] = n[LAMB_BETA2] * x[2] + n[LAMB_REST2] * (g * g);
    x[0] -= n[LAMB_RATE] * direction(n, x[1], x[2]);
}

static void lamb_update_piece(void *work, int64_t index)
{
    update_piece(work, index, 2, element);
}

static void measure_piece(void *work, int64_t index)
{
    update_measure(work, index, 2, measure);
}

static tutti_status lamb_update_run(const tutti_kernel_call *call)
{
    return tutti__update_run(call, lamb_update_piece, measure_piece);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_lamb_update_pass) = {
    .name = "lamb_update.pass",
    .version = 1,
    .op = "lamb_update",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__update_score,
    .workspace = tutti__update_workspace,
    .run = lamb_update_run,
};
