/* loops.h: how a family of tile loops is written: the function of vectors of floats, and the
 * expression for one double, in terms of x (or a, b, c) and the parameters p:
 *
 *     TILE_1(square, x * x, x * x)
 *     TILE_2(add, a + b, a + b)
 */
#ifndef TUTTI_DEVICE_CPU_TILE_LOOPS_H
#define TUTTI_DEVICE_CPU_TILE_LOOPS_H

#include "base/isa.h"
#include "device/cpu/tile/math.h"
#include "device/cpu/tile/tile.h"

/* Elements do not depend on each other, also where the result overwrites an operand. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* loops that call C's functions stay scalar */
#define TILE_FOR _Pragma("clang loop vectorize(assume_safety)") for
#else
#define TILE_FOR _Pragma("GCC ivdep") for
#endif

/* Vectors that are computed side by side: loads before stores, so that the compiler may mix them.
 */
#if defined(__aarch64__) || defined(__AVX512F__)
enum { TILE_GROUP = 4 };
#else
enum { TILE_GROUP = 2 };
#endif

/* The last elements, fewer than a vector: zeros beyond them. */
VEC_INLINE vec tile_load_rest(const float *from, int64_t count)
{
#if VEC_MASKED
    return vec_load_part(from, count);
#else
    float rest[VEC_LANES] = {0};
    __builtin_memcpy(rest, from, (size_t)count * sizeof(float));
    return vec_load(rest);
#endif
}

VEC_INLINE void tile_store_rest(float *to, vec value, int64_t count)
{
#if VEC_MASKED
    vec_store_part(to, value, count);
#else
    float rest[VEC_LANES];
    vec_store(rest, value);
    __builtin_memcpy(to, rest, (size_t)count * sizeof(float));
#endif
}

/* VEC_LANES elements, or the first `rest` where that is not 0. */
VEC_INLINE vec tile_load_some(const float *from, int64_t rest)
{
    return rest > 0 ? tile_load_rest(from, rest) : vec_load(from);
}

VEC_INLINE void tile_store_some(float *to, vec value, int64_t rest)
{
    if (rest > 0)
        tile_store_rest(to, value, rest);
    else
        vec_store(to, value);
}

