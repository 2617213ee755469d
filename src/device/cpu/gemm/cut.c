/* cut.c: a library's product, cut into pieces of C: by shape, or, where that changes no bit, into
 * one of many rows for each thread, because a library packs all of B for every piece. Pieces of few
 * rows would run other code of the library, with other bits. */
#include "device/cpu/gemm/run.h"

enum { FEWEST_ROWS = 128, ROW_UNIT = 16 };

typedef struct cut {
    const tutti_gemm_plan *plan;
    const tutti_gemm *gemm;
    int64_t m_pieces, n_pieces;
    bool even; /* rows are shared out evenly */
} cut;

static cut cut_of(const tutti_gemm_plan *plan, const tutti_gemm *gemm, int threads)
{
    cut c = {plan, gemm, .even = plan->engine->row_invariant && plan->engine->row_invariant()};
    int64_t most = plan->m / FEWEST_ROWS;
    c.m_pieces = !c.even          ? divide_up(plan->m, plan->piece_m)
                 : most < 1       ? 1
                 : most < threads ? most
                                  : threads;
    c.n_pieces = c.even ? 1 : divide_up(plan->n, plan->piece_n * plan->tile->wide);
    return c;
}

static int64_t row_of(const cut *c, int64_t piece)
{
    if (!c->even)
        return least(piece * c->plan->piece_m, c->plan->m);
    return piece == c->m_pieces ? c->plan->m
                                : c->plan->m * piece / c->m_pieces / ROW_UNIT * ROW_UNIT;
}

static void cut_run_piece(void *context, int64_t index)
{
    const cut *c = context;
    tutti_gemm part = *c->gemm;
    int64_t wide = c->even ? c->plan->n : c->plan->piece_n * c->plan->tile->wide;
    int64_t row = row_of(c, index / c->n_pieces), col = index % c->n_pieces * wide;
    part.m = row_of(c, index / c->n_pieces + 1) - row;
    part.n = least(wide, part.n - col);
    part.a += part.trans_a ? row : row * part.lda;
    part.b += part.trans_b ? col * part.ldb : col;
    part.c += row * part.ldc + col;
    c->plan->engine->multiply(&part);
    if (part.bias != NULL || part.relu)
        tutti__gemm_finish(c->plan->tile, c->gemm, row, part.m, col, part.n, part.c, part.ldc);
}

void tutti__gemm_run_cut(const tutti_gemm_plan *plan, tutti_pool *pool, const tutti_gemm *gemm)
{
    cut c = cut_of(plan, gemm, tutti__pool_present(pool));
    tutti__pool_run(pool, c.m_pieces * c.n_pieces, cut_run_piece, &c);
}
