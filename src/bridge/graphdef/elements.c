/* elements.c: TensorFlow's element-wise operators, losses and matrices that are several of
 * ours. */
#include "bridge/formulas.h"
#include "bridge/graphdef/rules.h"
#include "ops/build.h"

#include <math.h>
#include <string.h>

static tutti_sym constant(tutti_sym beside, double value)
{
    return tutti__scalar_like(beside, value);
}

/* ---- one number of one or two ---- */

/* atanh x = log((1 + x) / (1 - x)) / 2 */
static void read_inverse(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0);
    if (m->status != TUTTI_OK)
        return;
    if (strcmp(m->node->op, "Asinh") == 0)
        made(m, tutti__formula_asinh(x));
    else if (strcmp(m->node->op, "Acosh") == 0)
        made(m, tutti__formula_acosh(x));
    else
        made(m, tutti_mul(tutti_sub(tutti_log1p(x), tutti_log1p(tutti_neg(x))), 0.5));
}

/* Whether the sign is minus: of -0 that of 1 / x, which is none of -inf. */
static tutti_sym is_negative(tutti_sym x)
{
    return tutti_logical_or(tutti_less(x, constant(x, 0)),
                            tutti_less(tutti_reciprocal(x), constant(x, 0)));
}

/* The angle of (x, y): atan of the smaller size by the larger, which has a slope everywhere, turned
 * into the eighth where the point is. Of two zeros the smaller by the larger counts as 0, of two
 * infinities as 1. */
static void read_atan2(tutti_graphdef_import *m)
{
    tutti_sym y = IN(0), x = IN(1);
    if (m->status != TUTTI_OK)
        return;
    tutti_sym left = is_negative(x), below = is_negative(y);
    tutti_sym wide = tutti_where(left, tutti_neg(x), x), high = tutti_where(below, tutti_neg(y), y);
    tutti_sym small = tutti_minimum(wide, high), large = tutti_maximum(wide, high);
    tutti_sym one = constant(large, 1), none = tutti_equal(large, constant(large, 0));
    tutti_sym both = tutti_equal(small, constant(small, INFINITY));
    small = tutti_where(both, one, small);
    large = tutti_where(tutti_logical_or(none, both), one, large);
    tutti_sym angle = tutti_atan(tutti_div(small, large));
    angle =
        tutti_where(tutti_greater(high, wide), tutti_sub(constant(angle, M_PI / 2), angle), angle);
    angle = tutti_where(left, tutti_sub(constant(angle, M_PI), angle), angle);
    made(m, tutti_where(below, tutti_neg(angle), angle));
}

/* 0 where the first (MulNoNan, DivNoNan: the second) is 0, else the product, quotient, x log y, x
 * log(1 + y) or x / y. */
static void read_careful(tutti_graphdef_import *m)
{
    const char *op = m->node->op;
    tutti_sym x = IN(0), y = IN(1);
    bool second = strcmp(op, "MulNoNan") == 0 || strcmp(op, "DivNoNan") == 0;
    if (m->status != TUTTI_OK)
        return;
    tutti_sym watched = second ? y : x, none = tutti_equal(watched, constant(watched, 0));
    tutti_sym safe = tutti_where(none, constant(y, 1), y), value;
    if (strcmp(op, "MulNoNan") == 0)
        value = tutti_mul(x, y);
    else if (strcmp(op, "DivNoNan") == 0 || strcmp(op, "Xdivy") == 0)
        value = tutti_div(x, safe);
    else
        value = tutti_mul(x, strcmp(op, "Xlogy") == 0 ? tutti_log(safe) : tutti_log1p(safe));
    made(m, tutti_where(none, constant(x, 0), value));
}

/* Quotients cut off towards 0, and what they leave. */
static void read_truncate(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0), y = IN(1);
    if (m->status != TUTTI_OK)
        return;
    made(m, strcmp(m->node->op, "TruncateMod") == 0 ? tutti__formula_rest(x, y)
                                                    : tutti__formula_quotient(x, y));
}

/* Of integers cut off towards 0. */
static void read_div(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0), y = IN(1);
    if (m->status == TUTTI_OK)
        made(m, tutti_dtype_is_int(tutti_sym_type(x).dtype) ? tutti__formula_quotient(x, y)
                                                            : tutti_div(x, y));
}

static void read_clip(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0), low = IN(1), high = IN(2);
    if (m->status == TUTTI_OK)
        made(m, tutti_minimum(tutti_maximum(x, low), high));
}

/* 1 - erf(x), and where that would leave nothing 2 P(-sqrt(2) x), whose P is in gelu(z) = z P(z).
 */
static void read_erfc(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0);
    if (m->status != TUTTI_OK)
        return;
    tutti_sym near = tutti_less(x, constant(x, 0.5)), far = tutti_where(near, constant(x, 1), x);
    tutti_sym tail = tutti_div(tutti_gelu(tutti_mul(far, -M_SQRT2)), tutti_mul(far, -M_SQRT1_2));
    made(m, tutti_where(near, tutti_add(tutti_neg(tutti_erf(x)), 1), tail));
}

