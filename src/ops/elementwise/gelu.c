/* gelu(x): y = x * P(x), P the normal distribution function, P(x) = (1 + erf(x / sqrt 2)) / 2; or,
 * with approximate, P(x) ~ (1 + tanh(u)) / 2 with u = sqrt(2 / pi) * (x + 0.044715 * x^3). */
#include "ops/elementwise/elementwise.h"

#include <math.h>

#define ROOT 0.79788456080286535588 /* sqrt(2 / pi) */
#define CUBIC 0.044715
#define FAR 20

extern const tutti_op tutti_op_gelu;

tutti_sym tutti_gelu_with(tutti_sym x, const tutti_gelu_options *options)
{
    bool approximate = options != NULL && options->approximate;
    return TUTTI_NARY(&tutti_op_gelu, ((tutti_sym[]){x}), TUTTI_INT("approximate", approximate));
}

/* (1 + t) / 2 + x / 2 * (1 - t^2) * du, t = tanh(u), du = sqrt(2 / pi) * (1 + 3 * 0.044715 * x^2).
 * Beyond FAR t is 1 or -1 in every type, and x^2 may be infinite. */
static tutti_sym tanh_slope(tutti_sym x)
{
    x = tutti_clip(x, -FAR, FAR);
    tutti_sym xx = tutti_square(x);
    tutti_sym u = tutti_mul(x, tutti_add(tutti_mul(xx, ROOT * CUBIC), ROOT));
    tutti_sym du = tutti_add(tutti_mul(xx, 3 * ROOT * CUBIC), ROOT);
    tutti_sym t = tutti_tanh(u);
    tutti_sym below = tutti_mul(tutti_add(t, 1), 0.5);
    tutti_sym rest = tutti_add(tutti_neg(tutti_square(t)), 1);
    return tutti_add(below, tutti_mul(tutti_mul(x, 0.5), tutti_mul(rest, du)));
}

/* dx = dy * (slope of y at x) */
static tutti_status gelu_gradient(tutti_gradient_call *node)
{
    tutti_sym x = node->inputs[0];
    tutti_sym slope = RULE_INT(node, "approximate") ? tanh_slope(x) : tutti__gelu_slope(x);
    node->input_grads[0] = tutti_mul(node->output_grads[0], slope);
    return TUTTI_OK;
}

static double gelu_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    double v = x[0];
    if (tutti_attr_int(attrs, attr_count, "approximate"))
        return 0.5 * v * (1 + tanh(ROOT * (v + CUBIC * v * v * v)));
    double above = erfc(-v * M_SQRT1_2);
    return above == 0 ? -0.0 : 0.5 * v * above; /* of -inf too */
}

static const tutti_attr_spec attributes[] = {{"approximate", TUTTI_ATTR_INT, "false"}, {0}};

static const char *const samples[] = {
    "f32[2,3]{-3:3}",
    "f32[2,3]{-3:3} | approximate=true",
    "f64[5] | approximate=false",
    "f64[5] | approximate=true",
    "bf16[4]",
    "f32[]",
    NULL,
};

const tutti_op tutti_op_gelu = {
    .struct_size = sizeof(tutti_op),
    .name = "gelu",
    .version = 1,
    .doc = "gelu(x): y = x * (1 + erf(x / sqrt 2)) / 2, or by tanh when approximate",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .attrs = attributes,
    .infer = tutti__infer_float,
    .gradient = gelu_gradient,
    .cost = tutti__cost_transcendental,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = gelu_scalar,
    .samples = samples,
};
