/* sparse_softmax_cross_entropy_backward(logits, labels[, grad]): dlogits = (softmax(logits) -
 * one_hot(label)) * grad, where grad has one number for each row; without it, 1. */
#include "ops/network/sparse_cross_entropy.h"

extern const tutti_op tutti_op_sparse_softmax_cross_entropy_backward;

enum { LOGITS, LABELS, GRAD };

static tutti_status sparse_softmax_cross_entropy_backward_infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__labels_infer(node));
    TUTTI_TRY(tutti__row_loss_infer(node, 0));
    if (node->input_count > GRAD) {
        TUTTI_TRY(tutti__need_floats(node, GRAD, 1));
        TUTTI_TRY(tutti__need_like(node, GRAD, "grad", &node->outputs[0]));
        if (node->inputs[GRAD].dtype != node->inputs[LOGITS].dtype)
            return RULE_FAIL(node, TUTTI_INVALID, "grad is %s, logits are %s; they must agree",
                             tutti_dtype_name(node->inputs[GRAD].dtype),
                             tutti_dtype_name(node->inputs[LOGITS].dtype));
    }
    return tutti_infer_same(node);
}

/* With p = softmax(logits) and u the gradient of the output: d grad = sum(u (p - one_hot)), and
 * d logits = grad p (u - sum(u p)). */
static tutti_status sparse_softmax_cross_entropy_backward_gradient(tutti_gradient_call *node)
{
    tutti_sym logits = node->inputs[LOGITS], u = node->output_grads[0];
    if (!tutti_sym_ok(u))
        return TUTTI_OK;
    if (node->wanted[LOGITS]) {
        tutti_sym p = tutti_softmax(logits);
        tutti_sym rest = tutti_sub(u, tutti__sum_keeping(tutti_mul(u, p), -1));
        tutti_sym result = tutti_mul(p, rest);
        if (node->input_count > GRAD)
            result = tutti_mul(result, tutti_expand_dims(node->inputs[GRAD], -1));
        node->input_grads[LOGITS] = result;
    }
    if (node->input_count > GRAD && node->wanted[GRAD]) {
        tutti_sym difference = tutti__binary(&tutti_op_sparse_softmax_cross_entropy_backward,
                                             logits, node->inputs[LABELS]);
        node->input_grads[GRAD] = tutti_sum(tutti_mul(u, difference), .axes = TUTTI_AXES(-1));
    }
    return TUTTI_OK;
}

/* An element: maximum, difference, exponential, sum, quotient, product. */
static void sparse_softmax_cross_entropy_backward_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_flops(node, (5 + EXP_FLOPS) * tutti__elements(&node->inputs[LOGITS]), ret);
}

static tutti_status sparse_softmax_cross_entropy_backward_run(const tutti_kernel_call *call,
                                                              const double *const *inputs,
                                                              double *const *outputs,
                                                              tutti_arena *scratch)
{
    int64_t rows, classes;
    tutti__row_loss_matrix(&call->inputs[LOGITS], &rows, &classes);
    for (int64_t row = 0; row < rows; row++) {
        int64_t label = 0;
        const double *logits = inputs[LOGITS] + row * classes;
        double *result = outputs[0] + row * classes;
        TUTTI_TRY(tutti__label_get(call, row, classes, &label));
        tutti_log_sum sum = tutti__log_sum_exp(classes, 1, logits);
        if (isinf(sum.highest))
            sum.rest = (double)NAN; /* as softmax: infinity over infinity, for the whole row */
        double grad = call->input_count > GRAD ? inputs[GRAD][row] : 1;
        for (int64_t c = 0; c < classes; c++)
            result[c] = (exp(tutti__log_share(logits[c], sum)) - (c == label ? 1 : 0)) * grad;
    }
    return TUTTI_OK;
}

static tutti_status sparse_softmax_cross_entropy_backward_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, sparse_softmax_cross_entropy_backward_run);
}

static const char *const samples[] = {
    "f32[4,5]{-3:3} i32[4]{=0,4,2,2} f32[4]",
    "f32[2,3,4]{-3:3} i64[2,3]{0:3} f32[2,3]",
    "f32[3,4]{-3:3} i32[3]{0:3}",
    "f64[5,6]{-3:3} i64[5]{0:3} f64[5]",
    NULL,
};

const tutti_op tutti_op_sparse_softmax_cross_entropy_backward = {
    .struct_size = sizeof(tutti_op),
    .name = "sparse_softmax_cross_entropy_backward",
    .version = 1,
    .doc = "sparse_softmax_cross_entropy_backward(logits, labels[, grad]): "
           "dlogits = (softmax(logits) - one_hot(label)) * grad; without grad, times 1",
    .category = "network",
    .min_inputs = 2,
    .max_inputs = 3,
    .outputs = 1,
    .flags = TUTTI_OP_FALLIBLE,
    .infer = sparse_softmax_cross_entropy_backward_infer,
    .gradient = sparse_softmax_cross_entropy_backward_gradient,
    .cost = sparse_softmax_cross_entropy_backward_cost,
    .split = tutti__row_loss_split,
    .expand_on = tutti__sparse_cross_entropy_backward_expand_on,
    .reference = sparse_softmax_cross_entropy_backward_reference,
    .samples = samples,
};
