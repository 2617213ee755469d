/* tile.c: micro-kernels of the plain matrix product. Accumulators of a tile of C stay in registers
 * while k runs; the arrays below are arrays of registers, so every loop over them is unrolled. */
#include "device/cpu/gemm/tile.h"

#include "base/isa.h"
#include "device/cpu/gemm/finish.h"
#include "device/cpu/gemm/pack.h"
#include "device/cpu/vector.h"

/* From this depth on the sums that a tile adds to are fetched while it is computed, and where rows
 * lie so far apart that no CPU guesses the next, also those that it only writes. */
enum { FETCHED_C = 64, FAR_ROWS = 512 };

/* Fewer rows than this do not pay for fetching the next panel ahead. */
enum { PREFETCH_ROWS = 96 };

/* One step along k: row i of the tile += a[i] * b. */
VEC_INLINE void step(int rows, int vecs, const float *a, const float *b, vec c[ROWS][WIDE])
{
    vec line[WIDE];
    VEC_UNROLL for (int j = 0; j < vecs; j++) line[j] = vec_load(b + VEC_LANES * j);
#if VEC_NEON
    /* The multiply-add takes one lane of a register as its scalar. */
    vec four[ROWS / 4];
    VEC_UNROLL for (int i = 0; i < rows / 4; i++) four[i] = vec_load(a + 4 * i);
#define SCALAR(i) four[(i) / 4][(i) % 4]
#else
#define SCALAR(i) a[i]
#endif
    VEC_UNROLL for (int i = 0; i < rows; i++)
    {
        /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): rows are a multiple of 4 */
        vec scalar = vec_splat(SCALAR(i));
        VEC_UNROLL for (int j = 0; j < vecs; j++) c[i][j] = vec_fma(line[j], scalar, c[i][j]);
    }
}

/* The same with rows that were not packed: row i stands at a + i * lda. */
VEC_INLINE void step_rows(int rows, int vecs, const float *a, int64_t lda, const float *b,
                          vec c[ROWS][WIDE])
{
    vec line[WIDE];
    VEC_UNROLL for (int j = 0; j < vecs; j++) line[j] = vec_load(b + VEC_LANES * j);
    VEC_UNROLL for (int i = 0; i < rows; i++)
    {
        vec scalar = vec_splat(a[i * lda]);
        VEC_UNROLL for (int j = 0; j < vecs; j++) c[i][j] = vec_fma(line[j], scalar, c[i][j]);
    }
}

/* c[rows, vecs * VEC_LANES] = or += the product of rows and a panel of `vecs` registers. The rows
 * of A stand side by side, lines of them lda apart (ROWS in a packed panel), or, `along`, each of
 * them along k, lda apart; lines of the panel of B lie ldb apart. */
VEC_INLINE void tile(int rows, int vecs, int64_t k, const float *a, int64_t lda, bool along,
                     const float *b, int64_t ldb, float *c, int64_t ldc, bool add)
{
    vec sum[ROWS][WIDE];
    int64_t p = 0;
    for (int i = 0; i < rows && k >= FETCHED_C && (add || ldc >= FAR_ROWS); i++) {
        __builtin_prefetch(c + i * ldc, 1, 3);
        __builtin_prefetch(c + i * ldc + vecs * VEC_LANES - 1, 1, 3);
    }
    VEC_UNROLL for (int i = 0; i < rows; i++) VEC_UNROLL for (int j = 0; j < vecs; j++) sum[i][j] =
        (vec){0};
    if (!along) {
        VEC_UNROLL_BY_4
        for (; p < k; p++)
            step(rows, vecs, a + p * lda, b + p * ldb, sum);
    } else {
        VEC_UNROLL_BY_4
        for (; p < k; p++)
            step_rows(rows, vecs, a + p, lda, b + p * ldb, sum);
    }
    VEC_UNROLL for (int i = 0; i < rows; i++) VEC_UNROLL for (int j = 0; j < vecs; j++)
    {
        float *at = c + i * ldc + j * VEC_LANES;
        vec_store(at, add ? vec_load(at) + sum[i][j] : sum[i][j]);
    }
}

