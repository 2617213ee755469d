/* rmsprop_update.c: RMSprop in one pass over the memory. */
#include "base/isa.h"
#include "device/cpu/update/update.h"

/* What g is divided by, from the mean square and what is taken off it. */
VEC_INLINE vec move_of(const float *n, vec g, vec spread)
{
    return n[RMSPROP_INNER] * g / (vec_sqrt(spread + n[RMSPROP_INSIDE]) + n[RMSPROP_OUTSIDE]);
}

VEC_INLINE vec plain(const float *n, vec g, vec *x)
{
    x[1] = n[RMSPROP_RHO] * x[1] + n[RMSPROP_REST] * (g * g);
    return move_of(n, g, x[1]);
}

VEC_INLINE vec centered(const float *n, vec g, vec *x)
{
    x[1] = n[RMSPROP_RHO] * x[1] + n[RMSPROP_REST] * (g * g);
    x[2] = n[RMSPROP_RHO] * x[2] + n[RMSPROP_REST] * g;
    return move_of(n, g, vec_at_least(x[1] - x[2] * x[2], 0));
}

VEC_INLINE void element(const float *n, vec g, vec *x)
{
    x[0] -= n[RMSPROP_OUTER] * plain(n, g, x);
}

VEC_INLINE void element_momentum(const float *n, vec g, vec *x)
{
    vec move = plain(n, g, x);
    x[2] = n[RMSPROP_MOMENTUM] * x[2] + move;
    x[0] -= n[RMSPROP_OUTER] * x[2];
}

VEC_INLINE void element_centered(const float *n, vec g, vec *x)
{
    x[0] -= n[RMSPROP_OUTER] * centered(n, g, x);
}

VEC_INLINE void element_both(const float *n, vec g, vec *x)
{
    vec move = centered(n, g, x);
    x[3] = n[RMSPROP_MOMENTUM] * x[3] + move;
    x[0] -= n[RMSPROP_OUTER] * x[3];
}

static void rmsprop_update_piece(void *work, int64_t index)
{
    const tutti_update_work *w = work;
    if (w->slots == 3)
        update_piece(work, index, 3, element_both);
    else if (w->slots == 1)
        update_piece(work, index, 1, element);
    else if (w->numbers[RMSPROP_CENTERED] != 0)
        update_piece(work, index, 2, element_centered);
    else
        update_piece(work, index, 2, element_momentum);
}

static tutti_status rmsprop_update_run(const tutti_kernel_call *call)
{
    return tutti__update_run(call, rmsprop_update_piece, NULL);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_rmsprop_update_pass) = {
    .name = "rmsprop_update.pass",
    .version = 1,
    .op = "rmsprop_update",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__update_score,
    .workspace = tutti__update_workspace,
    .run = rmsprop_update_run,
};

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_rmsprop_update_rows_pass) = {
    .name = "rmsprop_update_rows.pass",
    .version = 1,
    .op = "rmsprop_update_rows",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__update_score,
    .workspace = tutti__update_workspace,
    .run = rmsprop_update_run,
};
