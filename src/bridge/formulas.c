/* formulas.c: see formulas.h. */
#include "bridge/formulas.h"
#include "ops/build.h"

#include <math.h>

static tutti_sym number(tutti_sym beside, double value)
{
    return tutti__scalar_like(beside, value);
}

static tutti_sym is_below_zero(tutti_sym x)
{
    return tutti_less(x, number(x, 0));
}

/* |x| whose slope at 0 is 1, and y with x's sign: odd functions of |x| keep their slope at 0. */
static tutti_sym size_of(tutti_sym x)
{
    return tutti_where(is_below_zero(x), tutti_neg(x), x);
}

static tutti_sym with_sign(tutti_sym y, tutti_sym x)
{
    return tutti_where(is_below_zero(x), tutti_neg(y), y);
}

/* From here on log(2 x) is asinh x and acosh x to the last bit; before it squares are finite. */
static tutti_sym is_far(tutti_sym x)
{
    return tutti_greater(x, number(x, tutti_sym_type(x).dtype == TUTTI_F16 ? 0x1p7 : 0x1p28));
}

/* far ? log(2 x) : near */
static tutti_sym log_of_twice(tutti_sym x, tutti_sym far, tutti_sym near)
{
    tutti_sym large = tutti_where(far, x, number(x, 1));
    return tutti_where(far, tutti_add(tutti_log(large), M_LN2), near);
}

/* asinh |x| = log1p(|x| + sqrt(x^2 + 1) - 1) = log1p(|x| + x^2 / (1 + sqrt(x^2 + 1))) */
tutti_sym tutti__formula_asinh(tutti_sym x)
{
    tutti_sym size = size_of(x), far = is_far(size);
    tutti_sym near = tutti_where(far, number(x, 1), size), square = tutti_square(near);
    tutti_sym below = tutti_add(tutti_sqrt(tutti_add(square, 1)), 1);
    tutti_sym y = tutti_log1p(tutti_add(near, tutti_div(square, below)));
    return with_sign(log_of_twice(size, far, y), x);
}

/* acosh x = log1p(t + sqrt(t) sqrt(x + 1)) with t = x - 1 */
tutti_sym tutti__formula_acosh(tutti_sym x)
{
    tutti_sym far = is_far(x), near = tutti_where(far, number(x, 2), x);
    tutti_sym t = tutti_add(near, -1);
    tutti_sym root = tutti_mul(tutti_sqrt(t), tutti_sqrt(tutti_add(near, 1)));
    return log_of_twice(x, far, tutti_log1p(tutti_add(t, root)));
}

/* Whether rounding down has gone past the quotient: it is negative and not whole. */
static tutti_sym is_past(tutti_sym a, tutti_sym b, tutti_sym rest)
{
    return tutti_logical_and(tutti_not_equal(rest, number(rest, 0)),
                             tutti_not_equal(is_below_zero(a), is_below_zero(b)));
}

tutti_sym tutti__formula_quotient(tutti_sym a, tutti_sym b)
{
    tutti_sym down = tutti_floordiv(a, b);
    if (tutti_sym_type(a).dtype == TUTTI_U8)
        return down;
    return tutti_where(is_past(a, b, tutti_mod(a, b)), tutti_add(down, 1), down);
}

tutti_sym tutti__formula_rest(tutti_sym a, tutti_sym b)
{
    tutti_dtype dtype = tutti_sym_type(a).dtype;
    if (tutti_dtype_is_float(dtype))
        return with_sign(tutti_mod(size_of(a), size_of(b)), a);
    tutti_sym rest = tutti_mod(a, b);
    return dtype == TUTTI_U8 ? rest : tutti_where(is_past(a, b, rest), tutti_sub(rest, b), rest);
}

/* The product of dimensions from..to, or -1. */
static int64_t known_size(const tutti_type *type, int from, int to)
{
    int64_t size = 1;
    for (int i = from; i < to; i++)
        size = type->dims[i] < 0 || size < 0 ? -1 : size * type->dims[i];
    return size;
}

static tutti_sym size_between(tutti_sym x, int from, int to)
{
    int64_t axes[TUTTI_MAX_RANK];
    for (int i = from; i < to; i++)
        axes[i - from] = i;
    return from < to ? (tutti_size)(x, to - from, axes)
                     : tutti_scalar(tutti_sym_graph(x), TUTTI_I64, 1);
}

tutti_sym tutti__formula_matrix(tutti_sym x, int axis)
{
    tutti_type type = tutti_sym_type(x);
    int64_t before = known_size(&type, 0, axis), after = known_size(&type, axis, type.rank);
    if (after > 0)
        return tutti_reshape(x, -1, after);
    if (before > 0)
        return tutti_reshape(x, before, -1);
    tutti_sym shape =
        tutti_stack(TUTTI_SYMS(size_between(x, 0, axis), size_between(x, axis, type.rank)));
    return tutti_reshape_like(x, tutti_fill_dynamic(shape, TUTTI_BOOL, 0, -1, -1));
}

/* The places, and where one of their numbers is outside its axis the size of all, which is no
 * place. */
static tutti_sym inside(tutti_sym flat, tutti_sym rows, tutti_sym x, int64_t depth)
{
    tutti_sym sizes[TUTTI_MAX_RANK], zero = number(rows, 0);
    for (int64_t i = 0; i < depth; i++)
        sizes[i] = tutti_size(x, i);
    tutti_sym fits = tutti_logical_and(tutti_greater_equal(rows, zero),
                                       tutti_less(rows, tutti_stack((int)depth, sizes)));
    return tutti_where(tutti_all(fits, .axes = TUTTI_AXES(-1)), flat, (tutti_size)(x, 0, NULL));
}

/* x flat, rows as places in it: i0 n1 n2 … + i1 n2 … + …, each with all the places of the rest;
 * then scatter_elements along the only axis. */
tutti_sym tutti__formula_scatter(tutti_sym x, tutti_sym rows, tutti_sym updates,
                                 const char *reduction)
{
    tutti_graph *graph = tutti_sym_graph(x);
    tutti_type type = tutti_sym_type(x), at = tutti_sym_type(rows);
    int64_t depth = at.rank > 0 ? at.dims[at.rank - 1] : -1;
    tutti_sym strides[TUTTI_MAX_RANK];
    if (depth < 1 || depth > type.rank)
        return TUTTI_NO_SYM;
    for (int i = 0; i < depth; i++) {
        int64_t known = known_size(&type, i + 1, type.rank);
        strides[i] = known >= 0 ? tutti_scalar(graph, TUTTI_I64, (double)known)
                                : size_between(x, i + 1, type.rank);
    }
    rows = at.dtype == TUTTI_I64 ? rows : tutti_cast(rows, TUTTI_I64);
    tutti_sym flat =
        tutti_sum(tutti_mul(rows, tutti_stack((int)depth, strides)), .axes = TUTTI_AXES(-1));
    flat = inside(flat, rows, x, depth);
    tutti_sym zero = tutti_scalar(graph, TUTTI_I64, 0), one = tutti_scalar(graph, TUTTI_I64, 1);
    int64_t inner = known_size(&type, (int)depth, type.rank);
    tutti_sym rest = inner >= 0 ? tutti_range(graph, 0, (double)inner, 1, TUTTI_I64)
                                : tutti_range_dynamic(zero, strides[depth - 1], one);
    flat = tutti_add(tutti_reshape(flat, -1, 1), rest);
    tutti_sym y = tutti_scatter_elements(tutti_reshape(x, -1), tutti_reshape(flat, -1),
                                         tutti_reshape(updates, -1), 0, reduction);
    return tutti_reshape_like(y, x);
}
