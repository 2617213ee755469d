/* cross_entropy.c: -log of the probability that the outputs give to the targets. */
#include "nn/losses/common.h"

static tutti_sym each(const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    if (loss->label_smoothing != 0) {
        tutti_type type = tutti_sym_type(guess);
        int64_t classes = type.rank > 0 ? type.dims[type.rank - 1] : TUTTI_ANY;
        if (classes < 1)
            return tutti__poison(guess.node->graph, TUTTI_INVALID,
                                 "cross_entropy: label smoothing needs outputs whose number of "
                                 "classes is known");
        truth = tutti__smooth(truth, loss->label_smoothing, 1 / (double)classes);
    }
    if (loss->from_logits)
        return tutti_nn_softmax_cross_entropy(truth, guess);
    tutti_sym all = tutti_sum(guess, .axes = TUTTI_AXES(-1), .keepdims = true);
    tutti_sym p = tutti_clip(tutti_div(guess, all), TUTTI_LOSS_EPSILON, 1 - TUTTI_LOSS_EPSILON);
    return tutti_neg(tutti__last_sum(tutti_mul(truth, tutti_log(p))));
}

const tutti_loss_def tutti_loss_cross_entropy = {
    .name = "cross_entropy",
    .doc =
        "-sum(y log p); p = softmax(outputs) from logits, else outputs / sum, held in [e, 1 - e]",
    .each = each,
};