static void read_squared_difference(tutti_graphdef_import *m)
{
    tutti_sym a = IN(0), b = IN(1);
    if (m->status == TUTTI_OK)
        made(m, tutti_square(tutti_sub(a, b)));
}

/* ---- quantization that is played ---- */

/* Levels of `bits` between low and high, moved so that 0 is one of them: x to the nearest. */
static tutti_sym quantized(tutti_sym x, tutti_sym low, tutti_sym high, int64_t bits, bool narrow)
{
    double least = narrow ? 1 : 0, most = (double)(((int64_t)1 << bits) - 1);
    tutti_sym scale = tutti_mul(tutti_sub(high, low), 1 / (most - least));
    tutti_sym zero = tutti_sub(constant(low, least), tutti_div(low, scale));
    zero = tutti_floor(tutti_add(tutti_clip(zero, least, most), 0.5));
    low = tutti_mul(tutti_sub(constant(low, least), zero), scale);
    high = tutti_mul(tutti_sub(constant(low, most), zero), scale);
    x = tutti_minimum(tutti_maximum(x, low), high);
    x = tutti_floor(tutti_add(tutti_div(tutti_sub(x, low), scale), 0.5));
    return tutti_add(tutti_mul(x, scale), low);
}

static void read_fake_quant(tutti_graphdef_import *m)
{
    bool args = strcmp(m->node->op, "FakeQuantWithMinMaxArgs") == 0;
    const tutti_graphdef_attr *low = tutti__graphdef_attr(m->node, "min");
    const tutti_graphdef_attr *high = tutti__graphdef_attr(m->node, "max");
    int64_t bits = attr_int(m, "num_bits", 8);
    tutti_sym x = IN(0), from = args ? TUTTI_NO_SYM : IN(1), to = args ? TUTTI_NO_SYM : IN(2);
    if (bits < 2 || bits > 16)
        tutti__graphdef_fail(m, TUTTI_INVALID, "has %lld bits", (long long)bits);
    if (m->status != TUTTI_OK)
        return;
    if (args) {
        from = constant(x, low ? (double)low->f : -6);
        to = constant(x, high ? (double)high->f : 6);
    }
    made(m, quantized(x, from, to, bits, attr_int(m, "narrow_range", 0) != 0));
}

/* ---- losses ---- */

static void read_cross_entropy(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0), labels = IN(1);
    if (m->status != TUTTI_OK)
        return;
    tutti_sym logits = tutti_log_softmax(x);
    made(m, tutti_neg(tutti_sum(tutti_mul(labels, logits), .axes = TUTTI_AXES(-1))));
    tutti__graphdef_give(m, 1, &(tutti_graphdef_value){.sym = tutti_sub(tutti_softmax(x), labels)});
}

static void read_sparse_cross_entropy(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0), labels = IN(1);
    if (m->status == TUTTI_OK)
        made(m, tutti_nn_sparse_cross_entropy(labels, x));
}

static void read_l2_loss(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0);
    if (m->status == TUTTI_OK)
        made(m, tutti_mul(tutti_sum(tutti_square(x)), 0.5));
}

/* ---- running sums ---- */

/* log(e^a + e^b) from the larger on, so that nothing overflows. */
static tutti_sym log_of_sum(tutti_sym a, tutti_sym b)
{
    tutti_sym most = tutti_maximum(a, b), least = tutti_minimum(a, b);
    tutti_sym same = tutti_equal(most, least); /* perhaps infinite */
    tutti_sym less = tutti_where(same, constant(a, 0), tutti_sub(least, most));
    return tutti_add(most, tutti_log1p(tutti_exp(less)));
}

/* x moved by `places` along an axis of n, `filler` before it. */
static tutti_sym moved(tutti_sym x, int axis, int64_t places, double filler)
{
    tutti_pad_options o = {.struct_size = sizeof o, .value = filler};
    o.before.count = o.after.count = tutti_sym_type(x).rank;
    o.before.values[axis] = places;
    return tutti_pad_with(tutti_slice_axis(x, axis, 0, -places), &o);
}

/* Each element with all before it: in steps of 1, 2, 4, … where the size n is known, else all pairs
 * of places. */
static tutti_sym running_log_of_sum(tutti_sym x, int axis)
{
    int64_t n = tutti_sym_type(x).dims[axis];
    for (int64_t places = 1; places < n; places *= 2)
        x = log_of_sum(x, moved(x, axis, places, -INFINITY));
    if (n >= 0)
        return x;
    tutti_sym place = tutti_cumsum(tutti_cast(tutti_ones_like(x), TUTTI_I32), axis);
    tutti_sym before =
        tutti_less_equal(tutti_expand_dims(place, axis), tutti_expand_dims(place, axis + 1));
    tutti_sym rows = tutti_where(before, tutti_expand_dims(x, axis), constant(x, -INFINITY));
    return tutti_logsumexp(rows, .axes = TUTTI_AXES(axis + 1));
}

