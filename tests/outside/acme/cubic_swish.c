/* acme.cubic_swish(x, alpha): y = (x + alpha x^3) sigmoid(x). */
#include "inside.h"

#include <math.h>

tutti_sym(acme_swish)(tutti_sym x, double alpha)
{
    return tutti_apply_op(tutti_sym_graph(x), "acme.cubic_swish", 1, &x, 1,
                          &TUTTI_FLOAT("alpha", alpha));
}

static tutti_status infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    double alpha = tutti_attr_float(node->attrs, node->attr_count, "alpha");
    if (!tutti_dtype_is_float(node->inputs[0].dtype))
        return ACME_FAIL(node, TUTTI_INVALID, "x is %s, needs floats; convert it with tutti_cast",
                         tutti_type_text(&node->inputs[0], text));
    if (!(alpha >= 0))
        return ACME_FAIL(node, TUTTI_INVALID, "alpha is %g, must be 0 or more", alpha);
    return tutti_infer_same(node);
}

/* s = sigmoid(x): dx = dy ((1 + 3 alpha x^2) s + (x + alpha x^3) s (1 - s)) */
static tutti_status gradient(tutti_gradient_call *node)
{
    double alpha = tutti_attr_float(node->attrs, node->attr_count, "alpha");
    tutti_sym x = node->inputs[0], square = tutti_square(x), s = tutti_sigmoid(x);
    tutti_sym cubic = tutti_mul(x, tutti_add(tutti_mul(square, alpha), 1));
    tutti_sym slope = tutti_add(tutti_mul(square, 3 * alpha), 1);
    tutti_sym rest = tutti_mul(cubic, tutti_add(tutti_neg(s), 1));
    node->input_grads[0] = tutti_mul(node->output_grads[0], tutti_mul(s, tutti_add(slope, rest)));
    return TUTTI_OK;
}

static void cost(const tutti_infer *node, tutti_cost *ret_cost)
{
    double count = (double)tutti_type_count(&node->inputs[0]);
    double bytes = count * (double)tutti_dtype_size(node->inputs[0].dtype);
    *ret_cost = (tutti_cost){.flops = 22 * count, .bytes_read = bytes, .bytes_written = bytes};
}

static double scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    double alpha = tutti_attr_float(attrs, attr_count, "alpha");
    return (x[0] + alpha * x[0] * x[0] * x[0]) / (1 + exp(-x[0]));
}

static const tutti_attr_spec attributes[] = {{"alpha", TUTTI_ATTR_FLOAT, "0.1"}, {0}};

static const char *const samples[] = {
    "f32[2,3]",
    "f32[5,4]{-3:3} | alpha=0.5",
    "f64[7]{-2:2} | alpha=0",
    "f32[]",
    "f16[6]",
    "bf16[6]",
    NULL,
};

const tutti_op acme_cubic_swish = {
    .struct_size = sizeof(tutti_op),
    .name = "acme.cubic_swish",
    .version = 1,
    .doc = "acme.cubic_swish(x, alpha): y = (x + alpha x^3) sigmoid(x)",
    .category = "acme",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .attrs = attributes,
    .infer = infer,
    .gradient = gradient,
    .cost = cost,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = scalar,
    .samples = samples,
};
