/* loops.h: how a family of tile loops is written. An expression is written once, in terms of x (or a,
 * b, c), p (the parameters) and the element type T, and becomes a loop over floats and one over
 * doubles:
 *
 *     TILE_1(square, x * x)
 *     TILE_2(add, a + b)
 */
#ifndef TUTTI_DEVICE_CPU_TILE_LOOPS_H
#define TUTTI_DEVICE_CPU_TILE_LOOPS_H

#include <math.h>

#include "device/cpu/tile/math.h"
#include "device/cpu/tile/tile.h"
#include "program/isa.h"

/* Elements do not depend on each other, also where the result overwrites an operand. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* loops that call C's functions stay scalar */
#define TILE_FOR _Pragma("clang loop vectorize(assume_safety)") for
#else
#define TILE_FOR _Pragma("GCC ivdep") for
#endif

#define TILE_LOOP_1(name, type, expression)                                                        \
    static void name(const tutti_tile_args *t)                                                     \
    {                                                                                              \
        typedef type T;                                                                            \
        const T *from = t->x[0];                                                                   \
        T *y = t->y;                                                                               \
        const T p[2] = {(T)t->params[0], (T)t->params[1]};                                         \
        const int64_t count = t->count;                                                            \
        (void)p;                                                                                   \
        TILE_FOR(int64_t i = 0; i < count; i++)                                                    \
        {                                                                                          \
            const T x = from[i];                                                                   \
            y[i] = (T)(expression);                                                                \
        }                                                                                          \
    }
#define TILE_LOOP_2(name, type, expression)                                                        \
    static void name(const tutti_tile_args *t)                                                     \
    {                                                                                              \
        typedef type T;                                                                            \
        const T *from_a = t->x[0], *from_b = t->x[1];                                              \
        T *y = t->y;                                                                               \
        const int64_t count = t->count;                                                            \
        TILE_FOR(int64_t i = 0; i < count; i++)                                                    \
        {                                                                                          \
            const T a = from_a[i], b = from_b[i];                                                  \
            y[i] = (T)(expression);                                                                \
        }                                                                                          \
    }
#define TILE_LOOP_3(name, type, expression)                                                        \
    static void name(const tutti_tile_args *t)                                                     \
    {                                                                                              \
        typedef type T;                                                                            \
        const T *from_a = t->x[0], *from_b = t->x[1], *from_c = t->x[2];                           \
        T *y = t->y;                                                                               \
        const int64_t count = t->count;                                                            \
        TILE_FOR(int64_t i = 0; i < count; i++)                                                    \
        {                                                                                          \
            const T a = from_a[i], b = from_b[i], c = from_c[i];                                   \
            y[i] = (T)(expression);                                                                \
        }                                                                                          \
    }

#define TILE_1(name, expression)                                                                   \
    TILE_LOOP_1(name##_loop_f32, float, expression) TILE_LOOP_1(name##_loop_f64, double, expression)
#define TILE_2(name, expression)                                                                   \
    TILE_LOOP_2(name##_loop_f32, float, expression) TILE_LOOP_2(name##_loop_f64, double, expression)
#define TILE_3(name, expression)                                                                   \
    TILE_LOOP_3(name##_loop_f32, float, expression) TILE_LOOP_3(name##_loop_f64, double, expression)

/* Rows of a family's table. */
#define TILE_ROW(operator_, inputs_, loop) {operator_, inputs_, loop##_loop_f32, loop##_loop_f64, {0}, NULL}
#define TILE_ROW_P(operator_, inputs_, loop, ...)                                                  \
    {operator_, inputs_, loop##_loop_f32, loop##_loop_f64, {__VA_ARGS__}, NULL}

#endif
