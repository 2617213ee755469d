/* all_finite.c: one pass over each gradient. */
#include <stdatomic.h>

#include "base/isa.h"
#include "device/cpu/vector.h"
#include "program/kernel.h"

enum { PIECE = 65536 };

typedef struct work {
    const float *x;
    int64_t count;
    _Atomic bool broken;
} work;

/* x - x is 0 where x is finite, else NaN; NaN stays NaN in a sum. */
static void all_finite_piece(void *context, int64_t index)
{
    work *w = context;
    int64_t i = index * PIECE, end = i + PIECE < w->count ? i + PIECE : w->count;
    vec sum[4] = {{0}};
    float rest = 0;
    if (atomic_load_explicit(&w->broken, memory_order_relaxed))
        return;
    for (; i + 4 * VEC_LANES <= end; i += 4 * VEC_LANES) {
        VEC_UNROLL for (int k = 0; k < 4; k++)
        {
            vec x = vec_load(w->x + i + k * VEC_LANES);
            sum[k] += x - x;
        }
    }
    for (; i < end; i++)
        rest += w->x[i] - w->x[i];
    vec all = sum[0] + sum[1] + sum[2] + sum[3];
    VEC_UNROLL for (int k = 0; k < VEC_LANES; k++) rest += all[k];
    if (rest != 0) /* NaN too */
        atomic_store_explicit(&w->broken, true, memory_order_relaxed);
}

static int all_finite_score(const tutti_kernel_query *query)
{
    for (int i = 0; i < query->node.input_count; i++)
        if (query->node.inputs[i].dtype != TUTTI_F32)
            return 0;
    return 100;
}

static tutti_status all_finite_run(const tutti_kernel_call *call)
{
    bool broken = false;
    for (int i = 0; !broken && i < call->input_count; i++) {
        work w = {.x = call->inputs[i].data, .count = tutti_view_count(&call->inputs[i])};
        tutti_parallel(call, (w.count + PIECE - 1) / PIECE, all_finite_piece, &w);
        broken = w.broken;
    }
    tutti_view_set_int(&call->outputs[0], 0, !broken);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_all_finite_pass) = {
    .name = "all_finite.pass",
    .version = 1,
    .op = "all_finite",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = all_finite_score,
    .run = all_finite_run,
};
