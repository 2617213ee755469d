/* gemm.c: the plain product: pack, then multiply, chunk by chunk.
 *
 * A chunk packs B[chunk_k, chunk_n] and A[chunk_m, chunk_k] once, on all threads, then its pieces
 * of C are computed on all threads. In a packed chunk the blocks of `depth` along k stand one after
 * the other; in a block the panels. */
#include "device/cpu/gemm/run.h"

#include <string.h>

enum {
    PACK_PIECE = 1 << 15,
    PACK_LINES = 64, /* a multiple of every tile's pad */
    SUM_PIECE = 1 << 13,
    DIRECT_COLUMNS = 512,
    DIRECT_ELEMENTS = 1 << 17,
    SHORT_LINES = 256,
    MOST_ROWS = TUTTI_GEMM_PIECE_ROWS + 32, /* of a piece of any tile */
    MOST_WIDE = 64,
    SWEPT_ROWS = 24,
    SWEPT_PANELS = 5,
};

/* One chunk: [m0, m0 + m) x [n0, n0 + n), k from k0. */
typedef struct chunk {
    const tutti_gemm_plan *plan;
    const tutti_gemm *gemm;
    char *packed_a, *packed_b;
    float *sums; /* of split_k: C's shape for each block */
    int64_t m0, n0, k0, m, n, k;
    tutti_gemm_panels panels;
    int64_t a_group, b_group, b_pieces; /* panels packed by one piece; pieces that pack B */
    int64_t n_pieces;
    bool direct;         /* A is used as it stands, not packed */
    bool direct_columns; /* B is, but for panels that are not full */
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

/* Where panel lines from `start` of the block that begins at p stand in a packed chunk. */
static char *packed_at(const chunk *c, char *packed, int64_t lines, int64_t start, int64_t p,
                       int64_t depth)
{
    const tutti_gemm_tile *tile = c->plan->tile;
    return packed + (p * lines + start * round_up(depth, tile->pad)) * tile->element;
}

/* Steps [p + q, p + q + k) along k of a panel, in the block of `depth` that begins at p. */
typedef struct pack_part {
    int64_t p, depth, q, k;
} pack_part;

/* Packs a part of panel j of B. */
static void pack_b(const chunk *c, int64_t j, pack_part t)
{
    const tutti_gemm *g = c->gemm;
    int64_t step = g->trans_b ? 1 : g->ldb, stride = g->trans_b ? g->ldb : 1, width;
    int64_t start = panel_start(c, j, &width);
    int64_t first = (c->k0 + t.p + t.q) * step + (c->n0 + start) * stride;
    tutti_gemm_lines lines = {.width = width,
                              .count = least(width, c->n - start),
                              .k = t.k,
                              .step = step,
                              .stride = stride,
                              .bf16 = g->b_bf16,
                              .columns = true};
    lines.source = g->b_bf16 ? (const void *)(g->b16 + first) : g->b + first;
    bool stays = c->direct_columns && lines.count == width;
    if (start < c->n && !stays)
        c->plan->tile->pack_lines(&lines,
                                  packed_at(c, c->packed_b, c->panels.padded, start, t.p, t.depth) +
                                      t.q * width * c->plan->tile->element);
}

static void pack_a(const chunk *c, int64_t i, pack_part t)
{
    const tutti_gemm *g = c->gemm;
    int64_t step = g->trans_a ? g->lda : 1, stride = g->trans_a ? 1 : g->lda;
    int64_t rows = c->plan->tile->rows, start = i * rows;
    int64_t first = (c->k0 + t.p + t.q) * step + (c->m0 + start) * stride;
    tutti_gemm_lines lines = {.width = rows,
                              .count = least(rows, c->m - start),
                              .k = t.k,
                              .step = step,
                              .stride = stride,
                              .bf16 = g->a_bf16};
    lines.source = g->a_bf16 ? (const void *)(g->a16 + first) : g->a + first;
    c->plan->tile->pack_lines(&lines,
                              packed_at(c, c->packed_a, round_up(c->m, rows), start, t.p, t.depth) +
                                  t.q * rows * c->plan->tile->element);
}

/* Packs panels first..end of B or of A in one block. Where lines stand across the panels, a few of
 * them are cut into all panels while they are in the cache. */
static void pack_block(const chunk *c, bool columns, int64_t first, int64_t end, int64_t p)
{
    pack_part t = {.p = p, .depth = least(c->plan->tile->depth, c->k - p)};
    bool across = columns ? !c->gemm->trans_b : c->gemm->trans_a;
    int64_t few = across ? PACK_LINES : t.depth;
    for (t.q = 0; t.q < t.depth; t.q += few) {
        t.k = least(few, t.depth - t.q);
        for (int64_t i = first; i < end; i++)
            (columns ? pack_b : pack_a)(c, i, t);
    }
}

/* Packs a group of panels of B or of A, in all blocks of the chunk. */
static void pack_piece(void *context, int64_t index)
{
    const chunk *c = context;
    bool columns = index < c->b_pieces;
    int64_t group = columns ? c->b_group : c->a_group;
    int64_t first = (columns ? index : index - c->b_pieces) * group;
    int64_t end = least(first + group, columns ? panel_count(c) : row_panel_count(c));
    for (int64_t p = 0; p < c->k; p += c->plan->tile->depth)
        pack_block(c, columns, first, end, p);
}

/* C[rows from `row`, panel j] = or += the block of `depth` that begins at p. `to` is the first
 * element of those rows and columns, with room for n of them: those that there are, or the whole
 * panel. */
static void multiply_panel(const chunk *c, int64_t row, int64_t rows, int64_t j, int64_t n,
                           int64_t p, int64_t depth, float *to, int64_t ldc, bool add)
{
    const tutti_gemm_tile *tile = c->plan->tile;
    const tutti_gemm *g = c->gemm;
    int64_t width, start = panel_start(c, j, &width);
    const void *b = packed_at(c, c->packed_b, c->panels.padded, start, p, depth);
    const void *a = packed_at(c, c->packed_a, round_up(c->m, tile->rows), row, p, depth);
    if (c->direct_columns && width <= c->n - start)
        tile->multiply_columns(rows, depth, a, g->b + (c->k0 + p) * g->ldb + c->n0 + start, g->ldb,
                               width, to, ldc, add);
    else if (c->direct)
        tile->multiply_rows(rows, n, depth, g->a + (c->m0 + row) * g->lda + c->k0 + p, g->lda, b,
                            width, to, ldc, add);
    else
        tile->multiply(rows, n, depth, a, b, width, to, ldc, add);
}

/* The same for panels first..end; `to` is the first element of those rows. */
static void multiply_block(const chunk *c, int64_t row, int64_t rows, int64_t first, int64_t end,
                           int64_t p, int64_t depth, float *to, int64_t ldc, bool add)
{
    for (int64_t j = first; j < end; j++) {
        int64_t width, start = panel_start(c, j, &width);
        if (start < c->n)
            multiply_panel(c, row, rows, j, least(width, c->n - start), p, depth, to + start, ldc,
                           add);
    }
}

void tutti__gemm_finish(const tutti_gemm_tile *tile, const tutti_gemm *g, int64_t row, int64_t rows,
                        int64_t column, int64_t n, const float *from, int64_t ld)
{
    tutti_gemm_finish f = {.rows = rows,
                           .n = n,
                           .from = from,
                           .ld = ld,
                           .ldc = g->ldc,
                           .bf16 = g->c_bf16,
                           .bias_bf16 = g->bias_bf16,
                           .relu = g->relu};
    int64_t first = row * g->ldc + column;
    f.to = g->c_bf16 ? (void *)(g->c16 + first) : g->c + first;
    if (g->bias != NULL)
        f.bias = (const char *)g->bias + column * (g->bias_bf16 ? 2 : 4);
    tile->finish(&f);
}

/* Rows of bf16: each panel is summed over all of k, then rounded. */
static void multiply_rounded(const chunk *c, int64_t row, int64_t rows, int64_t first, int64_t end)
{
    float sums[MOST_ROWS * MOST_WIDE];
    const int64_t depth = c->plan->tile->depth;
    for (int64_t j = first; j < end; j++) {
        int64_t width, start = panel_start(c, j, &width);
        if (start >= c->n)
            continue;
        for (int64_t p = 0; p < c->k; p += depth)
            multiply_panel(c, row, rows, j, width, p, least(depth, c->k - p), sums, width, p > 0);
        tutti__gemm_finish(c->plan->tile, c->gemm, c->m0 + row, rows, c->n0 + start,
                           least(width, c->n - start), sums, width);
    }
}

/* Rows of C that are computed over all panels at a time: those that are written once, a few, so
 * that they are written from end to end, and finished while they are in the cache. */
static int64_t swept_rows(const chunk *c, int64_t rows, int64_t panels)
{
    bool once = c->k <= c->plan->tile->depth && panels >= SWEPT_PANELS;
    return once ? least(rows, round_up(SWEPT_ROWS, c->plan->tile->rows)) : rows;
}

static void multiply_sweep(const chunk *c, int64_t row, int64_t rows, int64_t first, int64_t end)
{
    const tutti_gemm_plan *plan = c->plan;
    const tutti_gemm *g = c->gemm;
    float *to = g->c + (c->m0 + row) * g->ldc + c->n0;
    for (int64_t p = 0; p < c->k; p += plan->tile->depth)
        multiply_block(c, row, rows, first, end, p, least(plan->tile->depth, c->k - p), to, g->ldc,
                       g->add || c->k0 + p > 0);
    int64_t width, start = panel_start(c, first, &width);
    int64_t last = least(panel_start(c, end - 1, &width) + width, c->n);
    if ((g->bias != NULL || g->relu) && c->k0 + c->k == plan->k && start < last)
        tutti__gemm_finish(plan->tile, g, c->m0 + row, rows, c->n0 + start, last - start,
                           to + start, g->ldc);
}

/* Pieces of rows that differ by one tile at most, so that threads end together. */
static int64_t first_row(const chunk *c, int64_t piece)
{
    int64_t tiles = row_panel_count(c) * piece / divide_up(c->m, c->plan->piece_m);
    return least(tiles * c->plan->tile->rows, c->m);
}

static void multiply_piece(void *context, int64_t index)
{
    const chunk *c = context;
    int64_t row = first_row(c, index / c->n_pieces), stop = first_row(c, index / c->n_pieces + 1);
    int64_t first = index % c->n_pieces * c->plan->piece_n;
    int64_t end = least(first + c->plan->piece_n, panel_count(c));
    if (c->gemm->c_bf16) {
        multiply_rounded(c, row, stop - row, first, end);
        return;
    }
    for (int64_t few = swept_rows(c, stop - row, end - first); row < stop; row += few)
        multiply_sweep(c, row, least(few, stop - row), first, end);
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
    if (!c->plan->packed)
        pack_block(c, true, 0, panel_count(c), p);
    if (!c->direct)
        pack_block(c, false, 0, row_panel_count(c), p);
    multiply_block(c, 0, c->m, 0, panel_count(c), p, depth, c->sums + index * c->m * c->n, c->n,
                   false);
}

/* Sums the blocks for SUM_PIECE elements of C, block by block, in the place of the first block. */
static void gemm_sum_piece(void *context, int64_t index)
{
    const chunk *c = context;
    const tutti_gemm *g = c->gemm;
    int64_t rows = 1 + SUM_PIECE / c->n, row = index * rows;
    for (int64_t i = row; i < least(row + rows, c->m); i++) {
        bool in_place = !g->c_bf16;
        float *to = in_place ? g->c + i * g->ldc : c->sums + i * c->n;
        if (in_place && !g->add)
            memcpy(to, c->sums + i * c->n, (size_t)c->n * sizeof(float));
        for (int64_t block = g->add ? 0 : 1; block < divide_up(c->k, c->plan->tile->depth);
             block++) {
            tutti_gemm_finish sum = {.rows = 1,
                                     .n = c->n,
                                     .from = c->sums + (block * c->m + i) * c->n,
                                     .bias = to,
                                     .to = to};
            c->plan->tile->finish(&sum); /* to += from */
        }
        if (g->c_bf16 || g->bias != NULL || g->relu)
            tutti__gemm_finish(c->plan->tile, g, i, 1, 0, c->n, to, c->n);
    }
}

/* Rows that are used for few columns, or that are few, are not worth packing; but rows that lie a
 * multiple of a page apart fall on one place in the cache. Neither are rows that stand side by side
 * in short lines, which lie close together. */
tutti_gemm_standing tutti__gemm_standing(const tutti_gemm_plan *plan, const tutti_gemm *gemm)
{
    const tutti_gemm_tile *tile = plan->tile;
    bool few = plan->n <= DIRECT_COLUMNS || plan->m * plan->k <= DIRECT_ELEMENTS;
    if (gemm->a_bf16)
        return TUTTI_GEMM_PACKED_ROWS;
    if (gemm->trans_a && gemm->lda <= SHORT_LINES && tile->multiply_lines != NULL)
        return TUTTI_GEMM_LINES;
    if (!gemm->trans_a && few && gemm->lda % 1024 != 0 && tile->multiply_rows != NULL)
        return TUTTI_GEMM_ROWS;
    return TUTTI_GEMM_PACKED_ROWS;
}

/* Columns that are used for few rows are not worth packing either. */
static bool columns_direct(const tutti_gemm_plan *plan, const tutti_gemm *gemm)
{
    return !plan->packed && plan->m <= 2 * plan->tile->rows &&
           plan->tile->multiply_columns != NULL && !gemm->b_bf16 && !gemm->trans_b &&
           gemm->ldb % 1024 != 0;
}

/* Packs as little as pays. */
static void start_chunk(chunk *c, const tutti_gemm_plan *plan, const tutti_gemm *gemm)
{
    c->plan = plan;
    c->gemm = gemm;
    c->packed_b =
        plan->packed ? (char *)(uintptr_t)gemm->packed_b : c->packed_a + tutti__gemm_packed_a(plan);
    c->direct_columns = columns_direct(plan, gemm);
    c->direct = !c->direct_columns && tutti__gemm_standing(plan, gemm) == TUTTI_GEMM_ROWS;
}

static void run_split(const tutti_gemm_plan *plan, tutti_pool *pool, const tutti_gemm *gemm,
                      void *workspace)
{
    chunk c = {.packed_a = workspace, .m = plan->m, .n = plan->n, .k = plan->k};
    start_chunk(&c, plan, gemm);
    c.sums =
        (float *)(void *)(c.packed_a + tutti__gemm_packed_a(plan) + tutti__gemm_packed_b(plan));
    c.panels = tutti__gemm_panels(plan->tile, c.n);
    tutti__pool_run(pool, divide_up(c.k, plan->tile->depth), split_piece, &c);
    tutti__pool_run(pool, divide_up(c.m, 1 + SUM_PIECE / c.n), gemm_sum_piece, &c);
}

static void run_plain(const tutti_gemm_plan *plan, tutti_pool *pool, const tutti_gemm *gemm,
                      void *workspace)
{
    chunk c = {.packed_a = workspace};
    start_chunk(&c, plan, gemm);
    for (c.n0 = 0; c.n0 < plan->n; c.n0 += plan->chunk_n) {
        c.n = least(plan->chunk_n, plan->n - c.n0);
        c.panels = tutti__gemm_panels(plan->tile, c.n);
        for (c.k0 = 0; c.k0 < plan->k; c.k0 += plan->chunk_k) {
            c.k = least(plan->chunk_k, plan->k - c.k0);
            for (c.m0 = 0; c.m0 < plan->m; c.m0 += plan->chunk_m) {
                c.m = least(plan->chunk_m, plan->m - c.m0);
                run_chunk(&c, pool, c.m0 == 0 && !plan->packed);
            }
        }
    }
}

/* No k: C is the bias. */
static void run_empty(const tutti_gemm_plan *plan, const tutti_gemm *gemm)
{
    static const float zeros[MOST_WIDE];
    for (int64_t i = 0; i < plan->m && !gemm->add; i++)
        for (int64_t j = 0; j < plan->n; j += MOST_WIDE)
            tutti__gemm_finish(plan->tile, gemm, i, 1, j, least(MOST_WIDE, plan->n - j), zeros,
                               MOST_WIDE);
}

void tutti__gemm_run(const tutti_gemm_plan *plan, tutti_pool *pool, const tutti_gemm *gemm,
                     void *workspace)
{
    if (plan->m == 0 || plan->n == 0)
        return;
    if (plan->k == 0) {
        run_empty(plan, gemm);
        return;
    }
    if (tutti__gemm_is_row(plan, gemm)) {
        tutti__gemm_run_row(plan, pool, gemm);
        return;
    }
    pool = plan->parallel ? pool : NULL;
    if (plan->engine == NULL) {
        if (!tutti__gemm_run_apart(plan, pool, gemm, workspace))
            (plan->split_k ? run_split : run_plain)(plan, pool, gemm, workspace);
        return;
    }
    tutti__gemm_run_cut(plan, pool, gemm);
}
