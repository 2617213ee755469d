/* random_uniform.c: numbers in [low, high). */
#include <float.h>

#include "ops/elementwise/elementwise.h"
#include "ops/random/random.h"

/* The largest number of a type of floats; 0 for others. */
static double largest(tutti_dtype dtype)
{
    return dtype == TUTTI_F16    ? 65504
           : dtype == TUTTI_BF16 ? 0x1.fep127
           : dtype == TUTTI_F32  ? FLT_MAX
           : dtype == TUTTI_F64  ? DBL_MAX
                                 : 0;
}

static tutti_status random_uniform_infer(tutti_infer *node)
{
    double low = RULE_FLOAT(node, "low"), high = RULE_FLOAT(node, "high");
    TUTTI_TRY(tutti__infer_random(node));
    if (node->outputs[0].dtype == TUTTI_BOOL)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "gives numbers; random bools: tutti_random_bernoulli");
    if (!(low < high) || !isfinite(low) || !isfinite(high))
        return RULE_FAIL(node, TUTTI_INVALID, "low %g must be below high %g, both finite", low,
                         high);
    double most = largest(node->outputs[0].dtype);
    if (most > 0 && (low < -most || high > most || high - low > most))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "%s has not all numbers of [%g, %g), or not their distance: at most %g",
                         tutti_dtype_name(node->outputs[0].dtype), low, high, most);
    if (tutti_dtype_is_int(node->outputs[0].dtype) &&
        (low != floor(low) || high != floor(high) || fabs(low) > 0x1p53 || fabs(high) > 0x1p53))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "bounds %g and %g of integers must be whole and below 2^53", low, high);
    if (tutti_dtype_is_int(node->outputs[0].dtype) &&
        (!tutti__integer_fits(low, node->outputs[0].dtype) ||
         !tutti__integer_fits(high - 1, node->outputs[0].dtype)))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "%s has not all numbers of [%g, %g); give closer bounds or another type",
                         tutti_dtype_name(node->outputs[0].dtype), low, high);
    return TUTTI_OK;
}

/* low + (high - low) u. Rounding may reach `high`, which is not in the range: `low` then. */
static void draw_float(const tutti_draw *draw, const tutti_view *out, int64_t i, double low,
                       double high)
{
    double unit = tutti__draw_unit(draw->key, tutti__draw_index(draw, i), out->dtype);
    tutti_view_set(out, i, low + (high - low) * unit);
    if (tutti_view_get(out, i) >= high)
        tutti_view_set(out, i, low);
}

static tutti_status random_uniform_reference(const tutti_kernel_call *call)
{
    const tutti_view *out = &call->outputs[0];
    double low = RULE_FLOAT(call, "low"), high = RULE_FLOAT(call, "high");
    bool ints = tutti_dtype_is_int(out->dtype);
    tutti_draw draw = tutti__draw_of(call, out);
    int64_t count = tutti_view_count(out), first = ints ? (int64_t)low : 0;
    uint64_t bound = ints ? (uint64_t)((int64_t)high - first) : 1;
    for (int64_t i = 0; i < count; i++) {
        if (ints)
            tutti_view_set_int(
                out, i,
                first + (int64_t)tutti__random_below(draw.key, tutti__draw_index(&draw, i), bound));
        else
            draw_float(&draw, out, i, low, high);
    }
    return TUTTI_OK;
}

static const tutti_attr_spec attrs[] = {
    {"dtype", TUTTI_ATTR_INT, "f32"}, {"dims", TUTTI_ATTR_INTS, "[]"}, TUTTI_RANDOM_ATTRS,
    {"low", TUTTI_ATTR_FLOAT, "0"},   {"high", TUTTI_ATTR_FLOAT, "1"}, {0},
};

static const char *const samples[] = {
    "i64[]{=3} | dims=[2,3]",
    "i64[]{=0} | dims=[] low=-2 high=5 seed=9",
    "i64[]{=1} | dims=[7] dtype=i32 low=-3 high=4",
    "i64[]{=2} f32[3,2] | dtype=bf16",
    NULL,
};

extern const tutti_op tutti_op_random_uniform;

tutti_sym tutti_random_uniform_with(tutti_graph *graph, double low, double high, tutti_type type,
                                    const tutti_random_options *options)
{
    tutti_attr given[] = {TUTTI_FLOAT("low", low), TUTTI_FLOAT("high", high)};
    return tutti__random_build_type(graph, &tutti_op_random_uniform, type, options, 2, given);
}

const tutti_op tutti_op_random_uniform = {
    .struct_size = sizeof(tutti_op),
    .name = "random_uniform",
    .version = 1,
    .doc = "random_uniform(counter): y = low + (high - low) u, u uniform in [0, 1)",
    .category = "random",
    .min_inputs = 1,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_RANDOM | TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = random_uniform_infer,
    .cost = tutti__cost_random,
    .split = tutti__split_random,
    .reference = random_uniform_reference,
    .samples = samples,
};
