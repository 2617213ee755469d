/* loops.h: what reductions do to rows, and to pairs of rows, for each element type. "wide" is f32
 * whose results are doubles. */
#ifndef TUTTI_DEVICE_CPU_REDUCE_LOOPS_H
#define TUTTI_DEVICE_CPU_REDUCE_LOOPS_H

#include "device/cpu/extremes.h"
#include "device/cpu/row/row.h"

enum {
    REDUCE_PRODUCTS = 32, /* lanes */
    REDUCE_SHORT = 8,     /* elements of rows that have a loop for each length */
};

typedef enum reduce_kind { REDUCE_SUM, REDUCE_PRODUCT, REDUCE_MAX, REDUCE_MIN } reduce_kind;

VEC_INLINE float reduce_row_f32(reduce_kind kind, const float *x, int64_t count)
{
    float result;
    if (kind == REDUCE_MAX)
        return row_maximum(x, count);
    if (kind == REDUCE_SUM) {
        ROW_SUM(result, count, ROW_AT(x));
        return result;
    }
    return row_minimum(x, count);
}

VEC_INLINE double reduce_extreme_f64(bool most, const double *x, int64_t count)
{
    enum { LANES = 32 };
    double lanes[LANES];
    int64_t used = count < LANES ? count : LANES, i = used;
    memcpy(lanes, x, (size_t)used * sizeof *lanes);
    for (; i + LANES <= count; i += LANES)
        extremes_f64(most, lanes, lanes, x + i, LANES);
    extremes_f64(most, lanes, lanes, x + i, count - i);
    for (; used > 1; used -= used / 2)
        extremes_f64(most, lanes, lanes, lanes + used - used / 2, used / 2);
    return lanes[0];
}

/* Products are taken in REDUCE_PRODUCTS lanes side by side, those of a short row one by one. */
#define REDUCE_PRODUCT_OF_ROW(T, suffix)                                                           \
    VEC_INLINE double reduce_product_##suffix(const T *x, int64_t count)                           \
    {                                                                                              \
        double lanes[REDUCE_PRODUCTS], result = 1;                                                 \
        int64_t i = 0;                                                                             \
        if (count >= REDUCE_PRODUCTS) {                                                            \
            for (int k = 0; k < REDUCE_PRODUCTS; k++)                                              \
                lanes[k] = 1;                                                                      \
            for (; i + REDUCE_PRODUCTS <= count; i += REDUCE_PRODUCTS)                             \
                for (int k = 0; k < REDUCE_PRODUCTS; k++)                                          \
                    lanes[k] *= (double)x[i + k];                                                  \
            for (int k = 0; k < REDUCE_PRODUCTS; k++)                                              \
                result *= lanes[k];                                                                \
        }                                                                                          \
        for (; i < count; i++)                                                                     \
            result *= (double)x[i];                                                                \
        return result;                                                                             \
    }
REDUCE_PRODUCT_OF_ROW(float, f32)
REDUCE_PRODUCT_OF_ROW(double, f64)

VEC_INLINE double reduce_row_wide(reduce_kind kind, const float *x, int64_t count)
{
    (void)kind;
    return reduce_product_f32(x, count);
}

VEC_INLINE void reduce_join_wide(reduce_kind kind, double *to, const float *from, int64_t count)
{
    (void)kind;
    for (int64_t i = 0; i < count; i++)
        to[i] *= (double)from[i];
}

VEC_INLINE double reduce_row_f64(reduce_kind kind, const double *x, int64_t count)
{
    double lanes[8] = {0};
    int64_t i = 0;
    if (kind == REDUCE_PRODUCT)
        return reduce_product_f64(x, count);
    if (kind != REDUCE_SUM)
        return reduce_extreme_f64(kind == REDUCE_MAX, x, count);
    for (; i < 8 && i < count; i++)
        lanes[i] = x[i];
    int64_t used = i;
    for (; i < count; i++)
        lanes[i % 8] += x[i];
    for (int64_t k = 1; k < used; k++)
        lanes[0] += lanes[k];
    return lanes[0];
}

