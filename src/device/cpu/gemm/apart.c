/* apart.c: a product cut into one piece of C for each thread, which packs what its piece needs
 * itself, block by block along k. What one core writes costs another one more to read than to pack
 * it once more, and a block is used while it is in the core's own cache. */
#include "device/cpu/gemm/run.h"

enum {
    PACKING = 16,           /* packing an element takes as long as so many multiply-adds */
    SHARED_PACKING = 48,    /* and fetching it from another core */
    FEW_FETCHED = 12,       /* when fetching is a smaller part of the product, threads share */
    FAR = 8,                /* a shared B that is not in the core's cache costs 1 / FAR more */
    ROWS_ALONG = 84 * 320,  /* elements of A at a time: they stay while panels of B pass */
    ROWS_ACROSS = 1 << 17,  /* where A is given turned: so that lines of it are long */
    LONG_LINE = 512,        /* and no longer */
    MOST_COLUMNS = 1 << 18, /* elements of B that a thread packs at a time */
    NEAR = 1 << 15,         /* that, where A has no more: both stay in the cache */
    NEAR_COLUMNS = 512,     /* at least, where A is packed again for them */
    PACK_LINES = 64,        /* of these, cut into all panels while they are in the cache */
};

typedef struct apart {
    const tutti_gemm_plan *plan;
    const tutti_gemm *gemm;
    int64_t m_tiles, n_tiles, m_pieces, n_pieces;
    tutti_gemm_standing a; /* TUTTI_GEMM_PACKED_ROWS: A is packed */
    int64_t rows, columns; /* of A and B that are packed, or kept in the cache, at a time */
    size_t slot;           /* bytes of one piece */
    char *workspace;
} apart;

/* A part of C and of k. */
typedef struct part {
    int64_t m0, m1, n0, n1, p, depth;
    tutti_gemm_panels panels;
} part;

static int64_t block_depth(const tutti_gemm_plan *plan)
{
    return least(plan->tile->depth, plan->k);
}

/* Of a step along k. */
static double packing(const apart *w, double rows, double columns)
{
    return (w->a == TUTTI_GEMM_PACKED_ROWS ? rows : 0) + columns;
}

/* Of the largest piece. */
static double work(const apart *w)
{
    const tutti_gemm_tile *tile = w->plan->tile;
    double rows = (double)(divide_up(w->m_tiles, w->m_pieces) * tile->rows);
    double columns = (double)(divide_up(w->n_tiles, w->n_pieces) * tile->wide);
    return rows * columns + PACKING * packing(w, rows, columns);
}

/* The cut with the least work for the busiest thread. */
static void apart_cut(apart *w, int threads)
{
    int64_t best = 1;
    double least_work = 0;
    for (int64_t m = 1; m <= threads; m++) {
        w->m_pieces = least(m, w->m_tiles);
        w->n_pieces = least(threads / m, w->n_tiles);
        if (m == 1 || work(w) < least_work) {
            best = m;
            least_work = work(w);
        }
    }
    w->m_pieces = least(best, w->m_tiles);
    w->n_pieces = least(threads / best, w->n_tiles);
}

static void pack_columns(const apart *w, const part *t, float *to)
{
    const tutti_gemm *g = w->gemm;
    const tutti_gemm_tile *tile = w->plan->tile;
    int64_t step = g->trans_b ? 1 : g->ldb, stride = g->trans_b ? g->ldb : 1;
    int64_t few = g->trans_b ? t->depth : PACK_LINES;
    for (int64_t q = 0; q < t->depth; q += few)
        for (int64_t j = 0, width; j < t->n1 - t->n0; j += width) {
            width = tutti__gemm_panel_width(tile, &t->panels, j);
            tile->pack(width, least(width, t->n1 - t->n0 - j), least(few, t->depth - q),
                       g->b + (t->p + q) * step + (t->n0 + j) * stride, step, stride,
                       to + j * t->depth + q * width);
        }
}

static void pack_rows(const apart *w, const part *t, float *to)
{
    const tutti_gemm *g = w->gemm;
    const tutti_gemm_tile *tile = w->plan->tile;
    int64_t step = g->trans_a ? g->lda : 1, stride = g->trans_a ? 1 : g->lda;
    int64_t few = g->trans_a ? PACK_LINES : t->depth;
    for (int64_t q = 0; q < t->depth; q += few)
        for (int64_t i = t->m0; i < t->m1; i += tile->rows)
            tile->pack(tile->rows, least(tile->rows, t->m1 - i), least(few, t->depth - q),
                       g->a + (t->p + q) * step + i * stride, step, stride,
                       to + (i - t->m0) * t->depth + q * tile->rows);
}

static void apart_multiply(const apart *w, const part *t, const float *a, const float *b)
{
    const tutti_gemm *g = w->gemm;
    const tutti_gemm_tile *tile = w->plan->tile;
    int64_t rows = t->m1 - t->m0;
    bool add = g->add || t->p > 0;
    for (int64_t j = 0, width; j < t->n1 - t->n0; j += width) {
        width = tutti__gemm_panel_width(tile, &t->panels, j);
        const float *panel = b + j * t->depth;
        float *to = g->c + t->m0 * g->ldc + t->n0 + j;
        int64_t n = least(width, t->n1 - t->n0 - j);
        if (w->a == TUTTI_GEMM_LINES)
            tile->multiply_lines(rows, n, t->depth, g->a + t->p * g->lda + t->m0, g->lda, panel,
                                 width, to, g->ldc, add);
        else if (w->a == TUTTI_GEMM_ROWS)
            tile->multiply_rows(rows, n, t->depth, g->a + t->m0 * g->lda + t->p, g->lda, panel,
                                width, to, g->ldc, add);
        else
            tile->multiply(rows, n, t->depth, a, panel, width, to, g->ldc, add);
    }
}

