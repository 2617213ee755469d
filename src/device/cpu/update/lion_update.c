/* lion_update.c: Lion in one pass over the memory. */
#include "base/isa.h"
#include "device/cpu/update/update.h"

VEC_INLINE void element(const float *n, vec g, vec *x)
{
    const vec none = {0};
    vec mean = n[LION_BETA1] * x[1] + n[LION_REST1] * g;
    vec sign = vec_select(vec_ne(mean, none), vec_copysign(vec_splat(1), mean), none);
    x[0] -= n[LION_RATE] * vec_select(vec_eq(mean, mean), sign, mean);
    x[1] = n[LION_BETA2] * x[1] + n[LION_REST2] * g;
}

static void lion_update_piece(void *work, int64_t index)
{
    update_piece(work, index, 1, element);
}

static tutti_status lion_update_run(const tutti_kernel_call *call)
{
    return tutti__update_run(call, lion_update_piece, NULL);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_lion_update_pass) = {
    .name = "lion_update.pass",
    .version = 1,
    .op = "lion_update",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__update_score,
    .workspace = tutti__update_workspace,
    .run = lion_update_run,
};