typedef void tile_function(int64_t k, const float *a, int64_t lda, const float *b, float *c,
                           int64_t ldc, bool add);
#define TILE(name, rows, vecs)                                                                     \
    static void name(int64_t k, const float *a, int64_t lda, const float *b, float *c,             \
                     int64_t ldc, bool add)                                                        \
    {                                                                                              \
        (void)lda;                                                                                 \
        tile(rows, vecs, k, a, ROWS, false, b, (vecs)*VEC_LANES, c, ldc, add);                     \
    }
/* Rows of A side by side, lines of them that were not packed, `lda` apart. */
#define TILE_OF_LINES(name, rows, vecs)                                                            \
    static void name(int64_t k, const float *a, int64_t lda, const float *b, float *c,             \
                     int64_t ldc, bool add)                                                        \
    {                                                                                              \
        tile(rows, vecs, k, a, lda, false, b, (vecs)*VEC_LANES, c, ldc, add);                      \
    }
#define TILE_OF_ROWS(name, rows, vecs)                                                             \
    static void name(int64_t k, const float *a, int64_t lda, const float *b, float *c,             \
                     int64_t ldc, bool add)                                                        \
    {                                                                                              \
        tile(rows, vecs, k, a, lda, true, b, (vecs)*VEC_LANES, c, ldc, add);                       \
    }
/* Lines of B that were not packed, `lda` apart. */
#define TILE_OF_COLUMNS(name, rows, vecs)                                                          \
    static void name(int64_t k, const float *a, int64_t lda, const float *b, float *c,             \
                     int64_t ldc, bool add)                                                        \
    {                                                                                              \
        tile(rows, vecs, k, a, ROWS, false, b, lda, c, ldc, add);                                  \
    }
/* Tiles of some height; in an array the highest come first. */
typedef struct height {
    int rows;
    tile_function *narrow, *wide;
} height;

#define TILES(make, name, rows)                                                                    \
    make(name##_##rows##_wide, rows, WIDE) make(name##_##rows##_narrow, rows, NARROW)
#define HEIGHT(name, rows)                                                                         \
    {                                                                                              \
        rows, name##_##rows##_narrow, name##_##rows##_wide                                         \
    }
#if VEC_LANES == 16
#define EACH_HEIGHT(make, name) TILES(make, name, 12) TILES(make, name, 8) TILES(make, name, 4)
#define HEIGHTS(name) HEIGHT(name, 12), HEIGHT(name, 8), HEIGHT(name, 4)
#elif VEC_NEON
#define EACH_HEIGHT(make, name) TILES(make, name, 8) TILES(make, name, 4)
#define HEIGHTS(name) HEIGHT(name, 8), HEIGHT(name, 4)
#else
#define EACH_HEIGHT(make, name) TILES(make, name, 4)
#define HEIGHTS(name) HEIGHT(name, 4)
#endif

EACH_HEIGHT(TILE, tile_packed)
static const height packed_tiles[] = {HEIGHTS(tile_packed)};
EACH_HEIGHT(TILE_OF_COLUMNS, tile_columns)
static const height column_tiles[] = {HEIGHTS(tile_columns)};
EACH_HEIGHT(TILE_OF_LINES, tile_lines)
static const height line_tiles[] = {HEIGHTS(tile_lines)};
#if !VEC_NEON
EACH_HEIGHT(TILE_OF_ROWS, tile_rows)
static const height row_tiles[] = {HEIGHTS(tile_rows)};
#endif
enum { HEIGHT_COUNT = sizeof packed_tiles / sizeof *packed_tiles };

/* The highest tile that `rows` fill, or the lowest. */
static const height *height_for(const height *tiles, int64_t rows)
{
    const height *last = tiles + HEIGHT_COUNT - 1;
    while (tiles < last && tiles->rows > rows)
        tiles++;
    return tiles;
}

/* A tile at the edge of C: computed whole, the part that exists is stored. */
static void edge(tile_function *function, int64_t rows, int64_t cols, int64_t k, const float *a,
                 int64_t lda, const float *b, float *c, int64_t ldc, bool add)
{
    float whole[ROWS * WIDE * VEC_LANES];
    function(k, a, lda, b, whole, WIDE * VEC_LANES, false);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            float sum = whole[i * WIDE * VEC_LANES + j];
            c[i * ldc + j] = add ? c[i * ldc + j] + sum : sum;
        }
}

