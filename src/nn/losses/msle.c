/* msle.c: squared errors of logarithms. */
#include "nn/losses/common.h"

static tutti_sym each(const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    (void)loss;
    tutti_sym is = tutti_log1p(tutti__at_least(truth, TUTTI_LOSS_EPSILON));
    tutti_sym said = tutti_log1p(tutti__at_least(guess, TUTTI_LOSS_EPSILON));
    return tutti__last_mean(tutti_square(tutti_sub(said, is)));
}

const tutti_loss_def tutti_loss_msle = {
    .name = "msle",
    .doc = "mean((log(1 + max(y, e)) - log(1 + max(p, e)))^2)",
    .each = each,
};
