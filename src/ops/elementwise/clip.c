/* clip(x, min, max): y = min(max(x, min), max). NaN stays NaN, -0 with min 0 becomes 0. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_clip;

tutti_sym(tutti_clip)(tutti_sym x, double min, double max)
{
    return TUTTI_NARY(&tutti_op_clip, ((tutti_sym[]){x}), TUTTI_FLOAT("min", min),
                      TUTTI_FLOAT("max", max));
}

static tutti_status clip_infer(tutti_infer *node)
{
    double min = RULE_FLOAT(node, "min"), max = RULE_FLOAT(node, "max");
    if (!(min <= max))
        return RULE_FAIL(node, TUTTI_INVALID, "min is %g and max is %g; needs min <= max", min,
                         max);
    return tutti__infer_number(node);
}

/* dx = dy where min <= x <= max, else 0 */
static tutti_status clip_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], x = node->inputs[0];
    tutti_sym above = tutti_greater_equal(x, RULE_FLOAT(node, "min"));
    tutti_sym below = tutti_less_equal(x, RULE_FLOAT(node, "max"));
    node->input_grads[0] = tutti_where(tutti_logical_and(above, below), dy, 0);
    return TUTTI_OK;
}

static double clip_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    double min = tutti_attr_float(attrs, attr_count, "min");
    double max = tutti_attr_float(attrs, attr_count, "max");
    return x[0] <= min ? min : x[0] > max ? max : x[0];
}

/* A bound as an integer; beyond 64 bits it is none. */
static int64_t bound(double value)
{
    return value >= 0x1p63 ? INT64_MAX : value <= -0x1p63 ? INT64_MIN : (int64_t)value;
}

static int64_t clip_scalar_int(const int64_t *x, const tutti_attr *attrs, int attr_count)
{
    int64_t min = bound(ceil(tutti_attr_float(attrs, attr_count, "min")));
    int64_t max = bound(floor(tutti_attr_float(attrs, attr_count, "max")));
    return x[0] < min ? min : x[0] > max ? max : x[0];
}

static const tutti_attr_spec attributes[] = {
    {"min", TUTTI_ATTR_FLOAT, NULL},
    {"max", TUTTI_ATTR_FLOAT, NULL},
    {0},
};

static const char *const samples[] = {
    "f32[2,3]{=-2,-0.3,0.1,0.4,0.9,3} | min=-0.5 max=0.5",
    "f64[4]{=-1,0.5,1.5,2.5} | min=0 max=2",
    "f16[3]{=-1,0.5,4} | min=-0.25 max=inf",
    "i32[2,3]{-9:10} | min=-2.5 max=4.5",
    "f32[]{=7} | min=-1 max=1",
    NULL,
};

const tutti_op tutti_op_clip = {
    .struct_size = sizeof(tutti_op),
    .name = "clip",
    .version = 1,
    .doc = "clip(x, min, max): y = min(max(x, min), max)",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .attrs = attributes,
    .infer = clip_infer,
    .gradient = clip_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = clip_scalar,
    .scalar_int = clip_scalar_int,
    .samples = samples,
};
