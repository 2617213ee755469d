/* cast.c: loops between integers and bools. Narrower integers keep the low bits; a bool asks x !=
 * 0.
 */
#include "device/cpu/integer/loops.h"

#define CAST(name, result, expression)                                                             \
    INTEGER_LOOP_1(name##_i8, int8_t, uint8_t, result, AS_IT_IS, expression)                       \
    INTEGER_LOOP_1(name##_u8, uint8_t, uint8_t, result, AS_IT_IS, expression)                      \
    INTEGER_LOOP_1(name##_i32, int32_t, uint32_t, result, AS_IT_IS, expression)                    \
    INTEGER_LOOP_1(name##_i64, int64_t, uint64_t, result, AS_IT_IS, expression)                    \
    INTEGER_LOOP_1(name##_bool, uint8_t, uint8_t, result, AS_TRUTH, expression)
CAST(to_i8, int8_t, x)
CAST(to_u8, uint8_t, x)
CAST(to_i32, int32_t, x)
CAST(to_i64, int64_t, x)
CAST(to_bool, uint8_t, x != 0)

/* By way of a double, the bits that it cannot hold marked in the last one it holds. */
static inline uint16_t bf16_of(int64_t x)
{
    const uint64_t marked = 0xfff, magnitude = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
    const uint64_t odd = (magnitude & ~marked) | (uint64_t)((magnitude & marked) != 0) << 11;
    const double value = (double)(magnitude >> 53 != 0 ? odd : magnitude);
    uint64_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    const uint64_t rounded = (bits + ((UINT64_C(1) << 44) - 1) + (bits >> 45 & 1)) >> 45;
    const uint64_t moved = rounded - ((1023 - 127) << 7); /* the exponent */
    return (uint16_t)((x < 0 ? 0x8000 : 0) | (x == 0 ? 0 : moved));
}
INTEGER_LOOP_1(to_bf16_i32, int32_t, uint32_t, uint16_t, AS_IT_IS, bf16_of(x))
INTEGER_LOOP_1(to_bf16_i64, int64_t, uint64_t, uint16_t, AS_IT_IS, bf16_of(x))

static const tutti_integer_op ops[] = {
    {"cast", 1, INTEGER_TYPES_AND_BOOL(to_i8), .result = TUTTI_I8},
    {"cast", 1, INTEGER_TYPES_AND_BOOL(to_u8), .result = TUTTI_U8},
    {"cast", 1, INTEGER_TYPES_AND_BOOL(to_i32), .result = TUTTI_I32},
    {"cast", 1, INTEGER_TYPES_AND_BOOL(to_i64), .result = TUTTI_I64},
    {"cast", 1, INTEGER_TYPES_AND_BOOL(to_bool), .result = TUTTI_BOOL},
    {"cast", 1, {[TUTTI_I32] = to_bf16_i32, [TUTTI_I64] = to_bf16_i64}, .result = TUTTI_BF16},
    {0},
};

const tutti_integer_family TUTTI_ISA_NAME(tutti_integer_family_cast) = {
    .isa = TUTTI_ISA_TEXT,
    .ops = ops,
};