static void tile_multiply(int64_t m, int64_t n, int64_t k, const void *packed_a,
                          const void *packed_b, int64_t width, float *c, int64_t ldc, bool add)
{
    const float *a = packed_a, *b = packed_b;
    bool wide = width == WIDE * VEC_LANES;
    const float *next = b + width * k; /* the next panel, fetched while this one is used */
    int64_t lines = m < PREFETCH_ROWS ? 0 : (width * k / 16 * ROWS + m - 1) / m;
    for (int64_t i = 0; i < m; i += ROWS, a += ROWS * k, c += ROWS * ldc) {
        for (int64_t line = 0; line < lines; line++, next += 16)
            __builtin_prefetch(next, 0, 2);
        int64_t rows = m - i < ROWS ? m - i : ROWS;
        const height *of;
        for (int64_t row = 0; row < rows; row += of->rows) {
            of = height_for(packed_tiles, rows - row);
            tile_function *function = wide ? of->wide : of->narrow;
            if (rows - row >= of->rows && n == width)
                function(k, a + row, 0, b, c + row * ldc, ldc, add);
            else
                edge(function, rows - row < of->rows ? rows - row : of->rows, n, k, a + row, 0, b,
                     c + row * ldc, ldc, add);
        }
    }
}

/* Few rows are not worth packing B for. */
static void multiply_columns(int64_t m, int64_t k, const void *packed_a, const float *b,
                             int64_t ldb, int64_t width, float *c, int64_t ldc, bool add)
{
    const float *a = packed_a;
    bool wide = width == WIDE * VEC_LANES;
    for (int64_t i = 0; i < m; i += ROWS, a += ROWS * k, c += ROWS * ldc) {
        int64_t rows = m - i < ROWS ? m - i : ROWS;
        const height *of;
        for (int64_t row = 0; row < rows; row += of->rows) {
            of = height_for(column_tiles, rows - row);
            tile_function *function = wide ? of->wide : of->narrow;
            if (rows - row >= of->rows)
                function(k, a + row, ldb, b, c + row * ldc, ldc, add);
            else
                edge(function, rows - row, width, k, a + row, ldb, b, c + row * ldc, ldc, add);
        }
    }
}

/* A stands as it would in panels, so that it need not be packed: A was given turned. The last rows,
 * fewer than four, are packed. */
static void multiply_lines(int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
                           const float *b, int64_t width, float *c, int64_t ldc, bool add)
{
    bool wide = width == WIDE * VEC_LANES;
    const height *of;
    int64_t i = 0;
    for (; m - i >= 4; i += of->rows) {
        of = height_for(line_tiles, m - i);
        tile_function *function = wide ? of->wide : of->narrow;
        if (n == width)
            function(k, a + i, lda, b, c + i * ldc, ldc, add);
        else
            edge(function, of->rows, n, k, a + i, lda, b, c + i * ldc, ldc, add);
    }
    if (i == m)
        return;
    float panel[ROWS * DEPTH];
    pack(ROWS, m - i, k, a + i, lda, 1, panel);
    tile_multiply(m - i, n, k, panel, b, width, c + i * ldc, ldc, add);
}