/* As vec_maximum and vec_minimum have it: NaN stays, and 0 is larger than -0. */
VEC_INLINE float reduce_two_f32(reduce_kind kind, float a, float b)
{
    bool most = kind == REDUCE_MAX;
    float one = most == (a > b) ? a : b, other = most == (b > a) ? b : a;
    uint32_t bits, other_bits;
    if (kind == REDUCE_SUM)
        return a + b;
    memcpy(&bits, &one, sizeof bits);
    memcpy(&other_bits, &other, sizeof bits);
    bits = most ? bits & other_bits : bits | other_bits;
    memcpy(&one, &bits, sizeof bits);
    return __builtin_isunordered(a, b) ? a + b : one;
}

VEC_INLINE double reduce_two_f64(reduce_kind kind, double a, double b)
{
    if (kind == REDUCE_MAX || kind == REDUCE_MIN)
        return kind == REDUCE_MAX ? tutti__maximum(a, b) : tutti__minimum(a, b);
    return kind == REDUCE_SUM ? a + b : a * b;
}

VEC_INLINE double reduce_two_wide(reduce_kind kind, double a, float b)
{
    return reduce_two_f64(kind, a, (double)b);
}

/* The sum of up to REDUCE_SHORT floats with the bits of ROW_SUM, whatever the width of vectors:
 * lanes are first added to 0, then halves to halves. */
VEC_INLINE float reduce_short_sum(const float *x, int64_t count)
{
#define LANE(k) (count > (k) ? 0 + x[k] : 0)
    return ((LANE(0) + LANE(4)) + (LANE(2) + LANE(6))) +
           ((LANE(1) + LANE(5)) + (LANE(3) + LANE(7)));
#undef LANE
}

/* Rows of few columns, whose result stays in a register, into `to`; false: not here. */
VEC_INLINE bool reduce_narrow_f32(reduce_kind kind, const float *x, int64_t rows, int64_t width,
                                  float *to)
{
#if VEC_MASKED
    if (width > VEC_LANES)
        return false;
    vec so_far = vec_load_part(x, width);
    for (int64_t r = 1; r < rows; r++) {
        vec more = vec_load_part(x + r * width, width);
        so_far = kind == REDUCE_SUM   ? so_far + more
                 : kind == REDUCE_MAX ? vec_maximum(more, so_far)
                                      : vec_minimum(more, so_far);
    }
    vec_store_part(to, so_far, width);
    return true;
#else
    (void)kind, (void)x, (void)rows, (void)width, (void)to;
    return false;
#endif
}
#define reduce_narrow_f64(kind, x, rows, width, to) false
#define reduce_narrow_wide reduce_narrow_f64
#define reduce_narrow_i8 reduce_narrow_f64
#define reduce_narrow_u8 reduce_narrow_f64
#define reduce_narrow_i32 reduce_narrow_f64
#define reduce_narrow_i64 reduce_narrow_f64

/* to = to op from, `count` elements of floats */
VEC_INLINE void reduce_join_f32(reduce_kind kind, float *to, const float *from, int64_t count)
{
    if (kind == REDUCE_SUM)
        ROW_MAP(to, count, ROW_AT(to) + ROW_AT(from));
    else if (kind == REDUCE_MAX)
        ROW_MAP(to, count, vec_maximum(ROW_AT(from), ROW_AT(to)));
    else
        ROW_MAP(to, count, vec_minimum(ROW_AT(from), ROW_AT(to)));
}

VEC_INLINE void reduce_join_f64(reduce_kind kind, double *to, const double *from, int64_t count)
{
    if (kind == REDUCE_MAX || kind == REDUCE_MIN) {
        extremes_f64(kind == REDUCE_MAX, to, to, from, count);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        to[i] = kind == REDUCE_SUM ? to[i] + from[i] : to[i] * from[i];
}

/* Sums and products wrap round, so that their order does not matter. */
#define REDUCE_INTEGER_LOOPS(T, U, suffix)                                                         \
    VEC_INLINE T reduce_two_##suffix(reduce_kind kind, T a, T b)                                   \
    {                                                                                              \
        if (kind == REDUCE_SUM)                                                                    \
            return (T)((U)a + (U)b);                                                               \
        if (kind == REDUCE_PRODUCT)                                                                \
            return (T)((U)a * (U)b);                                                               \
        return (kind == REDUCE_MAX) == (b > a) ? b : a;                                            \
    }                                                                                              \
    VEC_INLINE T reduce_row_##suffix(reduce_kind kind, const T *x, int64_t count)                  \
    {                                                                                              \
        T result = x[0];                                                                           \
        for (int64_t i = 1; i < count; i++)                                                        \
            result = reduce_two_##suffix(kind, result, x[i]);                                      \
        return result;                                                                             \
    }                                                                                              \
    VEC_INLINE void reduce_join_##suffix(reduce_kind kind, T *to, const T *from, int64_t count)    \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++)                                                        \
            to[i] = reduce_two_##suffix(kind, to[i], from[i]);                                     \
    }
