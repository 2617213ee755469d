/* tile.c: products of panels of bytes by what the instruction set has for them. Sums are exact:
 * every set gives the same bits. */
#include "device/cpu/int8/tile.h"
#include "base/isa.h"
#include "device/cpu/vector.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__ARM_FEATURE_MATMUL_INT8)
enum { ROWS = 8, COLUMNS = 8, DEPTH = 8, BYTES = 1, LEFT_UNSIGNED = 0 };

/* sums[i][j]: rows 2 i, 2 i + 1 and columns 2 j, 2 j + 1, row by row. */
static void store(int32x4_t sums[4][4], int32_t *c)
{
    VEC_UNROLL for (int i = 0; i < 4; i++) VEC_UNROLL for (int half = 0; half < 2; half++)
    {
        int32x4_t x = sums[i][2 * half], y = sums[i][2 * half + 1];
        vst1q_s32(c + (2 * i) * COLUMNS + 4 * half, vcombine_s32(vget_low_s32(x), vget_low_s32(y)));
        vst1q_s32(c + (2 * i + 1) * COLUMNS + 4 * half,
                  vcombine_s32(vget_high_s32(x), vget_high_s32(y)));
    }
}

static void tile_run(int64_t blocks, const void *left, const void *right, int32_t *c)
{
    const int8_t *a = left, *b = right;
    int32x4_t sums[4][4];
    VEC_UNROLL for (int i = 0; i < 4; i++) VEC_UNROLL for (int j = 0; j < 4; j++) sums[i][j] =
        vdupq_n_s32(0);
    for (int64_t block = 0; block < blocks; block++, a += 64, b += 64) {
        int8x16_t x[4], y[4];
        VEC_UNROLL for (int i = 0; i < 4; i++)
        {
            x[i] = vld1q_s8(a + 16 * i);
            y[i] = vld1q_s8(b + 16 * i);
        }
        VEC_UNROLL for (int i = 0; i < 4; i++) VEC_UNROLL for (int j = 0; j < 4; j++) sums[i][j] =
            vmmlaq_s32(sums[i][j], x[i], y[j]);
    }
    store(sums, c);
}

#elif defined(__ARM_FEATURE_DOTPROD)
enum { ROWS = 8, COLUMNS = 8, DEPTH = 4, BYTES = 1, LEFT_UNSIGNED = 0 };

static void tile_run(int64_t blocks, const void *left, const void *right, int32_t *c)
{
    const int8_t *a = left, *b = right;
    int32x4_t sums[ROWS][2];
    VEC_UNROLL for (int i = 0; i < ROWS; i++) sums[i][0] = sums[i][1] = vdupq_n_s32(0);
    for (int64_t block = 0; block < blocks; block++, a += 32, b += 32) {
        int8x16_t x0 = vld1q_s8(a), x1 = vld1q_s8(a + 16);
        int8x16_t y[2] = {vld1q_s8(b), vld1q_s8(b + 16)};
        VEC_UNROLL for (int j = 0; j < 2; j++)
        {
            sums[0][j] = vdotq_laneq_s32(sums[0][j], y[j], x0, 0);
            sums[1][j] = vdotq_laneq_s32(sums[1][j], y[j], x0, 1);
            sums[2][j] = vdotq_laneq_s32(sums[2][j], y[j], x0, 2);
            sums[3][j] = vdotq_laneq_s32(sums[3][j], y[j], x0, 3);
            sums[4][j] = vdotq_laneq_s32(sums[4][j], y[j], x1, 0);
            sums[5][j] = vdotq_laneq_s32(sums[5][j], y[j], x1, 1);
            sums[6][j] = vdotq_laneq_s32(sums[6][j], y[j], x1, 2);
            sums[7][j] = vdotq_laneq_s32(sums[7][j], y[j], x1, 3);
        }
    }
    VEC_UNROLL for (int i = 0; i < ROWS; i++) VEC_UNROLL for (int j = 0; j < 2; j++)
        vst1q_s32(c + i * COLUMNS + 4 * j, sums[i][j]);
}

