/* convert.c: tile loops between memory and tiles, and roundings to smaller types. Floats round to
 * nearest even; integers saturate and NaN becomes 0, as tutti_view_set does. */
#include "device/cpu/tile/loops.h"
#include "device/cpu/tile/odd.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

VEC_INLINE uint32_t bits_of(float x)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

VEC_INLINE float float_of(uint32_t bits)
{
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

VEC_INLINE float f32_of_bf16(uint16_t bits)
{
    return float_of((uint32_t)bits << 16);
}

VEC_INLINE uint16_t bf16_of_f32(float x)
{
    uint32_t bits = bits_of(x), quiet = bits >> 16 | 0x40;
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(x != x ? quiet : rounded);
}

#if defined(__aarch64__)
VEC_INLINE float f32_of_f16(uint16_t bits)
{
    __fp16 half;
    __builtin_memcpy(&half, &bits, sizeof half);
    return (float)half;
}

VEC_INLINE uint16_t f16_of_f32(float x)
{
    __fp16 half = (__fp16)x;
    uint16_t bits;
    __builtin_memcpy(&bits, &half, sizeof bits);
    return bits;
}
#elif defined(__F16C__)
VEC_INLINE float f32_of_f16(uint16_t bits)
{
    return _cvtsh_ss(bits);
}

VEC_INLINE uint16_t f16_of_f32(float x)
{
    return _cvtss_sh(x, 0);
}
#else
#define f32_of_f16 tutti_f16_to_f32
#define f16_of_f32 tutti_f32_to_f16
#endif

/* Whole numbers in [low, high]; NaN is 0. Bounds are exact in T or just inside. */
#define SATURATE(low, high)                                                                        \
    (x != x ? (T)0 : x < (T)(low) ? (T)(low) : x > (T)(high) ? (T)(high) : x)

#define LOAD(name, type, memory, expression)                                                       \
    static void name(const tutti_tile_args *t)                                                     \
    {                                                                                              \
        typedef type T;                                                                            \
        const memory *from = t->x[0];                                                              \
        T *y = t->y;                                                                               \
        const int64_t count = t->count;                                                            \
        TILE_FOR(int64_t i = 0; i < count; i++)                                                    \
        {                                                                                          \
            const memory x = from[i];                                                              \
            y[i] = (T)(expression);                                                                \
        }                                                                                          \
    }
#define STORE(name, type, memory, expression)                                                      \
    static void name(const tutti_tile_args *t)                                                     \
    {                                                                                              \
        typedef type T;                                                                            \
        const T *from = t->x[0];                                                                   \
        memory *y = t->y;                                                                          \
        const int64_t count = t->count;                                                            \
        TILE_FOR(int64_t i = 0; i < count; i++)                                                    \
        {                                                                                          \
            const T x = from[i];                                                                   \
            y[i] = (memory)(expression);                                                           \
        }                                                                                          \
    }
#define CONVERT(name, memory, load, store)                                                         \
    LOAD(load_##name##_loop_f32, float, memory, load)                                              \
    LOAD(load_##name##_loop_f64, double, memory, load)                                             \
    STORE(store_##name##_loop_f32, float, memory, store)                                           \
    STORE(store_##name##_loop_f64, double, memory, store)

CONVERT(f32, float, x, x)
CONVERT(f64, double, x, x)
#define CONVERT_HALF(name)                                                                         \
    LOAD(load_##name##_loop_f32, float, uint16_t, f32_of_##name(x))                                \
    LOAD(load_##name##_loop_f64, double, uint16_t, f32_of_##name(x))                               \
    STORE(store_##name##_loop_f32, float, uint16_t, name##_of_f32(x))                              \
    STORE(store_##name##_loop_f64, double, uint16_t, name##_of_f32(tutti__odd_float(x)))           \
    TILE_SCALARS_1(round_##name##_loop_f32, float, f32_of_##name(name##_of_f32(x)))                \
    TILE_SCALARS_1(round_##name##_loop_f64, double,                                                \
                   f32_of_##name(name##_of_f32(tutti__odd_float(x))))

CONVERT_HALF(bf16)

/* Vectors of f16, where the set converts them. */
#if VEC_NEON
VEC_INLINE vec half_load(const uint16_t *from)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from)));
}

VEC_INLINE void half_store(uint16_t *to, vec x)
{
    vst1_u16(to, vreinterpret_u16_f16(vcvt_f16_f32(x)));
}
#elif defined(__AVX512F__)
VEC_INLINE vec half_load(const uint16_t *from)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i_u *)from));
}

VEC_INLINE void half_store(uint16_t *to, vec x)
{
    _mm256_storeu_si256((__m256i_u *)to, _mm512_cvtps_ph(x, 0));
}
#elif defined(__F16C__) && defined(__AVX2__)
VEC_INLINE vec half_load(const uint16_t *from)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)from));
}

VEC_INLINE void half_store(uint16_t *to, vec x)
{
    _mm_storeu_si128((__m128i_u *)to, _mm256_cvtps_ph(x, 0));
}
#else
#define HALF_VECTORS 0
#endif
#ifndef HALF_VECTORS
#define HALF_VECTORS 1
#endif

VEC_INLINE void floats_of_halves(const uint16_t *from, float *to, int64_t count)
{
    int64_t i = 0;
#if HALF_VECTORS
    for (; i + VEC_LANES <= count; i += VEC_LANES)
        vec_store(to + i, half_load(from + i));
#endif
    for (; i < count; i++)
        to[i] = f32_of_f16(from[i]);
}

