/* poisson.c: outputs are the rates of counts. */
#include "nn/losses/common.h"

static tutti_sym each(const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    (void)loss;
    tutti_sym likely = tutti_mul(truth, tutti_log(tutti_add(guess, TUTTI_LOSS_EPSILON)));
    return tutti__last_mean(tutti_sub(guess, likely));
}

const tutti_loss_def tutti_loss_poisson = {
    .name = "poisson",
    .doc = "mean(p - y log(p + e))",
    .each = each,
};
