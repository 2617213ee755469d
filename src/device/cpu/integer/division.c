/* division.c: loops over integers of quotients, which round down, rests, which have the divisor's
 * sign, and powers; and what they refuse: divisors of 0 and negative powers. */
#include <math.h>

#include "device/cpu/integer/loops.h"

/* Of elements that a float holds exactly, and whose quotients lie farther from the next whole
 * number than it rounds: processors divide floats side by side. */
#define FLOOR_BYTES(a, b) ((int32_t)floorf((float)(a) / (float)(b)))
#define FLOOR_WORDS(a, b) ((int64_t)floor((double)(a) / (double)(b)))

static inline int64_t floor_long(int64_t a, int64_t b)
{
    if (b == -1)
        return (int64_t)(0 - (uint64_t)a); /* INT64_MIN / -1 would trap */
    int64_t quotient = a / b, rest = a % b;
    return quotient - (rest != 0 && (rest < 0) != (b < 0));
}

INTEGER_LOOP_2(floordiv_i8, int8_t, uint8_t, int8_t, AS_IT_IS, FLOOR_BYTES(a, b))
INTEGER_LOOP_2(floordiv_u8, uint8_t, uint8_t, uint8_t, AS_IT_IS, FLOOR_BYTES(a, b))
INTEGER_LOOP_2(floordiv_i32, int32_t, uint32_t, int32_t, AS_IT_IS, FLOOR_WORDS(a, b))
INTEGER_LOOP_2(floordiv_i64, int64_t, uint64_t, int64_t, AS_IT_IS, floor_long(a, b))

/* a - b floor(a / b) */
#define REST(floor_of) ((U)a - (U)b * (U)(floor_of))
INTEGER_LOOP_2(mod_i8, int8_t, uint8_t, int8_t, AS_IT_IS, REST(FLOOR_BYTES(a, b)))
INTEGER_LOOP_2(mod_u8, uint8_t, uint8_t, uint8_t, AS_IT_IS, REST(FLOOR_BYTES(a, b)))
INTEGER_LOOP_2(mod_i32, int32_t, uint32_t, int32_t, AS_IT_IS, REST(FLOOR_WORDS(a, b)))
INTEGER_LOOP_2(mod_i64, int64_t, uint64_t, int64_t, AS_IT_IS, REST(floor_long(a, b)))

/* By squaring, one bit of the exponent at a time. */
static inline uint64_t power(uint64_t base, uint64_t exponent)
{
    uint64_t result = 1;
    for (; exponent != 0; exponent >>= 1) {
        if (exponent & 1)
            result *= base;
        base *= base;
    }
    return result;
}
INTEGER_2(pow, power((uint64_t)a, (uint64_t)b))

#define REFUSES(name, T, condition)                                                                \
    static void name(const tutti_tile_args *t)                                                     \
    {                                                                                              \
        const T *from = t->x[0];                                                                   \
        uint8_t found = 0;                                                                         \
        for (int64_t i = 0; i < t->count; i++)                                                     \
            found |= from[i] condition;                                                            \
        *(bool *)t->y = found != 0;                                                                \
    }
REFUSES(zero_i8, int8_t, == 0)
REFUSES(zero_u8, uint8_t, == 0)
REFUSES(zero_i32, int32_t, == 0)
REFUSES(zero_i64, int64_t, == 0)
REFUSES(negative_i8, int8_t, < 0)
REFUSES(negative_i32, int32_t, < 0)
REFUSES(negative_i64, int64_t, < 0)

static const tutti_integer_op ops[] = {
    {"floordiv", 2, INTEGER_TYPES(floordiv), .refuses = INTEGER_TYPES(zero)},
    {"mod", 2, INTEGER_TYPES(mod), .refuses = INTEGER_TYPES(zero)},
    {"pow", 2, INTEGER_TYPES(pow),
     .refuses = {[TUTTI_I8] = negative_i8, [TUTTI_I32] = negative_i32, [TUTTI_I64] = negative_i64}},
    {0},
};

const tutti_integer_family TUTTI_ISA_NAME(tutti_integer_family_division) = {
    .isa = TUTTI_ISA_TEXT,
    .ops = ops,
};
