/* binary_cross_entropy.c: -log of the probability of each target, 0 or 1. */
#include "nn/losses/common.h"

static tutti_sym each(const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    truth = tutti__smooth(truth, loss->label_smoothing, 0.5);
    if (loss->from_logits)
        return tutti__last_mean(tutti_nn_sigmoid_cross_entropy(truth, guess));
    return tutti__last_mean(tutti__binary_cross(truth, guess));
}

const tutti_loss_def tutti_loss_binary_cross_entropy = {
    .name = "binary_cross_entropy",
    .doc =
        "-mean(y log p + (1 - y) log(1 - p)); p = sigmoid(outputs) from logits, else held in [e, 1 - e]",
    .each = each,
};
