/* gemm.c: the plain product: pack, then multiply, chunk by chunk.
 *
 * A chunk packs B[chunk_k, chunk_n] and A[chunk_m, chunk_k] once, on all threads, then its pieces
 * of C are computed on all threads. In a packed chunk the blocks of `depth` along k stand one after
 * the other; in a block the panels. */
#include "device/cpu/gemm/gemm.h"

#include <string.h>

#include "base/pool.h"
#include "device/cpu/isa.h"
#include "tables/gemm_tile.h"

enum {
    ALIGNMENT = 64,
    PACKED_A = 1 << 21, /* floats in a chunk */
    PACKED_B = 1 << 22,
    PACKED_A_ONE = 1 << 16,
    PACKED_B_ONE = 1 << 17,
    PIECE_ROWS = 128,
    PIECE_COLS = 384,
    PACK_PIECE = 1 << 15,
    ENOUGH_PIECES = 24,
    SUM_PIECE = 1 << 13,
    DIRECT_COLUMNS = 128,
    DIRECT_ELEMENTS = 1 << 17,
};
#define PIECE_FLOPS 1e6
#define BLOCK_FLOPS 2e5
#define PARALLEL_FLOPS 6e5
#define ENGINE_FLOPS 4e6
#define ENGINE_SIDE 128

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t round_up(int64_t a, int64_t b)
{
    return divide_up(a, b) * b;
}

const tutti_gemm_tile *tutti__gemm_tile(void)
{
    const char *isa = tutti__best_isa();
    const tutti_gemm_tile *const *tile = tutti__gemm_tile_table;
    while (strcmp((*tile)->isa, isa) != 0 && tile[1] != NULL)
        tile++;
    return *tile;
}

tutti_gemm_panels tutti__gemm_panels(const tutti_gemm_tile *tile, int64_t n)
{
    tutti_gemm_panels best = {0, 0, INT64_MAX};
    for (int64_t narrows = 0; narrows <= 2; narrows++) {
        int64_t rest = n - narrows * tile->narrow;
        int64_t wides = rest > 0 ? divide_up(rest, tile->wide) : 0;
        int64_t padded = wides * tile->wide + narrows * tile->narrow;
        if (padded < best.padded)
            best = (tutti_gemm_panels){wides, narrows, padded};
    }
    return best;
}

static double piece_flops(const tutti_gemm_plan *plan)
{
    return 2.0 * (double)least(plan->piece_m, plan->m) *
           (double)least(plan->piece_n * plan->tile->wide, plan->n) * (double)plan->k;
}

/* Halves pieces until there are enough of them for many threads or they are small. A panel of B
 * should serve several tiles of rows, so rows are cut last. */
static void cut_pieces(tutti_gemm_plan *plan)
{
    const tutti_gemm_tile *tile = plan->tile;
    int64_t fewest = least(plan->m, 4 * tile->rows);
    plan->piece_m = least(round_up(plan->chunk_m, tile->rows), round_up(PIECE_ROWS, tile->rows));
    plan->piece_n = least(divide_up(plan->chunk_n, tile->wide), PIECE_COLS / tile->wide);
    while (plan->parallel && piece_flops(plan) >= 2 * PIECE_FLOPS) {
        int64_t pieces = divide_up(plan->chunk_m, plan->piece_m) *
                         divide_up(plan->chunk_n, plan->piece_n * tile->wide);
        bool tall = plan->piece_m / 2 >= fewest;
        if (pieces >= ENOUGH_PIECES || (!tall && plan->piece_n == 1))
            return;
        if (tall && plan->piece_m >= plan->piece_n * tile->wide)
            plan->piece_m = round_up(plan->piece_m / 2, tile->rows);
        else if (plan->piece_n > 1)
            plan->piece_n = divide_up(plan->piece_n, 2);
        else
            plan->piece_m = round_up(plan->piece_m / 2, tile->rows);
    }
}

/* Few elements of C and a long k: the blocks along k are computed side by side, then summed in
 * order, which gives the same bits. */
static bool splits_k(const tutti_gemm_plan *plan)
{
    int64_t blocks = divide_up(plan->k, plan->tile->depth);
    double block_flops = 2.0 * (double)plan->m * (double)plan->n * plan->tile->depth;
    int64_t pieces =
        divide_up(plan->m, plan->piece_m) * divide_up(plan->n, plan->piece_n * plan->tile->wide);
    return plan->parallel && blocks >= 4 && pieces < ENOUGH_PIECES && pieces < blocks &&
           block_flops >= BLOCK_FLOPS && plan->chunk_k == plan->k && plan->chunk_m == plan->m &&
           plan->chunk_n == plan->n && blocks * plan->m * plan->n <= PACKED_A;
}