/* Rows from m0 to m1 of a part. */
static void apart_run_block(const apart *w, part *t, int64_t m0, int64_t m1, float *slot)
{
    const tutti_gemm *g = w->gemm;
    float *a = slot, *b = a + (w->a == TUTTI_GEMM_PACKED_ROWS ? w->rows * block_depth(w->plan) : 0);
    t->depth = least(w->plan->tile->depth, g->k - t->p);
    pack_columns(w, t, b);
    for (t->m0 = m0; t->m0 < m1; t->m0 = t->m1) {
        t->m1 = least(t->m0 + w->rows, m1);
        if (w->a == TUTTI_GEMM_PACKED_ROWS)
            pack_rows(w, t, a);
        apart_multiply(w, t, a, b);
        if ((g->bias != NULL || g->relu) && t->p + t->depth == g->k)
            tutti__gemm_finish(w->plan->tile, g, t->m0, t->m1 - t->m0, t->n0, t->n1 - t->n0,
                               g->c + t->m0 * g->ldc + t->n0, g->ldc);
    }
}

static void apart_run_piece(void *context, int64_t index)
{
    const apart *w = context;
    const tutti_gemm *g = w->gemm;
    const tutti_gemm_tile *tile = w->plan->tile;
    int64_t down = index / w->n_pieces, across = index % w->n_pieces;
    int64_t m0 = w->m_tiles * down / w->m_pieces * tile->rows;
    int64_t m1 = least(w->m_tiles * (down + 1) / w->m_pieces * tile->rows, g->m);
    int64_t n0 = w->n_tiles * across / w->n_pieces * tile->wide;
    int64_t n1 = least(w->n_tiles * (across + 1) / w->n_pieces * tile->wide, g->n);
    for (part t = {.n0 = n0}; t.n0 < n1; t.n0 = t.n1) {
        t.n1 = least(t.n0 + w->columns, n1);
        t.panels = tutti__gemm_panels(tile, t.n1 - t.n0);
        for (t.p = 0; t.p < g->k; t.p += t.depth)
            apart_run_block(w, &t, m0, m1,
                            (float *)(void *)(w->workspace + (size_t)index * w->slot));
    }
}

/* Elements of B that are packed and used before the next. */
static int64_t columns_at_a_time(const apart *w, int64_t rows, bool packed)
{
    if (rows * w->plan->k > NEAR)
        return MOST_COLUMNS;
    int64_t fewest = packed ? NEAR_COLUMNS * block_depth(w->plan) : NEAR;
    return fewest > NEAR ? fewest : NEAR;
}

/* Elements that a piece packs at a time. */
static int64_t piece_elements(apart *w)
{
    const tutti_gemm_tile *tile = w->plan->tile;
    int64_t rows = divide_up(w->m_tiles, w->m_pieces) * tile->rows;
    int64_t panels = divide_up(w->n_tiles, w->n_pieces);
    bool packed = w->a == TUTTI_GEMM_PACKED_ROWS;
    int64_t blocks =
        divide_up(panels * tile->wide * block_depth(w->plan), columns_at_a_time(w, rows, packed));
    int64_t block = (w->gemm->trans_a ? ROWS_ACROSS : ROWS_ALONG) / block_depth(w->plan);
    block = w->gemm->trans_a ? least(block, LONG_LINE) : block;
    w->rows = least(rows, round_up(packed ? block : TUTTI_GEMM_PIECE_ROWS, tile->rows));
    w->columns = divide_up(panels, blocks) * tile->wide;
    return ((packed ? w->rows : 0) + w->columns + 2 * tile->narrow) * block_depth(w->plan);
}

size_t tutti__gemm_apart_workspace(const tutti_gemm_plan *plan)
{
    const tutti_gemm_tile *tile = plan->tile;
    int64_t rows = least(plan->m, ROWS_ACROSS / (block_depth(plan) + 1)) + tile->rows;
    int64_t columns = plan->n + tile->wide + 2 * tile->narrow;
    return sizeof(float) * (size_t)(2 * (rows + columns) * block_depth(plan));
}

bool tutti__gemm_run_apart(const tutti_gemm_plan *plan, tutti_pool *pool, const tutti_gemm *gemm,
                           void *workspace)
{
    const tutti_gemm_tile *tile = plan->tile;
    int threads = tutti__pool_present(pool);
    if (!plan->apart)
        return false;
    apart w = {.plan = plan,
               .gemm = gemm,
               .m_tiles = divide_up(gemm->m, tile->rows),
               .n_tiles = divide_up(gemm->n, tile->wide),
               .a = tutti__gemm_standing(plan, gemm),
               .workspace = workspace};
    apart_cut(&w, threads);
    int64_t pieces = w.m_pieces * w.n_pieces;
    w.slot = (size_t)round_up(piece_elements(&w) * (int64_t)sizeof(float), 64);
    double multiplied = (double)gemm->m * (double)gemm->n;
    double fetched = SHARED_PACKING * packing(&w, (double)gemm->m, (double)gemm->n);
    bool far = gemm->n * gemm->k > MOST_COLUMNS;
    fetched += far ? multiplied / FAR : 0;
    if ((!far && fetched < multiplied / FEW_FETCHED) ||
        w.slot * (size_t)pieces > tutti__gemm_workspace(plan) ||
        work(&w) > (multiplied + fetched) / threads)
        return false;
    tutti__pool_run(pool, pieces, apart_run_piece, &w);
    return true;
}
