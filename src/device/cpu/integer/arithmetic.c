/* arithmetic.c: loops over integers of sums, products, bounds and bits. */
#include <math.h>

#include "device/cpu/integer/loops.h"

#pragma GCC diagnostic ignored "-Wtype-limits" /* no byte without a sign is below 0 */

INTEGER_2(add, (U)a + (U)b)
INTEGER_2(sub, (U)a - (U)b)
INTEGER_2(mul, (U)a *(U)b)
INTEGER_2(maximum, a >= b ? a : b)
INTEGER_2(minimum, a <= b ? a : b)
INTEGER_2(bits_of_both, a &b)
INTEGER_2(bits_of_either, a | b)
INTEGER_2(bits_of_one, a ^ b)
INTEGER_2(prelu, a > 0 ? (U)a : (U)a * (U)b)
INTEGER_1(negate, (U)0 - (U)x)
INTEGER_1(absolute, x < 0 ? (U)0 - (U)x : (U)x)
INTEGER_1(sign, (x > 0) - (x < 0))
INTEGER_1(square, (U)x *(U)x)
INTEGER_1(relu, x > 0 ? x : 0)
INTEGER_1(relu6, x<0 ? 0 : x> 6 ? 6 : x)

/* A bound of clip as an integer; beyond 64 bits it is none. */
static int64_t bound(double value)
{
    return value >= 0x1p63 ? INT64_MAX : value <= -0x1p63 ? INT64_MIN : (int64_t)value;
}

typedef struct bounds {
    int64_t low, high;
} bounds;

/* Bounds of elements in [least, most]. Where all of them lie beyond one, that one is the result. */
static bounds bounds_of(const double *params, int64_t least, int64_t most)
{
    int64_t low = bound(ceil(params[0])), high = bound(floor(params[1]));
    if (low > most)
        return (bounds){low, low};
    if (high < least)
        return (bounds){high, high};
    return (bounds){low < least ? least : low, high > most ? most : high};
}

#define CLIP(name, T, least, most)                                                                 \
    static void name(const tutti_tile_args *t)                                                     \
    {                                                                                              \
        const T *from = t->x[0];                                                                   \
        T *to = t->y;                                                                              \
        const bounds limits = bounds_of(t->params, least, most);                                   \
        const T low = (T)limits.low, high = (T)limits.high;                                        \
        const int64_t count = t->count;                                                            \
        INTEGER_FOR(int64_t i = 0; i < count; i++)                                                 \
        {                                                                                          \
            const T x = from[i], above = x > high ? high : x;                                      \
            to[i] = x < low ? low : above;                                                         \
        }                                                                                          \
    }
CLIP(clip_i8, int8_t, INT8_MIN, INT8_MAX)
CLIP(clip_u8, uint8_t, 0, UINT8_MAX)
CLIP(clip_i32, int32_t, INT32_MIN, INT32_MAX)
CLIP(clip_i64, int64_t, INT64_MIN, INT64_MAX)

static const tutti_integer_op ops[] = {
    {"add", 2, INTEGER_TYPES(add)},
    {"sub", 2, INTEGER_TYPES(sub)},
    {"mul", 2, INTEGER_TYPES(mul)},
    {"maximum", 2, INTEGER_TYPES(maximum)},
    {"minimum", 2, INTEGER_TYPES(minimum)},
    {"bitwise_and", 2, INTEGER_TYPES(bits_of_both)},
    {"bitwise_or", 2, INTEGER_TYPES(bits_of_either)},
    {"bitwise_xor", 2, INTEGER_TYPES(bits_of_one)},
    {"prelu", 2, INTEGER_TYPES(prelu)},
    {"neg", 1, INTEGER_TYPES(negate)},
    {"abs", 1, INTEGER_TYPES(absolute)},
    {"sign", 1, INTEGER_TYPES(sign)},
    {"square", 1, INTEGER_TYPES(square)},
    {"relu", 1, INTEGER_TYPES(relu)},
    {"relu6", 1, INTEGER_TYPES(relu6)},
    {"clip", 1, INTEGER_TYPES(clip), .attrs = {"min", "max"}},
    {0},
};

const tutti_integer_family TUTTI_ISA_NAME(tutti_integer_family_arithmetic) = {
    .isa = TUTTI_ISA_TEXT,
    .ops = ops,
};