VEC_INLINE void halves_of_floats(const float *from, uint16_t *to, int64_t count)
{
    int64_t i = 0;
#if HALF_VECTORS
    for (; i + VEC_LANES <= count; i += VEC_LANES)
        half_store(to + i, vec_load(from + i));
#endif
    for (; i < count; i++)
        to[i] = f16_of_f32(from[i]);
}

static void load_f16_loop_f32(const tutti_tile_args *t)
{
    floats_of_halves(t->x[0], t->y, t->count);
}

static void store_f16_loop_f32(const tutti_tile_args *t)
{
    halves_of_floats(t->x[0], t->y, t->count);
}

/* The others go by blocks of HALF_BLOCK floats, or fewer at the end. */
enum { HALF_BLOCK = 128 };
#define HALF_LOOP(name, from_type, to_type)                                                        \
    VEC_INLINE void name##_block(const from_type *x, to_type *y, int64_t count);                   \
    static void name(const tutti_tile_args *t)                                                     \
    {                                                                                              \
        const from_type *x = t->x[0];                                                              \
        to_type *y = t->y;                                                                         \
        int64_t i = 0;                                                                             \
        for (; i + HALF_BLOCK <= t->count; i += HALF_BLOCK)                                        \
            name##_block(x + i, y + i, HALF_BLOCK);                                                \
        if (i < t->count)                                                                          \
            name##_block(x + i, y + i, t->count - i);                                              \
    }                                                                                              \
    VEC_INLINE void name##_block(const from_type *x, to_type *y, int64_t count)

HALF_LOOP(load_f16_loop_f64, uint16_t, double)
{
    float floats[HALF_BLOCK];
    floats_of_halves(x, floats, count);
    for (int64_t i = 0; i < count; i++)
        y[i] = (double)floats[i];
}

HALF_LOOP(store_f16_loop_f64, double, uint16_t)
{
    float floats[HALF_BLOCK];
    for (int64_t i = 0; i < count; i++)
        floats[i] = tutti__odd_float(x[i]);
    halves_of_floats(floats, y, count);
}

HALF_LOOP(round_f16_loop_f32, float, float)
{
    uint16_t halves[HALF_BLOCK];
    halves_of_floats(x, halves, count);
    floats_of_halves(halves, y, count);
}

HALF_LOOP(round_f16_loop_f64, double, double)
{
    uint16_t halves[HALF_BLOCK];
    store_f16_loop_f64_block(x, halves, count);
    float floats[HALF_BLOCK];
    floats_of_halves(halves, floats, count);
    for (int64_t i = 0; i < count; i++)
        y[i] = (double)floats[i];
}

CONVERT(i8, int8_t, x, SATURATE(-128, 127))
CONVERT(u8, uint8_t, x, SATURATE(0, 255))
CONVERT(bool, uint8_t, x != 0, x != 0)
LOAD(load_i32_loop_f32, float, int32_t, x)
LOAD(load_i32_loop_f64, double, int32_t, x)
LOAD(load_i64_loop_f32, float, int64_t, x)
LOAD(load_i64_loop_f64, double, int64_t, x)
/* The largest integer is no float: it is given beyond the last float below it. Both are computed,
 * so that the loop has no branch. */
#define WHOLE_BELOW(name, type, memory, low, last, most)                                           \
    VEC_INLINE memory name(type x)                                                                 \
    {                                                                                              \
        typedef type T;                                                                            \
        const memory inside = (memory)SATURATE(low, last);                                         \
        return x > (T)(last) ? (memory)(most) : inside;                                            \
    }
WHOLE_BELOW(i32_of_f32, float, int32_t, -0x1p31, 0x1.fffffep30, INT32_MAX)
WHOLE_BELOW(i64_of_f32, float, int64_t, -0x1p63, 0x1.fffffep62, INT64_MAX)
WHOLE_BELOW(i64_of_f64, double, int64_t, -0x1p63, 0x1.fffffffffffffp62, INT64_MAX)
STORE(store_i32_loop_f32, float, int32_t, i32_of_f32(x))
STORE(store_i32_loop_f64, double, int32_t, SATURATE(-0x1p31, 2147483647.0))
STORE(store_i64_loop_f32, float, int64_t, i64_of_f32(x))
STORE(store_i64_loop_f64, double, int64_t, i64_of_f64(x))

TILE_SCALARS_1(round_f32_loop_f32, float, x)
TILE_SCALARS_1(round_f32_loop_f64, double, (float)x)

#define BOTH(name)                                                                                 \
    TILE_ROW(".load_" #name, 1, load_##name), TILE_ROW(".store_" #name, 1, store_##name)

static const tutti_tile_op ops[] = {
    BOTH(f32),
    BOTH(f64),
    BOTH(f16),
    BOTH(bf16),
    BOTH(i8),
    BOTH(u8),
    BOTH(i32),
    BOTH(i64),
    BOTH(bool),
    TILE_ROW(".round_f16", 1, round_f16),
    TILE_ROW(".round_bf16", 1, round_bf16),
    TILE_ROW(".round_f32", 1, round_f32),
    {0},
};

const tutti_tile_family TUTTI_ISA_NAME(tutti_tile_family_convert) = {
    .isa = TUTTI_ISA_TEXT,
    .ops = ops,
};
