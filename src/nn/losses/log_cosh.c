/* log_cosh.c: about d^2 / 2 for small errors, |d| - log 2 for large ones. */
#include "nn/losses/common.h"

static tutti_sym each(const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    (void)loss;
    tutti_sym error = tutti_sub(guess, truth);
    tutti_sym bend = tutti_softplus(tutti_mul(error, -2));
    return tutti__last_mean(tutti_add(tutti_add(error, bend), -0.69314718055994531));
}

const tutti_loss_def tutti_loss_log_cosh = {
    .name = "log_cosh",
    .doc = "mean(log(cosh(d))), as d + softplus(-2 d) - log 2; d = p - y",
    .each = each,
};
