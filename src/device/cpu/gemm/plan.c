/* plan.c: which tile runs a product, and how it is cut: all by shape. */
#include <string.h>

#include "device/cpu/gemm/run.h"
#include "device/cpu/isa.h"
#include "tables/gemm_tile.h"

enum {
    ALIGNMENT = 64,
    PACKED_A = 1 << 21, /* elements in a chunk */
    PACKED_B = 1 << 22,
    PACKED_A_ONE = 1 << 16,
    PACKED_B_ONE = 1 << 17,
    PIECE_COLS = 384,
    ENOUGH_PIECES = 16,
};
#define PIECE_FLOPS 1e6
#define BLOCK_FLOPS 2e5
#define PARALLEL_FLOPS 6e5
#define ENGINE_FLOPS 4e6
#define ENGINE_SIDE 128
#define ENGINE_ROWS 256 /* so that there are pieces for some threads */
/* How often an element is used, on average: a library packs all of them for each thread. */
#define ENGINE_USES 128

/* The best one for elements of a size that this CPU runs, or NULL. */
static const tutti_gemm_tile *best_tile(int element)
{
    const tutti_gemm_tile *best = NULL;
    for (const tutti_gemm_tile *const *tile = tutti__gemm_tile_table; *tile != NULL; tile++)
        if ((*tile)->element == element && tutti__isa_present((*tile)->isa) &&
            (best == NULL || tutti__isa_better((*tile)->isa, best->isa)))
            best = *tile;
    return best;
}

const tutti_gemm_tile *tutti__gemm_tile(void)
{
    return best_tile(sizeof(float));
}

tutti_status tutti__gemm_check_build(void)
{
    if (tutti__gemm_tile() != NULL)
        return TUTTI_OK;
    return tutti_fail(TUTTI_UNSUPPORTED,
                      "this build has no kernels for this CPU or for TUTTI_ISA: it was made for "
                      "another one; configure it with -Dinstruction_sets=all");
}

const tutti_gemm_tile *tutti__gemm_bf16_tile(void)
{
    return best_tile(2);
}

/* Whether tiles use the instructions that libraries use: TUTTI_ISA may hide these from them. */
static bool matches_libraries(const tutti_gemm_tile *tile)
{
    return strcmp(tile->isa, "avx512") == 0;
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
 * should serve several tiles of rows, so rows are cut last. Of an empty product there is no piece,
 * but its size is never 0: others divide by it. */
static void cut_pieces(tutti_gemm_plan *plan)
{
    const tutti_gemm_tile *tile = plan->tile;
    int64_t fewest = least(plan->m, 4 * tile->rows);
    plan->piece_m =
        least(round_up(plan->chunk_m, tile->rows), round_up(TUTTI_GEMM_PIECE_ROWS, tile->rows));
    plan->piece_n = least(divide_up(plan->chunk_n, tile->wide), PIECE_COLS / tile->wide);
    if (plan->piece_m == 0)
        plan->piece_m = tile->rows;
    if (plan->piece_n == 0)
        plan->piece_n = 1;
    while (plan->parallel && piece_flops(plan) >= 2 * PIECE_FLOPS) {
        int64_t pieces = divide_up(plan->chunk_m, plan->piece_m) *
                         divide_up(plan->chunk_n, plan->piece_n * tile->wide);
        int64_t half = round_up(plan->piece_m / 2, tile->rows);
        bool tall = plan->piece_m / 2 >= fewest && half < plan->piece_m;
        if (pieces >= ENOUGH_PIECES || (!tall && plan->piece_n == 1))
            return;
        if (tall && plan->piece_m >= plan->piece_n * tile->wide)
            plan->piece_m = half;
        else if (plan->piece_n > 1)
            plan->piece_n = divide_up(plan->piece_n, 2);
        else
            plan->piece_m = half;
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
    bool bf16 = flags & TUTTI_GEMM_BF16, rounded = bf16 || flags & TUTTI_GEMM_ROUNDED;
    tutti_gemm_plan plan = {.tile = bf16 ? tutti__gemm_bf16_tile() : NULL, .m = m, .n = n, .k = k};
    if (plan.tile == NULL)
        plan.tile = tutti__gemm_tile();
    plan.packed = flags & TUTTI_GEMM_PACKED && !rounded;
    bool library = !rounded && !plan.packed && flops >= ENGINE_FLOPS && m <= INT32_MAX &&
                   n <= INT32_MAX && k <= INT32_MAX;
    bool large = m >= ENGINE_ROWS && n >= ENGINE_SIDE && k >= ENGINE_SIDE &&
                 (m * n >= ENGINE_USES * (m + n) || !matches_libraries(plan.tile));
    if (library && !(flags & TUTTI_GEMM_PLAIN) &&
        tutti__gemm_engine(large && flags & TUTTI_GEMM_RIVALS, &plan.engine) != TUTTI_OK)
        plan.engine = NULL;
    plan.parallel = !one && flops >= PARALLEL_FLOPS;
    plan.chunk_n = n;
    plan.chunk_k = k;
    while (!plan.packed && plan.chunk_n * plan.chunk_k > (one ? PACKED_B_ONE : PACKED_B)) {
        if (plan.chunk_n <= plan.tile->wide && rounded)
            break;
        if (plan.chunk_k > 2 * plan.tile->depth && !rounded)
            plan.chunk_k = round_up(plan.chunk_k / 2, plan.tile->depth);
        else
            plan.chunk_n = round_up(plan.chunk_n / 2, plan.tile->wide);
    }
    int64_t rows = (one ? PACKED_A_ONE : PACKED_A) / (plan.chunk_k > 0 ? plan.chunk_k : 1);
    rows = rows / plan.tile->rows * plan.tile->rows;
    plan.chunk_m = least(m, rows < plan.tile->rows ? plan.tile->rows : rows);
    cut_pieces(&plan);
    plan.split_k = splits_k(&plan);
    plan.apart = plan.engine == NULL && !rounded && !plan.packed && m > 2 * plan.tile->rows;
    return plan;
}

/* Elements along k with padding, of all blocks of a chunk. */
static int64_t padded_k(const tutti_gemm_plan *plan)
{
    return round_up(plan->chunk_k, plan->tile->pad);
}

size_t tutti__gemm_packed_a(const tutti_gemm_plan *plan)
{
    int64_t elements = round_up(plan->chunk_m, plan->tile->rows) * padded_k(plan);
    return (size_t)round_up(elements * plan->tile->element, ALIGNMENT);
}

/* A chunk of fewer columns may have more padding: at most two narrow panels. */
size_t tutti__gemm_packed_b(const tutti_gemm_plan *plan)
{
    if (plan->packed)
        return 0;
    int64_t columns = plan->chunk_n + plan->tile->wide + 2 * plan->tile->narrow;
    return (size_t)round_up(columns * padded_k(plan) * plan->tile->element, ALIGNMENT);
}

size_t tutti__gemm_workspace(const tutti_gemm_plan *plan)
{
    if (plan->engine != NULL)
        return 0;
    size_t sums =
        plan->split_k ? (size_t)(divide_up(plan->k, plan->tile->depth) * plan->m * plan->n) : 0;
    size_t shared = tutti__gemm_packed_a(plan) + tutti__gemm_packed_b(plan) + sizeof(float) * sums;
    size_t own = plan->apart ? (size_t)round_up((int64_t)tutti__gemm_apart_workspace(plan), 64) : 0;
    return shared > own ? shared : own;
}