tutti_gemm_plan tutti__gemm_plan(int64_t m, int64_t n, int64_t k, uint32_t flags)
{
    double flops = 2.0 * (double)m * (double)n * (double)k;
    bool one = flags & TUTTI_GEMM_ONE_THREAD;
    tutti_gemm_plan plan = {.tile = tutti__gemm_tile(), .m = m, .n = n, .k = k};
    bool library = flops >= ENGINE_FLOPS && m <= INT32_MAX && n <= INT32_MAX && k <= INT32_MAX;
    bool square = m >= ENGINE_SIDE && n >= ENGINE_SIDE && k >= ENGINE_SIDE;
    if (library && !(flags & TUTTI_GEMM_PLAIN) &&
        tutti__gemm_engine(square, &plan.engine) != TUTTI_OK)
        plan.engine = NULL;
    plan.parallel = !one && flops >= PARALLEL_FLOPS;
    plan.chunk_n = n;
    plan.chunk_k = k;
    while (plan.chunk_n * plan.chunk_k > (one ? PACKED_B_ONE : PACKED_B)) {
        if (plan.chunk_k > 2 * plan.tile->depth)
            plan.chunk_k = round_up(plan.chunk_k / 2, plan.tile->depth);
        else
            plan.chunk_n = round_up(plan.chunk_n / 2, plan.tile->wide);
    }
    int64_t rows = (one ? PACKED_A_ONE : PACKED_A) / (plan.chunk_k > 0 ? plan.chunk_k : 1);
    rows = rows / plan.tile->rows * plan.tile->rows;
    plan.chunk_m = least(m, rows < plan.tile->rows ? plan.tile->rows : rows);
    cut_pieces(&plan);
    plan.split_k = splits_k(&plan);
    return plan;
}

static size_t packed_a_floats(const tutti_gemm_plan *plan)
{
    return (size_t)round_up(round_up(plan->chunk_m, plan->tile->rows) * plan->chunk_k,
                            ALIGNMENT / 4);
}

/* A chunk of fewer columns may have more padding: at most two narrow panels. */
static size_t packed_b_floats(const tutti_gemm_plan *plan)
{
    return (size_t)((plan->chunk_n + plan->tile->wide + 2 * plan->tile->narrow) * plan->chunk_k);
}

size_t tutti__gemm_workspace(const tutti_gemm_plan *plan)
{
    if (plan->engine != NULL)
        return 0;
    size_t sums =
        plan->split_k ? (size_t)(divide_up(plan->k, plan->tile->depth) * plan->m * plan->n) : 0;
    return 4 * (packed_a_floats(plan) + packed_b_floats(plan) + sums);
}

/* One chunk: [m0, m0 + m) x [n0, n0 + n), k from k0. */
typedef struct chunk {
    const tutti_gemm_plan *plan;
    const tutti_gemm *gemm;
    float *packed_a, *packed_b, *sums; /* sums: of split_k, C's shape for each block */
    int64_t m0, n0, k0, m, n, k;
    tutti_gemm_panels panels;
    int64_t a_group, b_group, b_pieces; /* panels packed by one piece; pieces that pack B */
    int64_t n_pieces;
    bool direct; /* A is used as it stands, not packed */
} chunk;

static int64_t panel_count(const chunk *c)
{
    return c->panels.wides + c->panels.narrows;
}

static int64_t row_panel_count(const chunk *c)
{
    return divide_up(c->m, c->plan->tile->rows);
}

/* First column of panel j and its width. */
static int64_t panel_start(const chunk *c, int64_t j, int64_t *ret_width)
{
    const tutti_gemm_tile *tile = c->plan->tile;
    if (j < c->panels.wides) {
        *ret_width = tile->wide;
        return j * tile->wide;
    }
    *ret_width = tile->narrow;
    return c->panels.wides * tile->wide + (j - c->panels.wides) * tile->narrow;
}

/* Packs panel j of B for the block of `depth` that begins at p. */
static void pack_b(const chunk *c, int64_t j, int64_t p, int64_t depth)
{
    const tutti_gemm *g = c->gemm;
    int64_t step = g->trans_b ? 1 : g->ldb, stride = g->trans_b ? g->ldb : 1, width;
    int64_t start = panel_start(c, j, &width);
    if (start < c->n)
        c->plan->tile->pack(width, least(width, c->n - start), depth,
                            g->b + (c->k0 + p) * step + (c->n0 + start) * stride, step, stride,
                            c->packed_b + p * c->panels.padded + start * depth);
}