#if !VEC_NEON /* there a multiply-add by a lane wants its scalars side by side */
/* The last rows, fewer than four, are packed. */
static void multiply_rows(int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
                          const float *b, int64_t width, float *c, int64_t ldc, bool add)
{
    bool wide = width == WIDE * VEC_LANES;
    const height *of;
    int64_t i = 0;
    for (; m - i >= 4; i += of->rows) {
        of = height_for(row_tiles, m - i);
        tile_function *function = wide ? of->wide : of->narrow;
        if (n == width)
            function(k, a + i * lda, lda, b, c + i * ldc, ldc, add);
        else
            edge(function, of->rows, n, k, a + i * lda, lda, b, c + i * ldc, ldc, add);
    }
    if (i == m)
        return;
    float panel[ROWS * DEPTH];
    pack(ROWS, m - i, k, a + i * lda, 1, lda, panel);
    tile_multiply(m - i, n, k, panel, b, width, c + i * ldc, ldc, add);
}
#endif

/* Columns of one row that are summed side by side, in registers: enough of them hide how long a
 * multiply-add takes. */
#if VEC_NEON
enum { ROW_VECS = 16 };
#else
enum { ROW_VECS = 8 };
#endif

/* The last column's register may have `lanes` only. */
VEC_INLINE void row_part(int vecs, int64_t lanes, int64_t k, const float *a, const float *b,
                         int64_t ldb, float *c, bool add)
{
    vec sum[ROW_VECS];
    VEC_UNROLL for (int j = 0; j < vecs; j++) sum[j] = (vec){0};
    for (int64_t p = 0; p < k; p++, b += ldb) {
        vec scalar = vec_splat(a[p]);
        VEC_UNROLL for (int j = 0; j < vecs; j++) sum[j] = vec_fma(
            vec_load_lanes(b + j * VEC_LANES, j + 1 < vecs ? VEC_LANES : lanes), scalar, sum[j]);
    }
    VEC_UNROLL for (int j = 0; j < vecs; j++)
    {
        int64_t count = j + 1 < vecs ? VEC_LANES : lanes;
        float *at = c + j * VEC_LANES;
        vec_store_lanes(at, add ? vec_load_lanes(at, count) + sum[j] : sum[j], count);
    }
}

static void multiply_row(int64_t n, int64_t k, const float *a, const float *b, int64_t ldb,
                         float *c, bool add)
{
    enum { WHOLE = ROW_VECS * VEC_LANES, HALF = WHOLE / 2, QUARTER = WHOLE / 4 };
    int64_t j = 0;
    for (; j + WHOLE <= n; j += WHOLE)
        row_part(ROW_VECS, VEC_LANES, k, a, b + j, ldb, c + j, add);
    for (; j + HALF <= n; j += HALF)
        row_part(ROW_VECS / 2, VEC_LANES, k, a, b + j, ldb, c + j, add);
    for (; j + QUARTER <= n; j += QUARTER)
        row_part(ROW_VECS / 4, VEC_LANES, k, a, b + j, ldb, c + j, add);
    for (; j + VEC_LANES <= n; j += VEC_LANES)
        row_part(1, VEC_LANES, k, a, b + j, ldb, c + j, add);
#if VEC_MASKED
    if (j < n)
        row_part(1, n - j, k, a, b + j, ldb, c + j, add);
#else
    for (; j < n; j++) {
        float sum = 0;
        for (int64_t p = 0; p < k; p++)
            sum =
                VEC_FUSED ? __builtin_fmaf(b[p * ldb + j], a[p], sum) : sum + b[p * ldb + j] * a[p];
        c[j] = add ? c[j] + sum : sum;
    }
#endif
}

const tutti_gemm_tile TUTTI_ISA_NAME(tutti_gemm_tile) = {
    .isa = TUTTI_ISA_TEXT,
    .rows = ROWS,
    .wide = WIDE * VEC_LANES,
    .narrow = NARROW * VEC_LANES,
    .depth = DEPTH,
    .element = sizeof(float),
    .pad = 1,
    .pack = pack,
    .pack_lines = pack_lines,
    .multiply = tile_multiply,
    .multiply_lines = multiply_lines,
    .multiply_columns = multiply_columns,
    .multiply_row = multiply_row,
    .row = ROW_VECS * VEC_LANES,
    .finish = finish,
#if !VEC_NEON
    .multiply_rows = multiply_rows,
#endif
};
