/* square_sum.c: one pass over each gradient. Sums of pieces are added in order, so that the bits do
 * not depend on threads. */
#include "base/isa.h"
#include "device/cpu/vector.h"
#include "ops/update/update.h"
#include "program/kernel.h"

enum { PIECE = 32768, BLOCK = 32 /* times four registers, before they go into a double */ };

typedef struct work {
    const float *x;
    int64_t count;
    double *sums; /* one for each piece */
} work;

static void square_sum_piece(void *context, int64_t index)
{
    const work *w = context;
    int64_t i = index * PIECE, end = i + PIECE < w->count ? i + PIECE : w->count;
    double total = 0;
    while (i + 4 * VEC_LANES <= end) {
        vec sum[4] = {{0}};
        for (int b = 0; b < BLOCK && i + 4 * VEC_LANES <= end; b++, i += 4 * VEC_LANES) {
            VEC_UNROLL for (int k = 0; k < 4; k++)
            {
                vec x = vec_load(w->x + i + k * VEC_LANES);
                sum[k] = vec_fma(x, x, sum[k]);
            }
        }
        vec all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        VEC_UNROLL for (int k = 0; k < VEC_LANES; k++) total += all[k];
    }
    for (; i < end; i++)
        total += (double)w->x[i] * w->x[i];
    w->sums[index] = total;
}

static int64_t pieces_of(int64_t count)
{
    return (count + PIECE - 1) / PIECE;
}

static int square_sum_score(const tutti_kernel_query *query)
{
    for (int i = 0; i < query->node.input_count; i++)
        if (query->node.inputs[i].dtype != TUTTI_F32)
            return 0;
    return 100;
}

static size_t square_sum_workspace(const tutti_kernel_query *query)
{
    int64_t most = 0;
    for (int i = 0; i < query->node.input_count; i++) {
        int64_t count = 1;
        for (int k = 0; k < query->node.inputs[i].rank; k++)
            count *= query->node.inputs[i].dims[k];
        most = count > most ? count : most;
    }
    return (size_t)pieces_of(most) * sizeof(double);
}

static tutti_status square_sum_run(const tutti_kernel_call *call)
{
    double total = 0;
    for (int i = 0; i < call->input_count; i++) {
        int64_t first, end;
        tutti__square_sum_range(call->attrs, call->attr_count, i,
                                tutti_view_count(&call->inputs[i]), &first, &end);
        work w = {(const float *)call->inputs[i].data + first, end - first, call->workspace};
        tutti_parallel(call, pieces_of(w.count), square_sum_piece, &w);
        for (int64_t k = 0; k < pieces_of(w.count); k++)
            total += w.sums[k];
    }
    tutti_view_set(&call->outputs[0], 0, total);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_square_sum_pass) = {
    .name = "square_sum.pass",
    .version = 1,
    .op = "square_sum",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = square_sum_score,
    .workspace = square_sum_workspace,
    .run = square_sum_run,
};
