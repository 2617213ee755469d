/* compare.c: tile loops of comparisons, logic and tests. Results are 0 and 1. */
#include "device/cpu/tile/loops.h"

#define IS(condition) ((condition) ? 1.0 : 0.0)
#define ZERO S(0.0f)

TILE_2(equal, vec_one(vec_eq(a, b)), IS(a == b))
TILE_2(not_equal, vec_one(vec_ne(a, b)), IS(a != b))
TILE_2(less, vec_one(vec_lt(a, b)), IS(a < b))
TILE_2(less_equal, vec_one(vec_le(a, b)), IS(a <= b))
TILE_2(greater, vec_one(vec_gt(a, b)), IS(a > b))
TILE_2(greater_equal, vec_one(vec_ge(a, b)), IS(a >= b))
TILE_2(both, vec_one(vec_ne(a, ZERO)) * vec_one(vec_ne(b, ZERO)), IS(a != 0 && b != 0))
TILE_2(either, vec_one(vec_ne(vec_one(vec_ne(a, ZERO)) + vec_one(vec_ne(b, ZERO)), ZERO)),
       IS(a != 0 || b != 0))
TILE_2(one_of, vec_one(vec_ne(vec_one(vec_ne(a, ZERO)), vec_one(vec_ne(b, ZERO)))),
       IS((a != 0) != (b != 0)))
TILE_1(not_, vec_one(vec_eq(x, ZERO)), IS(x == 0))
TILE_1(is_nan, vec_one(vec_ne(x, x)), IS(x != x))
TILE_1(is_inf, vec_one(vec_eq(vec_abs(x), S(INFINITY))), IS(fabs(x) == (double)INFINITY))
TILE_1(is_finite, vec_one(vec_lt(vec_abs(x), S(INFINITY))), IS(fabs(x) < (double)INFINITY))
TILE_1(truth, vec_one(vec_ne(x, ZERO)), IS(x != 0))

static const tutti_tile_op ops[] = {
    TILE_ROW("equal", 2, equal),
    TILE_ROW("not_equal", 2, not_equal),
    TILE_ROW("less", 2, less),
    TILE_ROW("less_equal", 2, less_equal),
    TILE_ROW("greater", 2, greater),
    TILE_ROW("greater_equal", 2, greater_equal),
    TILE_ROW("logical_and", 2, both),
    TILE_ROW("logical_or", 2, either),
    TILE_ROW("logical_xor", 2, one_of),
    TILE_ROW("logical_not", 1, not_),
    TILE_ROW("is_nan", 1, is_nan),
    TILE_ROW("is_inf", 1, is_inf),
    TILE_ROW("is_finite", 1, is_finite),
    TILE_ROW(".truth", 1, truth),
    {0},
};

const tutti_tile_family TUTTI_ISA_NAME(tutti_tile_family_compare) = {
    .isa = TUTTI_ISA_TEXT,
    .ops = ops,
};
