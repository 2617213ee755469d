/* mae.c: the mean of absolute errors. */
#include "nn/losses/common.h"

static tutti_sym each(const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    (void)loss;
    return tutti__last_mean(tutti_abs(tutti_sub(guess, truth)));
}

const tutti_loss_def tutti_loss_mae = {
    .name = "mae",
    .doc = "mean(|y - p|)",
    .each = each,
};
