/* leaky_relu(x, alpha): y = x where x > 0, else alpha * x. */
#include "ops/elementwise/elementwise.h"

extern const tutti_op tutti_op_leaky_relu;

tutti_sym(tutti_leaky_relu)(tutti_sym x, double alpha)
{
    return TUTTI_NARY(&tutti_op_leaky_relu, ((tutti_sym[]){x}), TUTTI_FLOAT("alpha", alpha));
}

/* dx = dy where x > 0, else alpha * dy */
static tutti_status leaky_relu_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], x = node->inputs[0];
    tutti_sym right = tutti_greater(x, 0);
    node->input_grads[0] = tutti_where(right, dy, tutti_mul(dy, RULE_FLOAT(node, "alpha")));
    return TUTTI_OK;
}

static double leaky_relu_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] > 0 ? x[0] : tutti_attr_float(attrs, attr_count, "alpha") * x[0];
}

static const tutti_attr_spec attributes[] = {{"alpha", TUTTI_ATTR_FLOAT, "0.2"}, {0}};

static const char *const samples[] = {
    "f32[2,3]", "f32[4,5]{-3:3} | alpha=0.01", "f64[5] | alpha=-0.5", "bf16[4]", NULL,
};

const tutti_op tutti_op_leaky_relu = {
    .struct_size = sizeof(tutti_op),
    .name = "leaky_relu",
    .version = 1,
    .doc = "leaky_relu(x, alpha): y = x where x > 0, else alpha * x",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .attrs = attributes,
    .infer = tutti__infer_float,
    .gradient = leaky_relu_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = leaky_relu_scalar,
    .samples = samples,
};
