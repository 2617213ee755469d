/* kl_divergence.c: how far the outputs are from the targets, both as probabilities. */
#include "nn/losses/common.h"

static tutti_sym each(const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    (void)loss;
    tutti_sym is = tutti_clip(truth, TUTTI_LOSS_EPSILON, 1);
    tutti_sym said = tutti_clip(guess, TUTTI_LOSS_EPSILON, 1);
    return tutti__last_sum(tutti_mul(is, tutti_log(tutti_div(is, said))));
}

const tutti_loss_def tutti_loss_kl_divergence = {
    .name = "kl_divergence",
    .doc = "sum(y log(y / p)), both held in [e, 1]",
    .each = each,
};