/* A function of one vector, then the loop over it. */
#define TILE_FLOATS_1(name, expression)                                                            \
    VEC_INLINE vec name##_of(vec x, const vec p[2])                                                \
    {                                                                                              \
        (void)p;                                                                                   \
        return (expression);                                                                       \
    }                                                                                              \
    static void name##_loop_f32(const tutti_tile_args *t)                                          \
    {                                                                                              \
        const float *from = t->x[0];                                                               \
        float *to = t->y;                                                                          \
        const vec p[2] = {S((float)t->params[0]), S((float)t->params[1])};                         \
        const int64_t count = t->count;                                                            \
        int64_t i = 0;                                                                             \
        for (; i + TILE_GROUP * VEC_LANES <= count; i += TILE_GROUP * VEC_LANES) {                 \
            vec v[TILE_GROUP];                                                                     \
            VEC_UNROLL for (int k = 0; k < TILE_GROUP; k++) v[k] =                                 \
                name##_of(vec_load(from + i + k * VEC_LANES), p);                                  \
            VEC_UNROLL for (int k = 0; k < TILE_GROUP; k++)                                        \
                vec_store(to + i + k * VEC_LANES, v[k]);                                           \
        }                                                                                          \
        for (; i + VEC_LANES <= count; i += VEC_LANES)                                             \
            vec_store(to + i, name##_of(vec_load(from + i), p));                                   \
        if (i < count)                                                                             \
            tile_store_rest(to + i, name##_of(tile_load_rest(from + i, count - i), p), count - i); \
    }
#define TILE_FLOATS_2(name, expression)                                                            \
    VEC_INLINE vec name##_of(vec a, vec b)                                                         \
    {                                                                                              \
        return (expression);                                                                       \
    }                                                                                              \
    static void name##_loop_f32(const tutti_tile_args *t)                                          \
    {                                                                                              \
        const float *a = t->x[0], *b = t->x[1];                                                    \
        float *to = t->y;                                                                          \
        const int64_t count = t->count;                                                            \
        int64_t i = 0;                                                                             \
        for (; i + TILE_GROUP * VEC_LANES <= count; i += TILE_GROUP * VEC_LANES) {                 \
            vec v[TILE_GROUP];                                                                     \
            VEC_UNROLL for (int k = 0; k < TILE_GROUP; k++) v[k] =                                 \
                name##_of(vec_load(a + i + k * VEC_LANES), vec_load(b + i + k * VEC_LANES));       \
            VEC_UNROLL for (int k = 0; k < TILE_GROUP; k++)                                        \
                vec_store(to + i + k * VEC_LANES, v[k]);                                           \
        }                                                                                          \
        for (; i + VEC_LANES <= count; i += VEC_LANES)                                             \
            vec_store(to + i, name##_of(vec_load(a + i), vec_load(b + i)));                        \
        if (i < count)                                                                             \
            tile_store_rest(                                                                       \
                to + i,                                                                            \
                name##_of(tile_load_rest(a + i, count - i), tile_load_rest(b + i, count - i)),     \
                count - i);                                                                        \
    }
#define TILE_FLOATS_3(name, expression)                                                            \
    VEC_INLINE vec name##_of(vec a, vec b, vec c)                                                  \
    {                                                                                              \
        return (expression);                                                                       \
    }                                                                                              \
    static void name##_loop_f32(const tutti_tile_args *t)                                          \
    {                                                                                              \
        const float *a = t->x[0], *b = t->x[1], *c = t->x[2];                                      \
        float *to = t->y;                                                                          \
        const int64_t count = t->count;                                                            \
        int64_t i = 0;                                                                             \
        for (; i + VEC_LANES <= count; i += VEC_LANES)                                             \
            vec_store(to + i, name##_of(vec_load(a + i), vec_load(b + i), vec_load(c + i)));       \
        if (i < count)                                                                             \
            tile_store_rest(to + i,                                                                \
                            name##_of(tile_load_rest(a + i, count - i),                            \
                                      tile_load_rest(b + i, count - i),                            \
                                      tile_load_rest(c + i, count - i)),                           \
                            count - i);                                                            \
    }

/* The same over single elements of a type; the compiler makes vectors where it can. */
#define TILE_SCALARS_1(name, T, expression)                                                        \
    static void name(const tutti_tile_args *t)                                                     \
    {                                                                                              \
        const T *from = t->x[0];                                                                   \
        T *to = t->y;                                                                              \
        const T p[2] = {(T)t->params[0], (T)t->params[1]};                                         \
        const int64_t count = t->count;                                                            \
        (void)p;                                                                                   \
        TILE_FOR(int64_t i = 0; i < count; i++)                                                    \
        {                                                                                          \
            const T x = from[i];                                                                   \
            to[i] = (T)(expression);                                                               \
        }                                                                                          \
    }
#define TILE_SCALARS_2(name, T, expression)                                                        \
    static void name(const tutti_tile_args *t)                                                     \
    {                                                                                              \
        const T *from_a = t->x[0], *from_b = t->x[1];                                              \
        T *to = t->y;                                                                              \
        const int64_t count = t->count;                                                            \
        TILE_FOR(int64_t i = 0; i < count; i++)                                                    \
        {                                                                                          \
            const T a = from_a[i], b = from_b[i];                                                  \
            to[i] = (T)(expression);                                                               \
        }                                                                                          \
    }
#define TILE_SCALARS_3(name, T, expression)                                                        \
    static void name(const tutti_tile_args *t)                                                     \
    {                                                                                              \
        const T *from_a = t->x[0], *from_b = t->x[1], *from_c = t->x[2];                           \
        T *to = t->y;                                                                              \
        const int64_t count = t->count;                                                            \
        TILE_FOR(int64_t i = 0; i < count; i++)                                                    \
        {                                                                                          \
            const T a = from_a[i], b = from_b[i], c = from_c[i];                                   \
            to[i] = (T)(expression);                                                               \
        }                                                                                          \
    }

#define TILE_1(name, vectors, doubles)                                                             \
    TILE_FLOATS_1(name, vectors) TILE_SCALARS_1(name##_loop_f64, double, doubles)
#define TILE_2(name, vectors, doubles)                                                             \
    TILE_FLOATS_2(name, vectors) TILE_SCALARS_2(name##_loop_f64, double, doubles)
#define TILE_3(name, vectors, doubles)                                                             \
    TILE_FLOATS_3(name, vectors) TILE_SCALARS_3(name##_loop_f64, double, doubles)
/* Functions of C's library, for floats and doubles. */
#define TILE_C_1(name, floats, doubles)                                                            \
    TILE_SCALARS_1(name##_loop_f32, float, floats) TILE_SCALARS_1(name##_loop_f64, double, doubles)

/* Rows of a family's table. */
#define TILE_ROW(operator_, inputs_, loop)                                                         \
    {                                                                                              \
        operator_, inputs_, loop##_loop_f32, loop##_loop_f64, {0}, NULL                            \
    }
#define TILE_ROW_P(operator_, inputs_, loop, ...)                                                  \
    {                                                                                              \
        operator_, inputs_, loop##_loop_f32, loop##_loop_f64, {__VA_ARGS__}, NULL                  \
    }

#endif
