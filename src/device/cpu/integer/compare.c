/* compare.c: loops over integers and bools of comparisons and logic. Results are the bytes 0 and 1.
 */
#include "device/cpu/integer/loops.h"

#define COMPARE(name, expression)                                                                  \
    INTEGER_LOOP_2(name##_i8, int8_t, uint8_t, uint8_t, AS_IT_IS, expression)                      \
    INTEGER_LOOP_2(name##_u8, uint8_t, uint8_t, uint8_t, AS_IT_IS, expression)                     \
    INTEGER_LOOP_2(name##_i32, int32_t, uint32_t, uint8_t, AS_IT_IS, expression)                   \
    INTEGER_LOOP_2(name##_i64, int64_t, uint64_t, uint8_t, AS_IT_IS, expression)                   \
    INTEGER_LOOP_2(name##_bool, uint8_t, uint8_t, uint8_t, AS_TRUTH, expression)
COMPARE(equal, a == b)
COMPARE(not_equal, a != b)
COMPARE(less, a < b)
COMPARE(less_equal, a <= b)
COMPARE(greater, a > b)
COMPARE(greater_equal, a >= b)

INTEGER_LOOP_2(both, uint8_t, uint8_t, uint8_t, AS_TRUTH, a &b)
INTEGER_LOOP_2(either, uint8_t, uint8_t, uint8_t, AS_TRUTH, a | b)
INTEGER_LOOP_2(one_of, uint8_t, uint8_t, uint8_t, AS_TRUTH, a ^ b)
INTEGER_LOOP_1(not_, uint8_t, uint8_t, uint8_t, AS_IT_IS, x == 0)

static const tutti_integer_op ops[] = {
    {"equal", 2, INTEGER_TYPES_AND_BOOL(equal)},
    {"not_equal", 2, INTEGER_TYPES_AND_BOOL(not_equal)},
    {"less", 2, INTEGER_TYPES_AND_BOOL(less)},
    {"less_equal", 2, INTEGER_TYPES_AND_BOOL(less_equal)},
    {"greater", 2, INTEGER_TYPES_AND_BOOL(greater)},
    {"greater_equal", 2, INTEGER_TYPES_AND_BOOL(greater_equal)},
    {"logical_and", 2, {[TUTTI_BOOL] = both}},
    {"logical_or", 2, {[TUTTI_BOOL] = either}},
    {"logical_xor", 2, {[TUTTI_BOOL] = one_of}},
    {"logical_not", 1, {[TUTTI_BOOL] = not_}},
    {0},
};

const tutti_integer_family TUTTI_ISA_NAME(tutti_integer_family_compare) = {
    .isa = TUTTI_ISA_TEXT,
    .ops = ops,
};
