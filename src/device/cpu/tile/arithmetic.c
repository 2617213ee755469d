/* arithmetic.c: tile loops of sums, products, bounds and roundings. */
#include "device/cpu/extremes.h"
#include "device/cpu/tile/loops.h"

TILE_2(add, a + b, a + b)
TILE_2(sub, a - b, a - b)
TILE_2(mul, a *b, a *b)
TILE_2(divide, a / b, a / b)
TILE_FLOATS_2(maximum, vec_maximum(a, b))
TILE_FLOATS_2(minimum, vec_minimum(a, b))
TILE_1(negate, -x, -x)
TILE_1(absolute, vec_abs(x), fabs(x))
TILE_1(sign, vec_select(vec_ne(x, x), x, vec_one(vec_gt(x, S(0.0f))) - vec_one(vec_lt(x, S(0.0f)))),
       x != x ? x : (double)((x > 0) - (x < 0)))
TILE_1(square, x *x, x *x)
TILE_1(reciprocal, 1.0f / x, 1 / x)
TILE_1(root, vec_sqrt(x), sqrt(x))
TILE_1(reciprocal_root, 1.0f / vec_sqrt(x), 1 / sqrt(x))
TILE_1(clip, vec_clip(x, p[0], p[1]), x <= p[0] ? p[0] : x > p[1] ? p[1] : x)
TILE_C_1(round_down, floorf(x), floor(x))
TILE_C_1(round_up, ceilf(x), ceil(x))
TILE_C_1(round_near, nearbyintf(x), nearbyint(x))
TILE_3(select, vec_select(vec_ne(a, S(0.0f)), b, c), a != 0 ? b : c)

static void maximum_loop_f64(const tutti_tile_args *t)
{
    extremes_f64(true, t->y, t->x[0], t->x[1], t->count);
}

static void minimum_loop_f64(const tutti_tile_args *t)
{
    extremes_f64(false, t->y, t->x[0], t->x[1], t->count);
}

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
