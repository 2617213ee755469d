/* elu(x, alpha): y = x where x > 0, else alpha * (e^x - 1). */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_elu;

tutti_sym(tutti_elu)(tutti_sym x, double alpha)
{
    return TUTTI_NARY(&tutti_op_elu, ((tutti_sym[]){x}), TUTTI_FLOAT("alpha", alpha));
}

/* dx = dy where x > 0, else dy * (y + alpha). For alpha >= 0 the output has the input's sign, so
 * the input need not be kept. */
static tutti_status elu_gradient(tutti_gradient_call *node)
{
    double alpha = RULE_FLOAT(node, "alpha");
    tutti_sym dy = node->output_grads[0], y = node->outputs[0];
    tutti_sym side = alpha >= 0 ? y : node->inputs[0];
    tutti_sym right = tutti_greater(side, 0);
    node->input_grads[0] = tutti_where(right, dy, tutti_mul(dy, tutti_add(y, alpha)));
    return TUTTI_OK;
}

static double elu_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] > 0 ? x[0] : tutti_attr_float(attrs, attr_count, "alpha") * expm1(x[0]);
}

static const tutti_attr_spec attributes[] = {{"alpha", TUTTI_ATTR_FLOAT, "1"}, {0}};

static const char *const samples[] = {
    "f32[2,3]{-3:3}", "f32[4,5] | alpha=0.3", "f64[5] | alpha=-0.5", "bf16[4]", NULL,
};

const tutti_op tutti_op_elu = {
    .struct_size = sizeof(tutti_op),
    .name = "elu",
    .version = 1,
    .doc = "elu(x, alpha): y = x where x > 0, else alpha * (e^x - 1)",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .attrs = attributes,
    .infer = tutti__infer_float,
    .gradient = elu_gradient,
    .cost = tutti__cost_transcendental,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = elu_scalar,
    .samples = samples,
};
