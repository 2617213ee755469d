/* tile.c: micro-kernels of the plain matrix product. Accumulators of a tile of C stay in registers
 * while k runs; the arrays below are arrays of registers, so every loop over them is unrolled. */
#include "device/cpu/gemm/tile.h"

#include <string.h>

#include "base/isa.h"
#include "device/cpu/gemm/finish.h"
#include "device/cpu/vector.h"

/* Rows of a tile, and registers in a row of a wide and of a narrow one. */
#if VEC_NEON
enum { ROWS = 8, WIDE = 3, NARROW = 2, DEPTH = 384 };
#elif VEC_LANES == 16 /* and 32 registers: AVX-512, SVE */
enum { ROWS = 12, WIDE = 2, NARROW = 1, DEPTH = 320 };
#elif defined(__AVX2__)
enum { ROWS = 4, WIDE = 3, NARROW = 2, DEPTH = 256 };
#else
enum { ROWS = 4, WIDE = 2, NARROW = 1, DEPTH = 256 };
#endif

/* From this depth on the sums that a tile adds to are fetched while it is computed. */
enum { FETCHED_C = 64 };

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
 * are a packed panel of ROWS, or, with an lda that is not 0, rows that were not packed; lines of
 * the panel of B lie ldb apart. */
VEC_INLINE void tile(int rows, int vecs, int64_t k, const float *a, int64_t lda, const float *b,
                     int64_t ldb, float *c, int64_t ldc, bool add)
{
    vec sum[ROWS][WIDE];
    int64_t p = 0;
    for (int i = 0; i < rows && add && k >= FETCHED_C; i++) {
        __builtin_prefetch(c + i * ldc, 1, 3);
        __builtin_prefetch(c + i * ldc + vecs * VEC_LANES - 1, 1, 3);
    }
    VEC_UNROLL for (int i = 0; i < rows; i++) VEC_UNROLL for (int j = 0; j < vecs; j++) sum[i][j] =
        (vec){0};
    if (lda == 0) {
        VEC_UNROLL_BY_4
        for (; p < k; p++)
            step(rows, vecs, a + p * ROWS, b + p * ldb, sum);
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
        tile(rows, vecs, k, a, 0, b, (vecs)*VEC_LANES, c, ldc, add);                               \
    }
#define TILE_OF_ROWS(name, rows, vecs)                                                             \
    static void name(int64_t k, const float *a, int64_t lda, const float *b, float *c,             \
                     int64_t ldc, bool add)                                                        \
    {                                                                                              \
        tile(rows, vecs, k, a, lda, b, (vecs)*VEC_LANES, c, ldc, add);                             \
    }
/* Lines of B that were not packed, `lda` apart. */
#define TILE_OF_COLUMNS(name, rows, vecs)                                                          \
    static void name(int64_t k, const float *a, int64_t lda, const float *b, float *c,             \
                     int64_t ldc, bool add)                                                        \
    {                                                                                              \
        tile(rows, vecs, k, a, 0, b, lda, c, ldc, add);                                            \
    }
TILE_OF_COLUMNS(tile_columns_wide, ROWS, WIDE)
TILE_OF_COLUMNS(tile_columns_narrow, ROWS, NARROW)
TILE_OF_COLUMNS(tile_columns_low_wide, 4, WIDE)
TILE_OF_COLUMNS(tile_columns_low_narrow, 4, NARROW)
TILE(tile_wide, ROWS, WIDE)
TILE(tile_narrow, ROWS, NARROW)
#if !VEC_NEON
TILE_OF_ROWS(tile_rows_wide, ROWS, WIDE)
TILE_OF_ROWS(tile_rows_narrow, ROWS, NARROW)
TILE_OF_ROWS(tile_rows_low_wide, 4, WIDE)
TILE_OF_ROWS(tile_rows_low_narrow, 4, NARROW)
#endif
#if VEC_NEON || VEC_LANES == 16
TILE(tile_low_wide, 4, WIDE)
TILE(tile_low_narrow, 4, NARROW)
#else
#define tile_low_wide tile_wide
#define tile_low_narrow tile_narrow
#endif

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

static void multiply(int64_t m, int64_t n, int64_t k, const void *packed_a, const void *packed_b,
                     int64_t width, float *c, int64_t ldc, bool add)
{
    const float *a = packed_a, *b = packed_b;
    bool wide = width == WIDE * VEC_LANES;
    const float *next = b + width * k; /* the next panel, fetched while this one is used */
    int64_t lines = m < PREFETCH_ROWS ? 0 : (width * k / 16 * ROWS + m - 1) / m;
    tile_function *whole = wide ? tile_wide : tile_narrow;
    tile_function *low = wide ? tile_low_wide : tile_low_narrow;
    for (int64_t i = 0; i < m; i += ROWS, a += ROWS * k, c += ROWS * ldc) {
        for (int64_t line = 0; line < lines; line++, next += 16)
            __builtin_prefetch(next, 0, 2);
        if (m - i >= ROWS && n == width)
            whole(k, a, 0, b, c, ldc, add);
        else if (m - i >= ROWS)
            edge(whole, ROWS, n, k, a, 0, b, c, ldc, add);
        for (int64_t row = 0; row < m - i && m - i < ROWS; row += 4)
            if (m - i - row >= 4 && n == width)
                low(k, a + row, 0, b, c + row * ldc, ldc, add);
            else
                edge(low, m - i - row < 4 ? m - i - row : 4, n, k, a + row, 0, b, c + row * ldc,
                     ldc, add);
    }
}

/* Few rows are not worth packing B for. */
static void multiply_columns(int64_t m, int64_t k, const void *packed_a, const float *b,
                             int64_t ldb, int64_t width, float *c, int64_t ldc, bool add)
{
    const float *a = packed_a;
    bool wide = width == WIDE * VEC_LANES;
    for (int64_t i = 0; i < m; i += ROWS, a += ROWS * k, c += ROWS * ldc) {
        tile_function *whole = wide ? tile_columns_wide : tile_columns_narrow;
        tile_function *low = wide ? tile_columns_low_wide : tile_columns_low_narrow;
        if (m - i >= ROWS)
            whole(k, a, ldb, b, c, ldc, add);
        for (int64_t row = 0; row < m - i && m - i < ROWS; row += 4)
            if (m - i - row >= 4)
                low(k, a + row, ldb, b, c + row * ldc, ldc, add);
            else
                edge(low, m - i - row, width, k, a + row, ldb, b, c + row * ldc, ldc, add);
    }
}

/* One line along k of a panel, or zeros past the end. */
static void pack_line(int64_t width, int64_t k, const float *source, int64_t step_, float *panel)
{
    for (int64_t p = 0; p < k; p++)
        panel[p * width] = source == NULL ? 0 : source[p * step_];
}

/* Four lines that are contiguous along k: blocks of 4 x 4 are transposed. */
static void pack_four(int64_t width, int64_t k, const float *source, int64_t stride, float *panel)
{
    int64_t p = 0;
    for (; p + 4 <= k; p += 4) {
        const float *from = source + p;
        float *to = panel + p * width;
        quad r0 = *(const quad_unaligned *)from;
        quad r1 = *(const quad_unaligned *)(from + stride);
        quad r2 = *(const quad_unaligned *)(from + 2 * stride);
        quad r3 = *(const quad_unaligned *)(from + 3 * stride);
        quad_transpose(&r0, &r1, &r2, &r3);
        *(quad_unaligned *)to = r0;
        *(quad_unaligned *)(to + width) = r1;
        *(quad_unaligned *)(to + 2 * width) = r2;
        *(quad_unaligned *)(to + 3 * width) = r3;
    }
    for (; p < k; p++)
        for (int64_t i = 0; i < 4; i++)
            panel[p * width + i] = source[i * stride + p];
}

/* Lines that are contiguous across the panel: copies of `width` elements. */
VEC_INLINE void copy_across(int64_t width, int64_t k, const float *source, int64_t step_,
                            float *panel)
{
    for (int64_t p = 0; p < k; p++, source += step_, panel += width) {
        int64_t i = 0;
        for (; i + VEC_LANES <= width; i += VEC_LANES)
            vec_store(panel + i, vec_load(source + i));
        for (; i < width; i += 4)
            *(quad_unaligned *)(panel + i) = *(const quad_unaligned *)(source + i);
    }
}

/* The widths there are, so that the copies unroll. */
static void pack_across(int64_t width, int64_t k, const float *source, int64_t step_, float *panel)
{
    if (width == WIDE * VEC_LANES)
        copy_across(WIDE * VEC_LANES, k, source, step_, panel);
    else if (width == NARROW * VEC_LANES)
        copy_across(NARROW * VEC_LANES, k, source, step_, panel);
    else
        copy_across(ROWS, k, source, step_, panel);
}

static void pack(int64_t width, int64_t count, int64_t k, const float *source, int64_t step_,
                 int64_t stride, float *panel)
{
    if (count == width && stride == 1) {
        pack_across(width, k, source, step_, panel);
        return;
    }
    /* Rows of A are multiplied by fours; columns of B all at once. */
    const bool rows = ROWS != NARROW * VEC_LANES && width == ROWS;
    int64_t i = 0, filled = rows ? (count + 3) / 4 * 4 : width;
    for (; step_ == 1 && i + 4 <= count; i += 4)
        pack_four(width, k, source + i * stride, stride, panel + i);
    for (; i < filled; i++)
        pack_line(width, k, i < count ? source + i * stride : NULL, step_, panel + i);
}

/* Lines of bf16 are widened a few steps of k at a time. */
static void pack_lines(const tutti_gemm_lines *l, void *panel)
{
    enum { CHUNK = 64, WIDEST = ROWS > WIDE * VEC_LANES ? ROWS : WIDE * VEC_LANES };
    float widened[CHUNK * WIDEST];
    const uint16_t *source = l->source;
    float *to = panel;
    if (!l->bf16) {
        pack(l->width, l->count, l->k, l->source, l->step, l->stride, panel);
        return;
    }
    bool along = l->step == 1;
    for (int64_t p = 0; p < l->k; p += CHUNK, to += CHUNK * l->width) {
        int64_t k = l->k - p < CHUNK ? l->k - p : CHUNK, length = along ? k : l->count;
        int64_t lines = along ? l->count : k, room = along ? CHUNK : WIDEST;
        for (int64_t i = 0; i < lines; i++) {
            const uint16_t *from = source + p * l->step + i * (along ? l->stride : l->step);
            for (int64_t j = 0; j < length; j++) {
                uint32_t bits = (uint32_t)from[j] << 16;
                memcpy(widened + i * room + j, &bits, sizeof bits);
            }
        }
        pack(l->width, l->count, k, widened, along ? 1 : room, along ? room : 1, to);
    }
}

#if !VEC_NEON /* there a multiply-add by a lane wants its scalars side by side */
/* The last rows, fewer than four, are packed. */
static void multiply_rows(int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
                          const float *b, int64_t width, float *c, int64_t ldc, bool add)
{
    bool wide = width == WIDE * VEC_LANES;
    int64_t i = 0, rows;
    for (; m - i >= 4; i += rows) {
        bool high = m - i >= ROWS;
        rows = high ? ROWS : 4;
        tile_function *function = wide ? (high ? tile_rows_wide : tile_rows_low_wide)
                                       : (high ? tile_rows_narrow : tile_rows_low_narrow);
        if (n == width)
            function(k, a + i * lda, lda, b, c + i * ldc, ldc, add);
        else
            edge(function, rows, n, k, a + i * lda, lda, b, c + i * ldc, ldc, add);
    }
    if (i == m)
        return;
    float panel[ROWS * DEPTH];
    pack(ROWS, m - i, k, a + i * lda, 1, lda, panel);
    multiply(m - i, n, k, panel, b, width, c + i * ldc, ldc, add);
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
    .multiply = multiply,
    .multiply_columns = multiply_columns,
    .multiply_row = multiply_row,
    .row = ROW_VECS * VEC_LANES,
    .finish = finish,
#if !VEC_NEON
    .multiply_rows = multiply_rows,
#endif
};
