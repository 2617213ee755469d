/* loops.h: how a family of loops over integers is written: one expression for all element types, in
 * terms of x, or of a and b. T is the element type and U the unsigned type of its size, in which
 * sums and products wrap round:
 *
 *     INTEGER_1(negate, (U)0 - (U)x)
 *     INTEGER_2(add, (U)a + (U)b)
 *
 * The compiler makes vectors of them. */
#ifndef TUTTI_DEVICE_CPU_INTEGER_LOOPS_H
#define TUTTI_DEVICE_CPU_INTEGER_LOOPS_H

#include "base/isa.h"
#include "device/cpu/integer/integer.h"

/* Elements do not depend on each other, also where the result overwrites an operand. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* divisions and 64-bit products stay scalar */
#define INTEGER_FOR _Pragma("clang loop vectorize(assume_safety)") for
#else
#define INTEGER_FOR _Pragma("GCC ivdep") for
#endif

/* How an element is read: every byte of a bool that is not 0 is true. */
#define AS_IT_IS(element) (element)
#define AS_TRUTH(element) ((element) != 0)

#define INTEGER_LOOP_1(name, type, unsigned_type, result, read, expression)                        \
    static void name(const tutti_tile_args *t)                                                     \
    {                                                                                              \
        typedef type T;                                                                            \
        typedef unsigned_type U;                                                                   \
        const T *from = t->x[0];                                                                   \
        result *to = t->y;                                                                         \
        const int64_t count = t->count;                                                            \
        INTEGER_FOR(int64_t i = 0; i < count; i++)                                                 \
        {                                                                                          \
            const T x = (T)read(from[i]);                                                          \
            to[i] = (result)(expression);                                                          \
        }                                                                                          \
        (void)sizeof(U);                                                                           \
    }
#define INTEGER_LOOP_2(name, type, unsigned_type, result, read, expression)                        \
    static void name(const tutti_tile_args *t)                                                     \
    {                                                                                              \
        typedef type T;                                                                            \
        typedef unsigned_type U;                                                                   \
        const T *from_a = t->x[0], *from_b = t->x[1];                                              \
        result *to = t->y;                                                                         \
        const int64_t count = t->count;                                                            \
        INTEGER_FOR(int64_t i = 0; i < count; i++)                                                 \
        {                                                                                          \
            const T a = (T)read(from_a[i]), b = (T)read(from_b[i]);                                \
            to[i] = (result)(expression);                                                          \
        }                                                                                          \
        (void)sizeof(U);                                                                           \
    }

/* The loops of all integers. */
#define INTEGER_1(name, expression)                                                                \
    INTEGER_LOOP_1(name##_i8, int8_t, uint8_t, int8_t, AS_IT_IS, expression)                       \
    INTEGER_LOOP_1(name##_u8, uint8_t, uint8_t, uint8_t, AS_IT_IS, expression)                     \
    INTEGER_LOOP_1(name##_i32, int32_t, uint32_t, int32_t, AS_IT_IS, expression)                   \
    INTEGER_LOOP_1(name##_i64, int64_t, uint64_t, int64_t, AS_IT_IS, expression)
#define INTEGER_2(name, expression)                                                                \
    INTEGER_LOOP_2(name##_i8, int8_t, uint8_t, int8_t, AS_IT_IS, expression)                       \
    INTEGER_LOOP_2(name##_u8, uint8_t, uint8_t, uint8_t, AS_IT_IS, expression)                     \
    INTEGER_LOOP_2(name##_i32, int32_t, uint32_t, int32_t, AS_IT_IS, expression)                   \
    INTEGER_LOOP_2(name##_i64, int64_t, uint64_t, int64_t, AS_IT_IS, expression)

/* The loops of one name as a field of a table's row. */
#define INTEGER_TYPES(name)                                                                        \
    {                                                                                              \
        [TUTTI_I8] = name##_i8, [TUTTI_U8] = name##_u8, [TUTTI_I32] = name##_i32,                  \
        [TUTTI_I64] = name##_i64                                                                   \
    }
#define INTEGER_TYPES_AND_BOOL(name)                                                               \
    {                                                                                              \
        [TUTTI_I8] = name##_i8, [TUTTI_U8] = name##_u8, [TUTTI_I32] = name##_i32,                  \
        [TUTTI_I64] = name##_i64, [TUTTI_BOOL] = name##_bool                                       \
    }

#endif