#elif defined(__AVX512F__)
#if defined(__AVX512VNNI__)
enum { ROWS = 8, COLUMNS = 32, DEPTH = 4, BYTES = 1, LEFT_UNSIGNED = 1 };
#define MULTIPLY(sum, x, y) _mm512_dpbusd_epi32(sum, x, y)
#else
enum { ROWS = 8, COLUMNS = 32, DEPTH = 2, BYTES = 2, LEFT_UNSIGNED = 0 };
#define MULTIPLY(sum, x, y) _mm512_add_epi32(sum, _mm512_madd_epi16(x, y))
#endif

/* Both forms have 4 bytes of a line together. */
static void tile_run(int64_t blocks, const void *left, const void *right, int32_t *c)
{
    const int32_t *a = left, *b = right;
    __m512i sums[ROWS][2];
    VEC_UNROLL for (int i = 0; i < ROWS; i++) sums[i][0] = sums[i][1] = _mm512_setzero_si512();
    for (int64_t block = 0; block < blocks; block++, a += ROWS, b += COLUMNS) {
        __m512i y0 = _mm512_loadu_si512(b), y1 = _mm512_loadu_si512(b + 16);
        VEC_UNROLL for (int i = 0; i < ROWS; i++)
        {
            __m512i x = _mm512_set1_epi32(a[i]);
            sums[i][0] = MULTIPLY(sums[i][0], x, y0);
            sums[i][1] = MULTIPLY(sums[i][1], x, y1);
        }
    }
    VEC_UNROLL for (int i = 0; i < ROWS; i++) VEC_UNROLL for (int j = 0; j < 2; j++)
        _mm512_storeu_si512(c + i * COLUMNS + 16 * j, sums[i][j]);
}

#elif defined(__AVX2__)
enum { ROWS = 6, COLUMNS = 16, DEPTH = 2, BYTES = 2, LEFT_UNSIGNED = 0 };

static void tile_run(int64_t blocks, const void *left, const void *right, int32_t *c)
{
    const int32_t *a = left, *b = right;
    __m256i sums[ROWS][2];
    VEC_UNROLL for (int i = 0; i < ROWS; i++) sums[i][0] = sums[i][1] = _mm256_setzero_si256();
    for (int64_t block = 0; block < blocks; block++, a += ROWS, b += COLUMNS) {
        __m256i y0 = _mm256_loadu_si256((const __m256i *)(const void *)b);
        __m256i y1 = _mm256_loadu_si256((const __m256i *)(const void *)(b + 8));
        VEC_UNROLL for (int i = 0; i < ROWS; i++)
        {
            __m256i x = _mm256_set1_epi32(a[i]);
            sums[i][0] = _mm256_add_epi32(sums[i][0], _mm256_madd_epi16(x, y0));
            sums[i][1] = _mm256_add_epi32(sums[i][1], _mm256_madd_epi16(x, y1));
        }
    }
    VEC_UNROLL for (int i = 0; i < ROWS; i++) VEC_UNROLL for (int j = 0; j < 2; j++)
        _mm256_storeu_si256((__m256i *)(void *)(c + i * COLUMNS + 8 * j), sums[i][j]);
}

#else
enum { ROWS = 4, COLUMNS = 16, DEPTH = 1, BYTES = 2, LEFT_UNSIGNED = 0 };

static void tile_run(int64_t blocks, const void *left, const void *right, int32_t *c)
{
    const int16_t *a = left, *b = right;
    int32_t sums[ROWS][COLUMNS] = {0};
    for (int64_t block = 0; block < blocks; block++, a += ROWS, b += COLUMNS)
        VEC_UNROLL for (int i = 0; i < ROWS; i++) VEC_UNROLL for (int j = 0; j < COLUMNS; j++)
            sums[i][j] += a[i] * b[j];
    VEC_UNROLL for (int i = 0; i < ROWS; i++) VEC_UNROLL for (int j = 0; j < COLUMNS; j++)
        c[i * COLUMNS + j] = sums[i][j];
}
#endif

const tutti_int8_tile TUTTI_ISA_NAME(tutti_int8_tile) = {
    .isa = TUTTI_ISA_TEXT,
    .rows = ROWS,
    .columns = COLUMNS,
    .depth = DEPTH,
    .bytes = BYTES,
    .left_unsigned = LEFT_UNSIGNED,
    .run = tile_run,
};