static void pack_a(const chunk *c, int64_t i, int64_t p, int64_t depth)
{
    const tutti_gemm *g = c->gemm;
    int64_t step = g->trans_a ? g->lda : 1, stride = g->trans_a ? 1 : g->lda;
    int64_t rows = c->plan->tile->rows, start = i * rows;
    c->plan->tile->pack(rows, least(rows, c->m - start), depth,
                        g->a + (c->k0 + p) * step + (c->m0 + start) * stride, step, stride,
                        c->packed_a + p * round_up(c->m, rows) + start * depth);
}

/* Packs a group of panels of B or of A, in all blocks of the chunk. */
static void pack_piece(void *context, int64_t index)
{
    const chunk *c = context;
    bool columns = index < c->b_pieces;
    int64_t group = columns ? c->b_group : c->a_group;
    int64_t first = (columns ? index : index - c->b_pieces) * group;
    int64_t end = least(first + group, columns ? panel_count(c) : row_panel_count(c));
    for (int64_t p = 0; p < c->k; p += c->plan->tile->depth) {
        int64_t depth = least(c->plan->tile->depth, c->k - p);
        for (int64_t i = first; i < end; i++)
            (columns ? pack_b : pack_a)(c, i, p, depth);
    }
}

/* C[rows from `row`, panels first..end) = or += the block of `depth` that begins at p. */
static void multiply_block(const chunk *c, int64_t row, int64_t rows, int64_t first, int64_t end,
                           int64_t p, int64_t depth, float *to, int64_t ldc, bool add)
{
    const tutti_gemm_tile *tile = c->plan->tile;
    const tutti_gemm *g = c->gemm;
    const float *a = c->packed_a + p * round_up(c->m, tile->rows) + row * depth;
    const float *rows_a = g->a + (c->m0 + row) * g->lda + c->k0 + p;
    const float *b = c->packed_b + p * c->panels.padded;
    for (int64_t j = first; j < end; j++) {
        int64_t width, start = panel_start(c, j, &width), n = least(width, c->n - start);
        if (start >= c->n)
            continue;
        if (c->direct)
            tile->multiply_rows(rows, n, depth, rows_a, g->lda, b + start * depth, width,
                                to + start, ldc, add);
        else
            tile->multiply(rows, n, depth, a, b + start * depth, width, to + start, ldc, add);
    }
}

static void multiply_piece(void *context, int64_t index)
{
    const chunk *c = context;
    const tutti_gemm_plan *plan = c->plan;
    const tutti_gemm *g = c->gemm;
    int64_t row = index / c->n_pieces * plan->piece_m;
    int64_t first = index % c->n_pieces * plan->piece_n;
    int64_t end = least(first + plan->piece_n, panel_count(c));
    for (int64_t p = 0; p < c->k; p += plan->tile->depth)
        multiply_block(c, row, least(plan->piece_m, c->m - row), first, end, p,
                       least(plan->tile->depth, c->k - p), g->c + (c->m0 + row) * g->ldc + c->n0,
                       g->ldc, g->add || c->k0 + p > 0);
}

/* Packs B only when `pack_columns`: the chunks of rows share it. */
static void run_chunk(chunk *c, tutti_pool *pool, bool pack_columns)
{
    const tutti_gemm_plan *plan = c->plan;
    c->a_group = 1 + PACK_PIECE / (plan->tile->rows * c->k + 1);
    c->b_group = 1 + PACK_PIECE / (plan->tile->wide * c->k + 1);
    c->b_pieces = pack_columns ? divide_up(panel_count(c), c->b_group) : 0;
    c->n_pieces = divide_up(panel_count(c), plan->piece_n);
    int64_t a_pieces = c->direct ? 0 : divide_up(row_panel_count(c), c->a_group);
    tutti__pool_run(pool, c->b_pieces + a_pieces, pack_piece, c);
    tutti__pool_run(pool, divide_up(c->m, plan->piece_m) * c->n_pieces, multiply_piece, c);
}

static void split_piece(void *context, int64_t index)
{
    const chunk *c = context;
    int64_t p = index * c->plan->tile->depth, depth = least(c->plan->tile->depth, c->k - p);
    for (int64_t j = 0; j < panel_count(c); j++)
        pack_b(c, j, p, depth);
    for (int64_t i = 0; i < row_panel_count(c) && !c->direct; i++)
        pack_a(c, i, p, depth);
    multiply_block(c, 0, c->m, 0, panel_count(c), p, depth, c->sums + index * c->m * c->n, c->n,
                   false);
}

