/* mape.c: absolute errors in per cent of the targets. */
#include "nn/losses/common.h"

static tutti_sym each(const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    (void)loss;
    tutti_sym size = tutti__at_least(tutti_abs(truth), TUTTI_LOSS_EPSILON);
    tutti_sym error = tutti_abs(tutti_div(tutti_sub(truth, guess), size));
    return tutti_mul(tutti__last_mean(error), 100);
}

const tutti_loss_def tutti_loss_mape = {
    .name = "mape",
    .doc = "100 mean(|y - p| / max(|y|, e))",
    .each = each,
};
