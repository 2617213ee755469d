/* elements.c: TensorFlow's element-wise operators, losses and matrices that are several of
 * ours. */
#include "bridge/graphdef/rules.h"

#include <math.h>
#include <string.h>

static tutti_sym constant(tutti_sym beside, double value)
{
    return tutti_scalar_like(beside, value);
}

/* ---- one number of one or two ---- */

/* asinh x = sign(x) log(|x| + sqrt(x^2 + 1)), acosh x = log(x + sqrt(x^2 - 1)), atanh x = log((1 +
 * x) / (1 - x)) / 2 */
static void read_inverse(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0);
    if (m->status != TUTTI_OK)
        return;
    tutti_sym one = constant(x, 1), size = tutti_abs(x), square = tutti_square(x);
    if (strcmp(m->node->op, "Asinh") == 0)
        made(m, tutti_mul(tutti_sign(x),
                          tutti_log(tutti_add(size, tutti_sqrt(tutti_add(square, one))))));
    else if (strcmp(m->node->op, "Acosh") == 0)
        made(m, tutti_log(tutti_add(x, tutti_sqrt(tutti_sub(square, one)))));
    else
        made(m, tutti_scale(tutti_sub(tutti_log1p(x), tutti_log1p(tutti_neg(x))), 0.5));
}

/* The angle of (x, y): atan(y / x), and pi more or less where x < 0. */
static void read_atan2(tutti_graphdef_import *m)
{
    tutti_sym y = IN(0), x = IN(1);
    if (m->status != TUTTI_OK)
        return;
    tutti_sym zero = constant(x, 0), none = tutti_equal(x, zero);
    tutti_sym turn = tutti_where(tutti_less(y, zero), constant(y, -M_PI), constant(y, M_PI));
    tutti_sym angle = tutti_atan(tutti_div(y, tutti_where(none, constant(x, 1), x)));
    angle = tutti_add(angle, tutti_where(tutti_less(x, zero), turn, zero));
    made(m, tutti_where(none, tutti_scale(tutti_sign(y), M_PI / 2), angle));
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
    tutti_sym size = tutti_floordiv(tutti_abs(x), tutti_abs(y));
    tutti_sym whole = tutti_mul(size, tutti_mul(tutti_sign(x), tutti_sign(y)));
    made(m, strcmp(m->node->op, "TruncateDiv") == 0 ? whole : tutti_sub(x, tutti_mul(whole, y)));
}

static void read_clip(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0), low = IN(1), high = IN(2);
    if (m->status == TUTTI_OK)
        made(m, tutti_minimum(tutti_maximum(x, low), high));
}

/* 1 - erf(x) */
static void read_erfc(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0);
    if (m->status == TUTTI_OK)
        made(m, tutti_add_scalar(tutti_neg(tutti_erf(x)), 1));
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
    tutti_sym scale = tutti_scale(tutti_sub(high, low), 1 / (most - least));
    tutti_sym zero = tutti_sub(constant(low, least), tutti_div(low, scale));
    zero = tutti_floor(tutti_add_scalar(tutti_clip(zero, least, most), 0.5));
    low = tutti_mul(tutti_sub(constant(low, least), zero), scale);
    high = tutti_mul(tutti_sub(constant(low, most), zero), scale);
    x = tutti_minimum(tutti_maximum(x, low), high);
    x = tutti_floor(tutti_add_scalar(tutti_div(tutti_sub(x, low), scale), 0.5));
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
    tutti_sym logits = tutti_log_softmax_along(x, -1);
    made(m, tutti_neg(tutti_sum(tutti_mul(labels, logits), .axes = TUTTI_AXES(-1))));
    tutti__graphdef_give(
        m, 1, &(tutti_graphdef_value){.sym = tutti_sub(tutti_softmax_along(x, -1), labels)});
}

static void read_sparse_cross_entropy(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0), labels = IN(1);
    if (m->status == TUTTI_OK)
        made(m, tutti_sparse_cross_entropy_of(labels, x));
}

static void read_l2_loss(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0);
    if (m->status == TUTTI_OK)
        made(m, tutti_scale(tutti_sum(tutti_square(x)), 0.5));
}

/* ---- running sums ---- */

/* log sum of e^x is taken from the largest on, so that nothing overflows. */
static void read_cumulative(tutti_graphdef_import *m)
{
    tutti_axes axis;
    tutti_sym x = IN(0);
    bool exclusive = attr_int(m, "exclusive", 0), reverse = attr_int(m, "reverse", 0);
    if (m->status != TUTTI_OK || !tutti__graphdef_ints(m, 1, &axis) || axis.count != 1)
        return;
    int along = (int)axis.values[0];
    if (strcmp(m->node->op, "Cumprod") == 0) {
        made(m, tutti_cumprod(x, along, .exclusive = exclusive, .reverse = reverse));
        return;
    }
    if (strcmp(m->node->op, "Cumsum") == 0) {
        made(m, tutti_cumsum(x, along, .exclusive = exclusive, .reverse = reverse));
        return;
    }
    if (exclusive) {
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "leaves the element itself out");
        return;
    }
    tutti_sym most = tutti_max(x, .axes = TUTTI_AXES(along), .keep_dims = true);
    tutti_sym sum = tutti_cumsum(tutti_exp(tutti_sub(x, most)), along, .reverse = reverse);
    made(m, tutti_add(tutti_log(sum), most));
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