REDUCE_INTEGER_LOOPS(int8_t, uint8_t, i8)
REDUCE_INTEGER_LOOPS(uint8_t, uint8_t, u8)
REDUCE_INTEGER_LOOPS(int32_t, uint32_t, i32)
REDUCE_INTEGER_LOOPS(int64_t, uint64_t, i64)

/* Rows of 2 to REDUCE_SHORT elements: with a loop for each length the compiler makes vectors of
 * rows.
 */
#define REDUCE_STEP(k, suffix)                                                                     \
    if (count > (k))                                                                               \
        so_far = reduce_two_##suffix(kind, so_far, x[k]);
#define REDUCE_OF_LENGTH(suffix, n)                                                                \
    case n:                                                                                        \
        for (int64_t r = 0; r < rows; r++)                                                         \
            to[r] = reduce_short_##suffix(kind, x + r * (n), n);                                   \
        return;
#define REDUCE_SHORT_ROWS(T, R, suffix, SUM)                                                       \
    VEC_INLINE R reduce_short_##suffix(reduce_kind kind, const T *x, int64_t count)                \
    {                                                                                              \
        R so_far = (R)x[0];                                                                        \
        REDUCE_STEP(1, suffix)                                                                     \
        REDUCE_STEP(2, suffix)                                                                     \
        REDUCE_STEP(3, suffix)                                                                     \
        REDUCE_STEP(4, suffix)                                                                     \
        REDUCE_STEP(5, suffix)                                                                     \
        REDUCE_STEP(6, suffix)                                                                     \
        REDUCE_STEP(7, suffix)                                                                     \
        return SUM(so_far);                                                                        \
    }                                                                                              \
    VEC_INLINE void reduce_rows_##suffix(reduce_kind kind, const T *x, int64_t count,              \
                                         int64_t rows, R *to)                                      \
    {                                                                                              \
        switch (count) {                                                                           \
            REDUCE_OF_LENGTH(suffix, 2)                                                            \
            REDUCE_OF_LENGTH(suffix, 3)                                                            \
            REDUCE_OF_LENGTH(suffix, 4)                                                            \
            REDUCE_OF_LENGTH(suffix, 5)                                                            \
            REDUCE_OF_LENGTH(suffix, 6)                                                            \
            REDUCE_OF_LENGTH(suffix, 7)                                                            \
            REDUCE_OF_LENGTH(suffix, 8)                                                            \
        }                                                                                          \
        for (int64_t r = 0; r < rows; r++)                                                         \
            to[r] = reduce_row_##suffix(kind, x + r * count, count);                               \
    }
#define REDUCE_AS_ROWS(so_far) (kind == REDUCE_SUM ? reduce_short_sum(x, count) : so_far)
#define REDUCE_IN_ORDER(so_far) so_far
REDUCE_SHORT_ROWS(float, float, f32, REDUCE_AS_ROWS)
REDUCE_SHORT_ROWS(double, double, f64, REDUCE_IN_ORDER)
REDUCE_SHORT_ROWS(float, double, wide, REDUCE_IN_ORDER)
REDUCE_SHORT_ROWS(int8_t, int8_t, i8, REDUCE_IN_ORDER)
REDUCE_SHORT_ROWS(uint8_t, uint8_t, u8, REDUCE_IN_ORDER)
REDUCE_SHORT_ROWS(int32_t, int32_t, i32, REDUCE_IN_ORDER)
REDUCE_SHORT_ROWS(int64_t, int64_t, i64, REDUCE_IN_ORDER)

#endif
