/* sigmoid_cross_entropy(logits, labels): y = |x| w + log(1 + exp(-|x|)) of logits x and labels z,
 * where w is what of the label x is wrong about: 1 - z for x > 0, else z. It equals max(x, 0) - x z
 * + log(1 + exp(-|x|)) and -(z log(sigmoid(x)) + (1 - z) log(1 - sigmoid(x))). */
#include "ops/network/softmax.h"

extern const tutti_op tutti_op_sigmoid_cross_entropy;

static tutti_status sigmoid_cross_entropy_infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__need_floats(node, 0, 2));
    return tutti_infer_broadcast(node);
}

/* dx = (sigmoid(x) - z) dy, dz = -x dy */
static tutti_status sigmoid_cross_entropy_gradient(tutti_gradient_call *node)
{
    tutti_sym x = node->inputs[0], z = node->inputs[1], grad = node->output_grads[0];
    if (!tutti_sym_ok(grad))
        return TUTTI_OK;
    if (node->wanted[0])
        node->input_grads[0] =
            tutti_unbroadcast(tutti_mul(tutti_sub(tutti_sigmoid(x), z), grad), x);
    if (node->wanted[1])
        node->input_grads[1] = tutti_unbroadcast(tutti_neg(tutti_mul(x, grad)), z);
    return TUTTI_OK;
}

/* An element: an exponential, a logarithm, 5 more. */
static void sigmoid_cross_entropy_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_flops(node, (5 + 2 * EXP_FLOPS) * tutti__elements(&node->outputs[0]), ret);
}

/* Infinite logits that are right lose nothing: their 0 times infinity is 0. */
static double sigmoid_cross_entropy_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    double size = fabs(x[0]), wrong = x[0] > 0 ? 1 - x[1] : x[1];
    return (wrong == 0 ? 0 : size * wrong) + log1p(exp(-size));
}

tutti_sym(tutti_nn_sigmoid_cross_entropy)(tutti_sym labels, tutti_sym logits)
{
    return tutti__binary(&tutti_op_sigmoid_cross_entropy, logits, labels);
}

static const char *const samples[] = {
    "f32[3,4]{-3:3} f32[3,4]{0.1:0.9}",
    "f32[2,5]{-3:3} f32[5]{0.1:0.9}",
    "f32[4]{=-30,-2,2,30} f32[4]{=1,0,1,0}",
    "f64[2,3] f64[]{=0.5}",
    NULL,
};

const tutti_op tutti_op_sigmoid_cross_entropy = {
    .struct_size = sizeof(tutti_op),
    .name = "sigmoid_cross_entropy",
    .version = 1,
    .doc = "sigmoid_cross_entropy(x, z): y = max(x, 0) - x z + log(1 + exp(-|x|))",
    .category = "network",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = sigmoid_cross_entropy_infer,
    .gradient = sigmoid_cross_entropy_gradient,
    .cost = sigmoid_cross_entropy_cost,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = sigmoid_cross_entropy_scalar,
    .samples = samples,
};
