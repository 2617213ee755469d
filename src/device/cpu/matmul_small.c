/* matmul_small.c: batches of products of matrices of a few rows and columns: where a tile would be
 * nearly empty, elements are computed as they stand.
 *
 * Every element is the sum over k, in order, of fused multiply-adds from zero, which is what the
 * plain tiles give: the bits are the same. */
#include <stdlib.h>

#include "base/isa.h"
#include "device/cpu/matmul_batch.h"
#include "device/cpu/vector.h"

enum { MOST = 8, TASK = 1 << 14 }; /* rows, columns and k; multiply-adds of a task, about */

typedef struct small_plan {
    int64_t m, n, k, a_row, a_step, b_row, b_step;
    matmul_batch batch;
    int64_t task; /* products */
} small_plan;

static small_plan matmul_small_plan_of(const tutti_infer *node)
{
    const tutti_type *a = &node->inputs[0], *y = &node->outputs[0];
    bool trans_a = tutti_attr_int(node->attrs, node->attr_count, "transpose_a") != 0;
    bool trans_b = tutti_attr_int(node->attrs, node->attr_count, "transpose_b") != 0;
    small_plan p = {
        .m = y->dims[y->rank - 2], .n = y->dims[y->rank - 1], .batch = matmul_batch_of(node)};
    p.k = a->dims[a->rank - 1 - trans_a];
    p.a_row = trans_a ? 1 : p.k;
    p.a_step = trans_a ? p.m : 1;
    p.b_row = trans_b ? 1 : p.n;
    p.b_step = trans_b ? p.k : 1;
    int64_t steps = p.m * p.n * p.k;
    p.task = steps > 0 && steps < TASK ? TASK / steps : 1;
    return p;
}

static int matmul_small_score(const tutti_kernel_query *query)
{
    const tutti_type *b = &query->node.inputs[1];
    small_plan p = matmul_small_plan_of(&query->node);
    /* One matrix b makes one product of many rows. */
    return query->node.outputs[0].dtype == TUTTI_F32 && b->rank > 2 && p.batch.count > 1 &&
                   p.m <= MOST && p.n <= MOST && p.k > 0 && p.k <= MOST
               ? 110
               : 0;
}

static tutti_status matmul_small_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    small_plan plan = matmul_small_plan_of(&query->node);
    return tutti__kernel_keep(query, &plan, sizeof plan, ret_plan);
}

/* With n and k as constants the compiler keeps a row of y in registers. */
VEC_INLINE void product(const small_plan *p, int64_t n, int64_t k, const float *a, const float *b,
                        float *y)
{
    for (int64_t i = 0; i < p->m; i++, a += p->a_row, y += n)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t q = 0; q < k; q++) {
                float x = a[q * p->a_step], z = b[q * p->b_row + j * p->b_step];
                sum = VEC_FUSED ? __builtin_fmaf(z, x, sum) : sum + z * x;
            }
            y[j] = sum;
        }
}

static void matmul_small_multiply(const small_plan *p, const float *a, const float *b, float *y)
{
    if (p->n == 1 && p->k == 3)
        product(p, 1, 3, a, b, y);
    else if (p->n == 3 && p->k == 3)
        product(p, 3, 3, a, b, y);
    else if (p->n == 1 && p->k == 4)
        product(p, 1, 4, a, b, y);
    else if (p->n == 4 && p->k == 4)
        product(p, 4, 4, a, b, y);
    else
        product(p, p->n, p->k, a, b, y);
}

typedef struct work {
    const small_plan *plan;
    const float *a, *b;
    float *y;
} work;

static void matmul_small_piece(void *context, int64_t index)
{
    const work *w = context;
    const small_plan *p = w->plan;
    const matmul_batch *batch = &p->batch;
    int64_t first = index * p->task;
    int64_t end = batch->count - first < p->task ? batch->count : first + p->task;
    for (int64_t at = first; at < end; at++) {
        int64_t a, b;
        if (batch->rank == 1) { /* a division would take longer than the product */
            a = at * batch->a_steps[0];
            b = at * batch->b_steps[0];
        } else
            matmul_batch_at(batch, at, &a, &b);
        matmul_small_multiply(p, w->a + a, w->b + b, w->y + at * p->m * p->n);
    }
}

static tutti_status matmul_small_run(const tutti_kernel_call *call)
{
    const small_plan *p = call->plan;
    work w = {p, call->inputs[0].data, call->inputs[1].data, call->outputs[0].data};
    tutti_parallel(call, (p->batch.count + p->task - 1) / p->task, matmul_small_piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_matmul_small) = {
    .name = "matmul.small",
    .version = 1,
    .op = "matmul",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = matmul_small_score,
    .prepare = matmul_small_prepare,
    .discard = free,
    .run = matmul_small_run,
};
