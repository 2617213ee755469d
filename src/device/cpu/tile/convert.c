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
CONVERT_HALF(f16)
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
