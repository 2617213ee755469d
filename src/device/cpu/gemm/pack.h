/* pack.h: the shape of the tiles of f32, and the packing of their panels. Compiled for each
 * instruction set. */
#ifndef TUTTI_DEVICE_CPU_GEMM_PACK_H
#define TUTTI_DEVICE_CPU_GEMM_PACK_H

#include <string.h>

#include "device/cpu/gemm/tile.h"
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

#endif
