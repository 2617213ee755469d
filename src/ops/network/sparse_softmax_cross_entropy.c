/* sparse_softmax_cross_entropy(logits, labels): y = -log_softmax(logits)[label] over the last axis.
 */
#include "ops/composite.h"
#include "ops/network/sparse_cross_entropy.h"

extern const tutti_op tutti_op_sparse_softmax_cross_entropy;

enum { LOGITS, LABELS };

static tutti_status sparse_softmax_cross_entropy_infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__labels_infer(node));
    return tutti__row_loss_infer(node, 0);
}

static tutti_status sparse_softmax_cross_entropy_gradient(tutti_gradient_call *node)
{
    tutti_sym inputs[] = {node->inputs[LOGITS], node->inputs[LABELS], node->output_grads[0]};
    if (tutti_sym_ok(inputs[2]) && node->wanted[LOGITS])
        node->input_grads[LOGITS] = tutti_apply_op(
            node->graph, "sparse_softmax_cross_entropy_backward", 3, inputs, 0, NULL);
    return TUTTI_OK;
}

/* An element: maximum, difference, exponential, sum. */
static void sparse_softmax_cross_entropy_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_flops(node, (3 + EXP_FLOPS) * tutti__elements(&node->inputs[LOGITS]), ret);
}

static tutti_status sparse_softmax_cross_entropy_run(const tutti_kernel_call *call,
                                                     const double *const *inputs,
                                                     double *const *outputs, tutti_arena *scratch)
{
    int64_t rows, classes;
    tutti__row_loss_matrix(&call->inputs[LOGITS], &rows, &classes);
    for (int64_t row = 0; row < rows; row++) {
        int64_t label = 0;
        const double *logits = inputs[LOGITS] + row * classes;
        TUTTI_TRY(tutti__label_get(call, row, classes, &label));
        outputs[0][row] =
            0 - tutti__log_share(logits[label], tutti__log_sum_exp(classes, 1, logits));
    }
    return TUTTI_OK;
}

static tutti_status sparse_softmax_cross_entropy_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, sparse_softmax_cross_entropy_run);
}

tutti_sym(tutti_nn_sparse_cross_entropy)(tutti_sym labels, tutti_sym logits)
{
    return tutti__binary(&tutti_op_sparse_softmax_cross_entropy, logits, labels);
}

static const char *const samples[] = {
    "f32[4,5]{-3:3} i32[4]{=0,4,2,2}",
    "f32[2,3,4]{-3:3} i64[2,3]{0:3}",
    "f32[3]{-3:3} i32[]{=1}",
    "f64[5,6]{-30:30} i64[5]{0:3}",
    NULL,
};

const tutti_op tutti_op_sparse_softmax_cross_entropy = {
    .struct_size = sizeof(tutti_op),
    .name = "sparse_softmax_cross_entropy",
    .version = 1,
    .doc = "sparse_softmax_cross_entropy(logits, labels): y = -log_softmax(logits)[label] over the "
           "last axis",
    .category = "network",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_FALLIBLE,
    .infer = sparse_softmax_cross_entropy_infer,
    .gradient = sparse_softmax_cross_entropy_gradient,
    .cost = sparse_softmax_cross_entropy_cost,
    .split = tutti__row_loss_split,
    .expand_on = tutti__sparse_cross_entropy_expand_on,
    .reference = sparse_softmax_cross_entropy_reference,
    .samples = samples,
};

const tutti_composite tutti_composite_sparse_cross_entropy = {
    .name = "sparse_cross_entropy",
    .category = "network",
    .doc = "sparse_cross_entropy(labels, logits): -log softmax(logits)[label]",
    .made_of = "sparse_softmax_cross_entropy",
};
