/* tile_bf16.c: micro-kernels of products of bf16 that are summed in f32: bfmmla (aarch64),
 * vdpbf16ps (AVX-512-BF16) and AMX. Compiled once for each of those sets. */
#include <string.h>

#include "base/isa.h"
#include "device/cpu/gemm/finish.h"
#include "device/cpu/gemm/tile.h"
#include "device/cpu/vector.h"

#if defined(__AMX_BF16__) || defined(__AMXBF16__) /* as older clangs call it */
#include "device/cpu/gemm/amx.h"
#elif defined(__AVX512BF16__)
#include "device/cpu/gemm/avx512_bf16.h"
#else
#include "device/cpu/gemm/bfmmla.h"
#endif

/* Lines of f32 are rounded this many steps of k at a time, a multiple of every pad. */
enum { CHUNK = 64, WIDEST = ROWS > WIDE ? ROWS : WIDE };

typedef uint16_t line8 __attribute__((vector_size(16)));
typedef uint16_t line8_unaligned __attribute__((vector_size(16), aligned(2), may_alias));
typedef uint32_t pair4 __attribute__((vector_size(16)));
typedef uint64_t half2 __attribute__((vector_size(16)));

VEC_INLINE line8 zip_low(line8 a, line8 b)
{
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}

VEC_INLINE line8 zip_high(line8 a, line8 b)
{
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

VEC_INLINE void store8(uint16_t *to, line8 x)
{
    *(line8_unaligned *)to = x;
}

/* Four steps of k of eight lines that stand side by side across the panel: two lines in each of
 * `ret`. */
VEC_INLINE void zip_four(const uint16_t *from, int64_t step, line8 ret[4])
{
    line8 r[4];
    VEC_UNROLL for (int i = 0; i < 4; i++) r[i] = *(const line8_unaligned *)(from + i * step);
    pair4 low = (pair4)zip_low(r[0], r[1]), high = (pair4)zip_high(r[0], r[1]);
    pair4 next_low = (pair4)zip_low(r[2], r[3]), next_high = (pair4)zip_high(r[2], r[3]);
    ret[0] = (line8)__builtin_shufflevector(low, next_low, 0, 4, 1, 5);
    ret[1] = (line8)__builtin_shufflevector(low, next_low, 2, 6, 3, 7);
    ret[2] = (line8)__builtin_shufflevector(high, next_high, 0, 4, 1, 5);
    ret[3] = (line8)__builtin_shufflevector(high, next_high, 2, 6, 3, 7);
}

/* Eight lines of a group of g steps, 2 or 4. */
VEC_INLINE void pack_eight_across(int g, const uint16_t *from, int64_t step, uint16_t *to)
{
    if (g == 2) {
        line8 first = *(const line8_unaligned *)from;
        line8 next = *(const line8_unaligned *)(from + step);
        store8(to, zip_low(first, next));
        store8(to + 8, zip_high(first, next));
        return;
    }
    line8 lines[4];
    zip_four(from, step, lines);
    VEC_UNROLL for (int i = 0; i < 4; i++) store8(to + 8 * i, lines[i]);
}

/* 8 x 8 elements across the panel, into lines that are g elements long. */
VEC_INLINE void transpose_eight(int g, const uint16_t *from, int64_t step, uint16_t *to)
{
    line8 first[4], next[4];
    zip_four(from, step, first);
    zip_four(from + 4 * step, step, next);
    VEC_UNROLL for (int i = 0; i < 4; i++)
    {
        half2 a = (half2)first[i], b = (half2)next[i];
        store8(to + 2 * i * g, (line8)__builtin_shufflevector(a, b, 0, 2));
        store8(to + (2 * i + 1) * g, (line8)__builtin_shufflevector(a, b, 1, 3));
    }
}

/* Across: stride 1. Whole groups and whole eights of lines by vectors, the rest one by one. */
VEC_INLINE void pack_across(int g, int64_t width, int64_t count, int64_t k, const uint16_t *source,
                            int64_t step, uint16_t *panel)
{
    const int high = g > 8 ? 8 : g; /* steps of k at once */
    int64_t eights = count / 8 * 8, whole = k / high * high;
    for (int64_t p = 0; p < whole; p += high)
        for (int64_t i = 0; i < eights; i += 8) {
            const uint16_t *from = source + p * step + i;
            uint16_t *to = panel + (p / g * width + i) * g + p % g;
            if (g > 8)
                transpose_eight(g, from, step, to);
            else
                pack_eight_across(g, from, step, to);
        }
    for (int64_t p = 0; p < k; p++)
        for (int64_t i = p < whole ? eights : 0; i < count; i++)
            panel[(p / g * width + i) * g + p % g] = source[p * step + i];
}

/* Along: step 1. */
VEC_INLINE void pack_along(int g, int64_t width, int64_t count, int64_t k, const uint16_t *source,
                           int64_t stride, uint16_t *panel)
{
    int64_t whole = k / g * g;
    for (int64_t i = 0; i < count; i++, source += stride) {
        uint16_t *to = panel + i * g;
        for (int64_t p = 0; p < whole; p += g, to += g * width)
            memcpy(to, source + p, (size_t)g * 2);
        for (int64_t p = whole; p < k; p++)
            to[p - whole] = source[p];
    }
}

/* Zeros past the last line and past k, where whole groups are cleared before they are packed. */
static void pack_zeros(int g, int64_t width, int64_t count, int64_t k, int64_t padded,
                       uint16_t *panel)
{
    for (int64_t p = 0; p < padded && count < width; p += g)
        memset(panel + (p * width + count * g), 0, (size_t)((width - count) * g) * 2);
    for (int64_t p = k / g * g; p < padded; p += g)
        memset(panel + p * width, 0, (size_t)(count * g) * 2);
}

VEC_INLINE void pack_bf16(int g, const tutti_gemm_lines *l, int64_t k, const uint16_t *source,
                          int64_t step, int64_t stride, uint16_t *panel)
{
    if (step == 1)
        pack_along(g, l->width, l->count, k, source, stride, panel);
    else
        pack_across(g, l->width, l->count, k, source, step, panel);
}

VEC_INLINE void pack_group(int g, const tutti_gemm_lines *l, uint16_t *panel)
{
    pack_zeros(g, l->width, l->count, l->k, (l->k + PAD - 1) / PAD * PAD, panel);
    if (l->bf16) {
        pack_bf16(g, l, l->k, l->source, l->step, l->stride, panel);
        return;
    }
    uint16_t rounded[CHUNK * WIDEST];
    const float *source = l->source;
    for (int64_t p = 0; p < l->k; p += CHUNK, panel += CHUNK * l->width) {
        int64_t k = l->k - p < CHUNK ? l->k - p : CHUNK;
        bool along = l->step == 1;
        int64_t lines = along ? l->count : k, apart = along ? l->stride : l->step;
        int64_t room = along ? CHUNK : WIDEST;
        for (int64_t i = 0; i < lines; i++)
            round_line(along ? k : l->count, source + p * l->step + i * apart, rounded + i * room);
        pack_bf16(g, l, k, rounded, along ? 1 : room, along ? room : 1, panel);
    }
}

static void pack_lines(const tutti_gemm_lines *lines, void *panel)
{
    if (lines->columns)
        pack_group(GROUP_B, lines, panel);
    else
        pack_group(GROUP_A, lines, panel);
}

/* A tile at the edge of C: computed whole, the part that exists is stored. */
static void edge(int64_t rows, int64_t cols, int64_t k, const uint16_t *a, const uint16_t *b,
                 int64_t width, float *c, int64_t ldc, bool add)
{
    float whole[ROWS * WIDE];
    tile(rows, k, a, NULL, b, width, whole, WIDE, false);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            c[i * ldc + j] = add ? c[i * ldc + j] + whole[i * WIDE + j] : whole[i * WIDE + j];
}

static void tile_bf16_multiply(int64_t m, int64_t n, int64_t k, const void *packed_a,
                               const void *packed_b, int64_t width, float *c, int64_t ldc, bool add)
{
    const uint16_t *a = packed_a, *b = packed_b;
    k = (k + PAD - 1) / PAD * PAD;
    const uint16_t *next = b + width * k; /* the next panel, fetched while this one is used */
    int64_t lines = (width * k / 32 * ROWS + m - 1) / m;
    tile_begin();
    for (int64_t i = 0; i < m; i += ROWS, a += ROWS * k, c += ROWS * ldc) {
        int64_t rows = m - i < ROWS ? m - i : ROWS;
        for (int64_t line = 0; line < lines && m >= 2 * ROWS; line++, next += 32)
            __builtin_prefetch(next, 0, 2);
        if (n == width && (rows == ROWS || rows == LOW_ROWS))
            tile(rows, k, a, NULL, b, width, c, ldc, add);
        else
            edge(rows, n, k, a, b, width, c, ldc, add);
    }
    tile_end();
}

static void multiply_at(int64_t m, int64_t k, const void *panel, const int32_t *at, const void *b,
                        int64_t width, float *c, int64_t ldc, bool add)
{
    const uint16_t *a = panel;
    tile_begin();
    for (int64_t i = 0; i < m; i += ROWS, a += ROWS * GROUP_A, c += ROWS * ldc)
        tile(m - i < ROWS ? m - i : ROWS, k, a, at, b, width, c, ldc, add);
    tile_end();
}

/* VEC_LANES channels of a pixel, in groups `step` apart. */
VEC_INLINE void pack_lanes(vec x, int64_t groups, int64_t step, uint16_t *to)
{
    uint16_t lanes[VEC_LANES];
    round_vec(x, GROUP_A < VEC_LANES ? lanes : to);
    for (int64_t i = 0; GROUP_A < VEC_LANES && i < groups; i++)
        memcpy(to + i * step, lanes + i * GROUP_A, GROUP_A * sizeof *to);
}

/* The last channels, fewer than VEC_LANES, and zeros. */
static void pack_last(int64_t count, int64_t channels, const float *from, int64_t stride,
                      int64_t groups, int64_t step, uint16_t *to)
{
    for (int64_t i = 0; i < count; i++, from += stride) {
        float rest[VEC_LANES] = {0};
        memcpy(rest, from, (size_t)channels * sizeof *rest);
        pack_lanes(vec_load(rest), groups, step, to + i * GROUP_A);
    }
}

static void pack_pixels(int64_t count, int64_t channels, const float *from, int64_t stride,
                        int64_t width, uint16_t *to)
{
    const int64_t step = width * GROUP_A, padded = (channels + PAD - 1) / PAD * PAD;
    for (int64_t p = 0; p < padded; p += VEC_LANES) {
        uint16_t *lanes = to + p / GROUP_A * step + p % GROUP_A;
        int64_t some = channels - p < 0 ? 0 : channels - p, groups = (padded - p) / GROUP_A;
        if (some < VEC_LANES)
            pack_last(count, some, from + p, stride, groups, step, lanes);
        else
            for (int64_t i = 0; i < count; i++)
                pack_lanes(vec_load(from + p + i * stride), VEC_LANES / GROUP_A, step,
                           lanes + i * GROUP_A);
    }
}

VEC_INLINE void pack_stack(int g, const tutti_gemm_images *s, int64_t first, int64_t count,
                           const float *from, uint16_t *to)
{
    uint16_t rounded[PAD * CHUNK];
    for (int64_t p = 0; p < s->images; p++)
        round_line(count, from + p * s->apart + first, rounded + p * CHUNK);
    if (s->images < PAD)
        memset(rounded + s->images * CHUNK, 0,
               (size_t)((PAD - s->images) * CHUNK) * sizeof *rounded);
    pack_across(g, s->width, count, PAD, rounded, CHUNK, to + first * g);
}

static void pack_images(const tutti_gemm_images *s, uint16_t *to)
{
    const float *from = s->source;
    for (int64_t i = 0; i < s->pixels; i++, from += s->stride, to += s->width * PAD)
        for (int64_t first = 0; first < s->count; first += CHUNK) {
            int64_t count = s->count - first < CHUNK ? s->count - first : CHUNK;
            if (s->columns)
                pack_stack(GROUP_B, s, first, count, from, to);
            else
                pack_stack(GROUP_A, s, first, count, from, to);
        }
}

const tutti_gemm_tile TUTTI_ISA_NAME(tutti_gemm_tile_bf16) = {
    .isa = TUTTI_ISA_TEXT,
    .rows = ROWS,
    .wide = WIDE,
    .narrow = NARROW,
    .depth = DEPTH,
    .element = 2,
    .pad = PAD,
    .pack_lines = pack_lines,
    .multiply = tile_bf16_multiply,
    .multiply_at = multiply_at,
    .pack_pixels = pack_pixels,
    .pack_images = pack_images,
    .finish = finish,
};
