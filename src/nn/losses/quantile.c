/* quantile.c: the loss whose least expectation is the quantile q. */
#include "nn/losses/common.h"

static tutti_sym each(const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    double q = loss->quantile != 0 ? loss->quantile : 0.5;
    tutti_sym error = tutti_sub(truth, guess);
    return tutti__last_mean(tutti_maximum(tutti_mul(error, q), tutti_mul(error, q - 1)));
}

const tutti_loss_def tutti_loss_quantile = {
    .name = "quantile",
    .doc = "mean(max(q d, (q - 1) d)); d = y - p",
    .each = each,
};
