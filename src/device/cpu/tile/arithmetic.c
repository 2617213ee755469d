/* arithmetic.c: tile loops of sums, products, bounds and roundings. */
#include "device/cpu/tile/loops.h"

TILE_2(add, a + b)
TILE_2(sub, a - b)
TILE_2(mul, a * b)
TILE_2(divide, a / b)
TILE_2(maximum, a >= b || a != a ? a : b)
TILE_2(minimum, a <= b || a != a ? a : b)
TILE_1(negate, -x)
TILE_1(absolute, e_abs(x))
TILE_1(sign, x != x ? x : (x > 0 ? (T)1 : (T)0) - (x < 0 ? (T)1 : (T)0))
TILE_1(square, x *x)
TILE_1(reciprocal, 1 / x)
TILE_1(root, e_sqrt(x))
TILE_1(reciprocal_root, 1 / e_sqrt(x))
TILE_1(clip, x < p[0] ? p[0] : x > p[1] ? p[1] : x)
TILE_1(round_down, e_floor(x))
TILE_1(round_up, e_ceil(x))
TILE_1(round_near, e_round(x))
TILE_3(select, a != 0 ? b : c)

static const tutti_tile_op ops[] = {
    TILE_ROW("add", 2, add),
    TILE_ROW("sub", 2, sub),
    TILE_ROW("mul", 2, mul),
    TILE_ROW("div", 2, divide),
    TILE_ROW("maximum", 2, maximum),
    TILE_ROW("minimum", 2, minimum),
    TILE_ROW("neg", 1, negate),
    TILE_ROW("abs", 1, absolute),
    TILE_ROW("sign", 1, sign),
    TILE_ROW("square", 1, square),
    TILE_ROW("reciprocal", 1, reciprocal),
    TILE_ROW("sqrt", 1, root),
    TILE_ROW("rsqrt", 1, reciprocal_root),
    TILE_ROW_P("clip", 1, clip, "min", "max"),
    TILE_ROW("floor", 1, round_down),
    TILE_ROW("ceil", 1, round_up),
    TILE_ROW("round", 1, round_near),
    TILE_ROW("where", 3, select),
    {0},
};

const tutti_tile_family TUTTI_ISA_NAME(tutti_tile_family_arithmetic) = {
    .isa = TUTTI_ISA_TEXT,
    .ops = ops,
};
