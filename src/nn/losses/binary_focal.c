/* binary_focal.c: binary cross-entropy that looks away from what is right already. */
#include "nn/losses/common.h"

static tutti_sym each(const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    double gamma = loss->gamma != 0 ? loss->gamma : 2;
    truth = tutti__smooth(truth, loss->label_smoothing, 0.5);
    tutti_sym p = loss->from_logits ? tutti_sigmoid(guess) : guess;
    tutti_sym not_truth = tutti_add(tutti_neg(truth), 1);
    tutti_sym not_p = tutti_add(tutti_neg(p), 1);
    tutti_sym cross = loss->from_logits ? tutti_nn_sigmoid_cross_entropy(truth, guess)
                                        : tutti__binary_cross(truth, p);
    /* 1 - t as y (1 - p) + (1 - y) p: nothing cancels. */
    tutti_sym missed = tutti_add(tutti_mul(truth, not_p), tutti_mul(not_truth, p));
    tutti_sym focal = tutti_mul(tutti_pow(missed, gamma), cross);
    if (loss->alpha != 0)
        focal = tutti_mul(
            focal, tutti_add(tutti_mul(truth, loss->alpha), tutti_mul(not_truth, 1 - loss->alpha)));
    return tutti__last_mean(focal);
}

const tutti_loss_def tutti_loss_binary_focal = {
    .name = "binary_focal",
    .doc =
        "mean(w (1 - t)^gamma c); c = binary cross-entropy, t = y p + (1 - y) (1 - p), w = y alpha + (1 - y) (1 - alpha)",
    .each = each,
};
