/* hinge.c: how far outputs fall short of the margin 1. Targets -1 or 1, or 0 or 1. */
#include "nn/losses/common.h"

static tutti_sym each(const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    (void)loss;
    tutti_sym margin = tutti_mul(tutti__hinge_targets(truth), guess);
    return tutti__last_mean(tutti_relu(tutti_add(tutti_neg(margin), 1)));
}

const tutti_loss_def tutti_loss_hinge = {
    .name = "hinge",
    .doc = "mean(max(1 - y p, 0))",
    .each = each,
};
