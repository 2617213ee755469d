/* sparse_cross_entropy.c: -log of the probability that the outputs give to the right class. */
#include "nn/losses/loss.h"

static tutti_sym each(const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    tutti_sym logits = loss->from_logits ? guess : tutti_log(tutti_clip(guess, 1e-7, 1 - 1e-7));
    tutti_sym cross = tutti_nn_sparse_cross_entropy(truth, logits);
    if (loss->label_smoothing == 0)
        return cross;
    /* The uniform part: -mean over classes of log softmax. */
    tutti_sym uniform = tutti_neg(tutti_mean(tutti_log_softmax(logits), .axes = TUTTI_AXES(-1)));
    return tutti_add(tutti_mul(cross, 1 - loss->label_smoothing),
                     tutti_mul(uniform, loss->label_smoothing));
}

const tutti_loss_def tutti_loss_sparse_cross_entropy = {
    .name = "sparse_cross_entropy",
    .doc = "-log p[class]; p = softmax(outputs) from logits",
    .classes = true,
    .each = each,
};
