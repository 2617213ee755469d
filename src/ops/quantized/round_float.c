/* round_float(x): the nearest number that a small float has, halves to the even one:
 * mantissa bits behind the first, exponents from `least` on (below it numbers are evenly spaced),
 * nothing above `most`. The gradient is zero. */
#include "ops/elementwise/elementwise.h"
#include "ops/shape/rule.h"

#include <math.h>
#include <string.h>

extern const tutti_op tutti_op_round_float;

tutti_sym tutti_round_float_with(tutti_sym x, const tutti_round_float_options *options)
{
    RULE_OPTIONS(tutti_round_float_options, o, options);
    return TUTTI_NARY(&tutti_op_round_float, ((tutti_sym[]){x}), TUTTI_INT("mantissa", o.mantissa),
                      TUTTI_INT("least", o.least), TUTTI_FLOAT("most", o.most),
                      TUTTI_INT("saturate", o.saturate), TUTTI_INT("infinite", o.infinite));
}

/* Within what a double has: 52 bits, exponents from -1074 to 1023. */
static tutti_status round_float_infer(tutti_infer *node)
{
    int64_t mantissa = RULE_INT(node, "mantissa"), least = RULE_INT(node, "least");
    if (mantissa < 0 || mantissa > 52)
        return RULE_FAIL(node, TUTTI_INVALID, "mantissa is %lld, needs 0 to 52 bits",
                         (long long)mantissa);
    if (least < -1074 || least > 1023)
        return RULE_FAIL(node, TUTTI_INVALID, "least is %lld, needs an exponent of -1074 to 1023",
                         (long long)least);
    return tutti__infer_float(node);
}

static double round_float_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    int exponent, least = (int)tutti_attr_int(attrs, attr_count, "least");
    int mantissa = (int)tutti_attr_int(attrs, attr_count, "mantissa");
    double most = tutti_attr_float(attrs, attr_count, "most"), size = fabs(x[0]);
    if (isnan(size) || size == 0)
        return x[0];
    if (isfinite(size)) {
        frexp(size, &exponent); /* size = f 2^exponent, f in [1/2, 1) */
        double unit = ldexp(1, (exponent - 1 > least ? exponent - 1 : least) - mantissa);
        size = nearbyint(size / unit) * unit;
    }
    if (size > most) {
        bool infinite = tutti_attr_int(attrs, attr_count, "infinite") != 0;
        size = tutti_attr_int(attrs, attr_count, "saturate") != 0 ? most
               : infinite                                         ? INFINITY
                                                                  : NAN;
    }
    return copysign(size, x[0]);
}

static const tutti_attr_spec attributes[] = {
    {"mantissa", TUTTI_ATTR_INT, "3"},     {"least", TUTTI_ATTR_INT, "-6"},
    {"most", TUTTI_ATTR_FLOAT, "448"},     {"saturate", TUTTI_ATTR_INT, "true"},
    {"infinite", TUTTI_ATTR_INT, "false"}, {0}};

static const char *const samples[] = {
    "f32[2,3]{-500:500}",
    "f32[6]{=1.0625,1.1875,0.001,-0.0009,470,-1e9}",
    "f64[5]{-70000:70000} | mantissa=2 least=-14 most=57344 saturate=false infinite=true",
    "f16[4]{-9:9} | mantissa=1 least=0 most=6",
    NULL,
};

const tutti_op tutti_op_round_float = {
    .struct_size = sizeof(tutti_op),
    .name = "round_float",
    .version = 1,
    .doc =
        "round_float(x; mantissa, least, most, saturate, infinite): the nearest number of a float "
        "with so many bits of mantissa, least exponent and largest value, halves to even",
    .category = "quantized",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE | TUTTI_OP_NO_GRADIENT,
    .attrs = attributes,
    .infer = round_float_infer,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = round_float_scalar,
    .samples = samples,
};