static void read_cumulative(tutti_graphdef_import *m)
{
    tutti_axes axis;
    tutti_sym x = IN(0);
    bool exclusive = attr_int(m, "exclusive", 0), reverse = attr_int(m, "reverse", 0);
    if (m->status != TUTTI_OK || !tutti__graphdef_ints(m, 1, &axis) || axis.count != 1)
        return;
    int along = (int)axis.values[0], rank = tutti_sym_type(x).rank;
    if (strcmp(m->node->op, "Cumprod") == 0) {
        made(m, tutti_cumprod(x, along, .exclusive = exclusive, .reverse = reverse));
        return;
    }
    if (strcmp(m->node->op, "Cumsum") == 0) {
        made(m, tutti_cumsum(x, along, .exclusive = exclusive, .reverse = reverse));
        return;
    }
    along += along < 0 ? rank : 0;
    if (along < 0 || along >= rank) {
        tutti__graphdef_fail(m, TUTTI_INVALID, "has no axis %lld of %d dimensions",
                             (long long)axis.values[0], rank);
        return;
    }
    tutti_sym y = reverse ? tutti_reverse(x, along) : x;
    if (exclusive && tutti_sym_type(x).dims[along] != 0)
        y = moved(y, along, 1, -INFINITY);
    y = running_log_of_sum(y, along);
    made(m, reverse ? tutti_reverse(y, along) : y);
}

/* ---- matrices ---- */

/* Diagonals lower below to upper above the main one; negative: all. */
static void read_band(tutti_graphdef_import *m)
{
    tutti_axes lower, upper;
    tutti_sym x = IN(0);
    if (m->status != TUTTI_OK || !tutti__graphdef_ints(m, 1, &lower) ||
        !tutti__graphdef_ints(m, 2, &upper) || lower.count != 1 || upper.count != 1)
        return;
    if (lower.values[0] >= 0)
        x = tutti_triu(x, -lower.values[0]);
    if (upper.values[0] >= 0)
        x = tutti_tril(x, upper.values[0]);
    made(m, x);
}

/* True on the main diagonal, [n, n]. */
static tutti_sym diagonal(tutti_sym x, int axis)
{
    tutti_graph *graph = tutti_sym_graph(x);
    tutti_sym zero = tutti_scalar(graph, TUTTI_I64, 0), one = tutti_scalar(graph, TUTTI_I64, 1);
    tutti_sym places = tutti_range_dynamic(zero, tutti_size(x, axis), one);
    return tutti_equal(tutti_expand_dims(places, 1), places);
}

static bool main_diagonal(tutti_graphdef_import *m)
{
    tutti_axes k = {0};
    bool named = tutti__graphdef_inputs(m->node) > 1;
    if (named && !tutti__graphdef_ints(m, 1, &k))
        return false;
    for (int i = 0; i < k.count; i++)
        if (k.values[i] != 0)
            tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "only the main diagonal is supported");
    return m->status == TUTTI_OK;
}

static void read_diagonal(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0);
    if (m->status != TUTTI_OK || !main_diagonal(m))
        return;
    tutti_type type = tutti_sym_type(x);
    if (strncmp(m->node->op, "MatrixDiagPart", 14) != 0) {
        made(m, tutti_where(diagonal(x, type.rank - 1), tutti_expand_dims(x, -1), constant(x, 0)));
        return;
    }
    if (type.rank < 2 || type.dims[type.rank - 1] != type.dims[type.rank - 2])
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "its matrices must be square");
    else
        made(m, tutti_sum(tutti_where(diagonal(x, type.rank - 1), x, constant(x, 0)),
                          .axes = TUTTI_AXES(-1)));
}

const tutti_graphdef_entry tutti__graphdef_elements[] = {
    {"Asinh", read_inverse},
    {"Acosh", read_inverse},
    {"Atanh", read_inverse},
    {"Atan2", read_atan2},
    {"MulNoNan", read_careful},
    {"DivNoNan", read_careful},
    {"Xlogy", read_careful},
    {"Xlog1py", read_careful},
    {"Xdivy", read_careful},
    {"Div", read_div},
    {"TruncateDiv", read_truncate},
    {"TruncateMod", read_truncate},
    {"ClipByValue", read_clip},
    {"Erfc", read_erfc},
    {"SquaredDifference", read_squared_difference},
    {"FakeQuantWithMinMaxArgs", read_fake_quant},
    {"FakeQuantWithMinMaxVars", read_fake_quant},
    {"FakeQuantWithMinMaxVarsPerChannel", read_fake_quant},
    {"SoftmaxCrossEntropyWithLogits", read_cross_entropy},
    {"SparseSoftmaxCrossEntropyWithLogits", read_sparse_cross_entropy},
    {"L2Loss", read_l2_loss},
    {"Cumsum", read_cumulative},
    {"Cumprod", read_cumulative},
    {"CumulativeLogsumexp", read_cumulative},
    {"MatrixBandPart", read_band},
    {"MatrixDiag", read_diagonal},
    {"MatrixDiagV2", read_diagonal},
    {"MatrixDiagV3", read_diagonal},
    {"MatrixDiagPart", read_diagonal},
    {"MatrixDiagPartV2", read_diagonal},
    {"MatrixDiagPartV3", read_diagonal},
    {NULL, NULL},
};
