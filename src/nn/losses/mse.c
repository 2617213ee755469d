/* mse.c: the mean of squared errors. */
#include "nn/losses/common.h"

static tutti_sym each(const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    (void)loss;
    return tutti__last_mean(tutti_square(tutti_sub(guess, truth)));
}

const tutti_loss_def tutti_loss_mse = {
    .name = "mse",
    .doc = "mean((y - p)^2)",
    .each = each,
};
