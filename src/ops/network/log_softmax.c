/* log_softmax(x): y = x - log(sum(exp(x))) along an axis. */
#include "ops/network/softmax.h"

extern const tutti_op tutti_op_log_softmax;

/* dx = dy - exp(y) sum(dy) */
static tutti_status log_softmax_gradient(tutti_gradient_call *node)
{
    tutti_sym y = node->outputs[0], grad = node->output_grads[0];
    if (!tutti_sym_ok(grad) || !node->wanted[0])
        return TUTTI_OK;
    tutti_sym sum = tutti__sum_keeping(grad, (int)RULE_INT(node, "axis"));
    node->input_grads[0] = tutti_sub(grad, tutti_mul(tutti_exp(y), sum));
    return TUTTI_OK;
}

/* An element: maximum, two differences, exponential, sum. */
static void log_softmax_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_flops(node, (4 + EXP_FLOPS) * tutti__elements(&node->inputs[0]), ret);
}

static double each(double log_share)
{
    return log_share;
}

static tutti_status log_softmax_run(const tutti_kernel_call *call, const double *const *inputs,
                                    double *const *outputs, tutti_arena *scratch)
{
    return tutti__softmax_run(call, inputs[0], outputs[0], each);
}

static tutti_status log_softmax_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, log_softmax_run);
}

tutti_sym tutti_log_softmax_with(tutti_sym x, const tutti_softmax_options *given)
{
    TAKE_OPTIONS(tutti_softmax_options, options, given);
    return tutti__softmax_along(&tutti_op_log_softmax, x, &options.axes);
}

static const tutti_attr_spec attrs[] = {{"axis", TUTTI_ATTR_INT, "-1"},
                                        {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[4,5]{-3:3}",
    "f32[2,4,3]{-3:3} | axis=1",
    "f32[3,5]{-3:3} | axis=0",
    "f64[6]{-30:30}",
    NULL,
};

const tutti_op tutti_op_log_softmax = {
    .struct_size = sizeof(tutti_op),
    .name = "log_softmax",
    .version = 1,
    .doc = "log_softmax(x): y = x - log(sum(exp(x))) along an axis",
    .category = "network",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .infer = tutti__softmax_infer,
    .gradient = log_softmax_gradient,
    .cost = log_softmax_cost,
    .split = tutti__softmax_split,
    .expand_on = tutti__log_softmax_expand_on,
    .reference = log_softmax_reference,
    .samples = samples,
};
