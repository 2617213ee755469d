/* row.c: products of one row. One row of A is not worth packing anything for: a piece has a few
 * columns and all of k. Blocks of `depth` are summed in order, as elsewhere: the bits are the same.
 */
#include "device/cpu/gemm/run.h"

enum { MOST_DEPTH = 512, PARALLEL = 1 << 15 }; /* PARALLEL: elements of B */

typedef struct row {
    const tutti_gemm_plan *plan;
    const tutti_gemm *gemm;
    int64_t columns; /* of a piece */
} row;

static void row_piece(void *context, int64_t index)
{
    const row *r = context;
    const tutti_gemm *g = r->gemm;
    const tutti_gemm_tile *tile = r->plan->tile;
    int64_t start = index * r->columns, n = least(r->columns, g->n - start);
    int64_t ldb = r->plan->packed ? r->columns : g->ldb, step = g->trans_a ? g->lda : 1;
    const float *b = r->plan->packed ? g->packed_b + start * g->k : g->b + start;
    float some[MOST_DEPTH], *c = g->c + start;
    for (int64_t p = 0; p < g->k; p += tile->depth) {
        int64_t depth = least(tile->depth, g->k - p);
        for (int64_t i = 0; step != 1 && i < depth; i++)
            some[i] = g->a[(p + i) * step];
        tile->multiply_row(n, depth, step != 1 ? some : g->a + p, b + p * ldb, ldb, c,
                           g->add || p > 0);
    }
    if (g->bias != NULL || g->relu)
        tutti__gemm_finish(tile, g, 0, 1, start, n, c, g->ldc);
}

bool tutti__gemm_is_row(const tutti_gemm_plan *plan, const tutti_gemm *g)
{
    return plan->m == 1 && plan->tile->multiply_row != NULL && plan->tile->depth <= MOST_DEPTH &&
           !g->a_bf16 && !g->b_bf16 && !g->c_bf16 && (plan->packed || !g->trans_b);
}

void tutti__gemm_run_row(const tutti_gemm_plan *plan, tutti_pool *pool, const tutti_gemm *g)
{
    row r = {plan, g, tutti__gemm_row_columns(plan->tile, plan->n)};
    tutti__pool_run(plan->n * plan->k >= PARALLEL ? pool : NULL,
                    (plan->n + r.columns - 1) / r.columns, row_piece, &r);
}
