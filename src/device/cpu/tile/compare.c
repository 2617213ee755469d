/* compare.c: tile loops of comparisons, logic and tests. Results are 0 and 1. */
#include "device/cpu/tile/loops.h"

#define IS(condition) ((condition) ? (T)1 : (T)0)

TILE_2(equal, IS(a == b))
TILE_2(not_equal, IS(a != b))
TILE_2(less, IS(a < b))
TILE_2(less_equal, IS(a <= b))
TILE_2(greater, IS(a > b))
TILE_2(greater_equal, IS(a >= b))
TILE_2(both, IS(a != 0) * IS(b != 0))
TILE_2(either, IS(IS(a != 0) + IS(b != 0) > 0))
TILE_2(one_of, IS(IS(a != 0) != IS(b != 0)))
TILE_1(not_, IS(x == 0))
TILE_1(is_nan, IS(x != x))
TILE_1(is_inf, IS(e_abs(x) == (T)INFINITY))
TILE_1(is_finite, IS(e_abs(x) < (T)INFINITY))
TILE_1(truth, IS(x != 0))

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
