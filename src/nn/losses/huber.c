/* huber.c: squared errors up to delta, absolute errors beyond. */
#include "nn/losses/common.h"

static tutti_sym each(const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    double delta = loss->delta != 0 ? loss->delta : 1;
    tutti_sym error = tutti_sub(guess, truth), size = tutti_abs(error);
    tutti_sym near = tutti_mul(tutti_square(error), 0.5);
    tutti_sym far = tutti_add(tutti_mul(size, delta), -0.5 * delta * delta);
    tutti_sym is_near = tutti_less_equal(size, delta);
    return tutti__last_mean(tutti_where(is_near, near, far));
}

const tutti_loss_def tutti_loss_huber = {
    .name = "huber",
    .doc = "mean(|d| <= delta ? d^2 / 2 : delta |d| - delta^2 / 2); d = y - p",
    .each = each,
};
