/* amx.h: tile_bf16.c's tile by AMX: 16 x 16 sums += 16 rows x 32 by 32 x 16 columns, four such
 * tiles of sums at once. The registers are configured for each call and released after it, so that
 * a switch of threads elsewhere saves nothing. base/cpu.c asks the system for them. */
#ifndef TUTTI_DEVICE_CPU_GEMM_AMX_H
#define TUTTI_DEVICE_CPU_GEMM_AMX_H

#include <immintrin.h>

#include "device/cpu/vector.h"

enum {
    ROWS = 32,
    LOW_ROWS = 16, /* a lower tile that costs less */
    WIDE = 32,
    NARROW = 16,
    DEPTH = 1024,
    GROUP_A = 32,
    GROUP_B = 2,
    PAD = 32,
};

/* The form that ldtilecfg reads. */
typedef struct tile_shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_shapes;

/* All eight registers: 16 rows of 64 bytes. */
VEC_INLINE void tile_begin(void)
{
    static const tile_shapes shapes = {.palette = 1,
                                       .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                                       .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    _tile_loadconfig(&shapes);
}

VEC_INLINE void tile_end(void)
{
    _tile_release();
}

enum { A_STRIDE = 64, A_BELOW = 16 * 32 }; /* bytes; elements from the upper rows to the lower */

/* Where a group of k begins. */
VEC_INLINE const uint16_t *group_at(const uint16_t *a, const int32_t *at, int64_t p)
{
    return a + (at == NULL ? p * ROWS : at[p / 32]);
}

/* Sums in registers 0 to 3, row by row; rows of a in 4 and 5, columns of b in 6 and 7. */
static void four_tiles(int64_t k, const uint16_t *a, const int32_t *at, const uint16_t *b, float *c,
                       int64_t ldc)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t p = 0; p < k; p += 32, b += 32 * WIDE) {
        const uint16_t *group = group_at(a, at, p);
        _tile_loadd(4, group, A_STRIDE);
        _tile_loadd(6, b, 4 * WIDE);
        _tile_loadd(7, b + 32, 4 * WIDE);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, group + A_BELOW, A_STRIDE);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, 4 * ldc);
    _tile_stored(1, c + 16, 4 * ldc);
    _tile_stored(2, c + 16 * ldc, 4 * ldc);
    _tile_stored(3, c + 16 * ldc + 16, 4 * ldc);
}

static void upper_tiles(int64_t k, const uint16_t *a, const int32_t *at, const uint16_t *b,
                        float *c, int64_t ldc)
{
    _tile_zero(0);
    _tile_zero(1);
    for (int64_t p = 0; p < k; p += 32, b += 32 * WIDE) {
        const uint16_t *group = group_at(a, at, p);
        _tile_loadd(4, group, A_STRIDE);
        _tile_loadd(6, b, 4 * WIDE);
        _tile_loadd(7, b + 32, 4 * WIDE);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
    }
    _tile_stored(0, c, 4 * ldc);
    _tile_stored(1, c + 16, 4 * ldc);
}

/* A narrow panel, one or both tiles of rows. */
static void narrow_tiles(int64_t rows, int64_t k, const uint16_t *a, const int32_t *at,
                         const uint16_t *b, float *c, int64_t ldc)
{
    _tile_zero(0);
    _tile_zero(2);
    for (int64_t p = 0; p < k; p += 32, b += 32 * NARROW) {
        const uint16_t *group = group_at(a, at, p);
        _tile_loadd(4, group, A_STRIDE);
        _tile_loadd(6, b, 4 * NARROW);
        _tile_dpbf16ps(0, 4, 6);
        if (rows > 16) {
            _tile_loadd(5, group + A_BELOW, A_STRIDE);
            _tile_dpbf16ps(2, 5, 6);
        }
    }
    _tile_stored(0, c, 4 * ldc);
    if (rows > 16)
        _tile_stored(2, c + 16 * ldc, 4 * ldc);
}

static void store_tiles(int64_t rows, int64_t k, const uint16_t *a, const int32_t *at,
                        const uint16_t *b, int64_t width, float *c, int64_t ldc)
{
    if (width == NARROW)
        narrow_tiles(rows, k, a, at, b, c, ldc);
    else if (rows > LOW_ROWS)
        four_tiles(k, a, at, b, c, ldc);
    else
        upper_tiles(k, a, at, b, c, ldc);
}

/* c = or += rows of the panel a times the panel b; k is a multiple of PAD. Up to ROWS rows are
 * written. at: NULL, or where each group of k begins in a. */
static void tile(int64_t rows, int64_t k, const uint16_t *a, const int32_t *at, const uint16_t *b,
                 int64_t width, float *c, int64_t ldc, bool add)
{
    if (!add) {
        store_tiles(rows, k, a, at, b, width, c, ldc);
        return;
    }
    _Alignas(64) float sums[ROWS * WIDE];
    store_tiles(rows, k, a, at, b, width, sums, WIDE);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < width; j += 16)
            vec_store(c + i * ldc + j, vec_load(c + i * ldc + j) + vec_load(sums + i * WIDE + j));
}

#endif