/* Sums the blocks for SUM_PIECE elements of C, block by block. */
static void sum_piece(void *context, int64_t index)
{
    const chunk *c = context;
    const tutti_gemm *g = c->gemm;
    int64_t rows = 1 + SUM_PIECE / c->n, row = index * rows;
    for (int64_t i = row; i < least(row + rows, c->m); i++) {
        float *to = g->c + i * g->ldc;
        if (!g->add)
            memcpy(to, c->sums + i * c->n, (size_t)c->n * sizeof(float));
        for (int64_t block = g->add ? 0 : 1; block < divide_up(c->k, c->plan->tile->depth);
             block++) {
            const float *sum = c->sums + (block * c->m + i) * c->n;
            for (int64_t j = 0; j < c->n; j++)
                to[j] += sum[j];
        }
    }
}

/* Rows that are used for few columns, or that are few, are not worth packing; but rows that lie a
 * multiple of a page apart fall on one place in the cache. */
static bool rows_direct(const tutti_gemm_plan *plan, const tutti_gemm *gemm)
{
    bool pays = plan->n <= DIRECT_COLUMNS || plan->m * plan->k <= DIRECT_ELEMENTS;
    return pays && plan->tile->multiply_rows != NULL && !gemm->trans_a && gemm->lda % 1024 != 0;
}

static void run_split(const tutti_gemm_plan *plan, tutti_pool *pool, const tutti_gemm *gemm,
                      void *workspace)
{
    chunk c = {.plan = plan,
               .gemm = gemm,
               .packed_a = workspace,
               .m = plan->m,
               .n = plan->n,
               .k = plan->k,
               .direct = rows_direct(plan, gemm)};
    c.packed_b = c.packed_a + packed_a_floats(plan);
    c.sums = c.packed_b + packed_b_floats(plan);
    c.panels = tutti__gemm_panels(plan->tile, c.n);
    tutti__pool_run(pool, divide_up(c.k, plan->tile->depth), split_piece, &c);
    tutti__pool_run(pool, divide_up(c.m, 1 + SUM_PIECE / c.n), sum_piece, &c);
}

static void run_plain(const tutti_gemm_plan *plan, tutti_pool *pool, const tutti_gemm *gemm,
                      void *workspace)
{
    chunk c = {
        .plan = plan, .gemm = gemm, .packed_a = workspace, .direct = rows_direct(plan, gemm)};
    c.packed_b = c.packed_a + packed_a_floats(plan);
    for (c.n0 = 0; c.n0 < plan->n; c.n0 += plan->chunk_n) {
        c.n = least(plan->chunk_n, plan->n - c.n0);
        c.panels = tutti__gemm_panels(plan->tile, c.n);
        for (c.k0 = 0; c.k0 < plan->k; c.k0 += plan->chunk_k) {
            c.k = least(plan->chunk_k, plan->k - c.k0);
            for (c.m0 = 0; c.m0 < plan->m; c.m0 += plan->chunk_m) {
                c.m = least(plan->chunk_m, plan->m - c.m0);
                run_chunk(&c, pool, c.m0 == 0);
            }
        }
    }
}

/* A library's product, cut into pieces of C by shape. */
typedef struct cut {
    const tutti_gemm_plan *plan;
    const tutti_gemm *gemm;
    int64_t n_pieces, piece_n;
} cut;

static void engine_piece(void *context, int64_t index)
{
    const cut *c = context;
    tutti_gemm part = *c->gemm;
    int64_t row = index / c->n_pieces * c->plan->piece_m, col = index % c->n_pieces * c->piece_n;
    part.m = least(c->plan->piece_m, part.m - row);
    part.n = least(c->piece_n, part.n - col);
    part.a += part.trans_a ? row : row * part.lda;
    part.b += part.trans_b ? col * part.ldb : col;
    part.c += row * part.ldc + col;
    c->plan->engine->multiply(&part);
}

void tutti__gemm_run(const tutti_gemm_plan *plan, tutti_pool *pool, const tutti_gemm *gemm,
                     void *workspace)
{
    if (plan->m == 0 || plan->n == 0)
        return;
    if (plan->k == 0) {
        for (int64_t i = 0; i < plan->m && !gemm->add; i++)
            memset(gemm->c + i * gemm->ldc, 0, (size_t)plan->n * sizeof(float));
        return;
    }
    pool = plan->parallel ? pool : NULL;
    if (plan->engine == NULL) {
        (plan->split_k ? run_split : run_plain)(plan, pool, gemm, workspace);
        return;
    }
    cut c = {plan, gemm, .piece_n = plan->piece_n * plan->tile->wide};
    c.n_pieces = divide_up(plan->n, c.piece_n);
    tutti__pool_run(pool, divide_up(plan->m, plan->piece_m) * c.n_pieces, engine_piece, &c);
}
