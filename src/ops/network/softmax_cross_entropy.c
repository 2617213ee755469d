/* softmax_cross_entropy(logits, labels): y = -sum(labels * log_softmax(logits)) over the last axis.
 */
#include "ops/network/softmax.h"

extern const tutti_op tutti_op_softmax_cross_entropy;

enum { LOGITS, LABELS };

static tutti_status softmax_cross_entropy_infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__need_floats(node, 0, 2));
    return tutti__row_loss_infer(node, 1);
}

/* dlogits = (softmax(logits) sum(labels) - labels) dy, where the sum is 1 when labels are
 * probabilities; dlabels = -log_softmax(logits) dy. */
static tutti_status softmax_cross_entropy_gradient(tutti_gradient_call *node)
{
    tutti_sym logits = node->inputs[LOGITS], labels = node->inputs[LABELS];
    if (!tutti_sym_ok(node->output_grads[0]))
        return TUTTI_OK;
    tutti_sym grad = tutti_expand_dims(node->output_grads[0], -1);
    if (node->wanted[LOGITS]) {
        tutti_sym expected = tutti_mul(tutti_softmax(logits), tutti__sum_keeping(labels, -1));
        node->input_grads[LOGITS] = tutti_mul(tutti_sub(expected, labels), grad);
    }
    if (node->wanted[LABELS])
        node->input_grads[LABELS] = tutti_mul(tutti_neg(tutti_log_softmax(logits)), grad);
    return TUTTI_OK;
}

/* An element: maximum, difference, exponential, sum; difference, product, sum. */
static void softmax_cross_entropy_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_flops(node, (6 + EXP_FLOPS) * tutti__elements(&node->inputs[LOGITS]), ret);
}

/* A label of 0 adds nothing, also where the logit is -inf. */
static tutti_status softmax_cross_entropy_run(const tutti_kernel_call *call,
                                              const double *const *inputs, double *const *outputs,
                                              tutti_arena *scratch)
{
    int64_t rows, classes;
    tutti__row_loss_matrix(&call->inputs[LOGITS], &rows, &classes);
    for (int64_t row = 0; row < rows; row++) {
        const double *logits = inputs[LOGITS] + row * classes;
        const double *labels = inputs[LABELS] + row * classes;
        tutti_log_sum sum = tutti__log_sum_exp(classes, 1, logits);
        double loss = 0;
        for (int64_t c = 0; c < classes; c++)
            loss -= labels[c] == 0 ? 0 : labels[c] * tutti__log_share(logits[c], sum);
        outputs[0][row] = loss;
    }
    return TUTTI_OK;
}

static tutti_status softmax_cross_entropy_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, softmax_cross_entropy_run);
}

tutti_sym(tutti_nn_softmax_cross_entropy)(tutti_sym labels, tutti_sym logits)
{
    return tutti__binary(&tutti_op_softmax_cross_entropy, logits, labels);
}

static const char *const samples[] = {
    "f32[4,5]{-3:3} f32[4,5]{0.1:1}",
    "f32[2,3,4]{-3:3} f32[2,3,4]{0.1:1}",
    "f32[3]{-3:3} f32[3]{=0,1,0}",
    "f64[5,6]{-30:30} f64[5,6]",
    NULL,
};

const tutti_op tutti_op_softmax_cross_entropy = {
    .struct_size = sizeof(tutti_op),
    .name = "softmax_cross_entropy",
    .version = 1,
    .doc = "softmax_cross_entropy(logits, labels): y = -sum(labels * log_softmax(logits)) over the "
           "last axis",
    .category = "network",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .infer = softmax_cross_entropy_infer,
    .gradient = softmax_cross_entropy_gradient,
    .cost = softmax_cross_entropy_cost,
    .split = tutti__row_loss_split,
    .expand_on = tutti__softmax_cross_entropy_expand_on,
    .reference = softmax_cross_entropy_reference,
    .samples = samples,
};
