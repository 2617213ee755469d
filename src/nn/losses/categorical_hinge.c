/* categorical_hinge.c: the right class leads every other by a margin of 1. */
#include "nn/losses/common.h"

static tutti_sym each(const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    (void)loss;
    tutti_sym right = tutti_sum(tutti_mul(truth, guess), .axes = TUTTI_AXES(-1));
    tutti_sym others = tutti_mul(tutti_add(tutti_neg(truth), 1), guess);
    tutti_sym wrong = tutti_max(others, .axes = TUTTI_AXES(-1));
    return tutti_relu(tutti_add(tutti_sub(wrong, right), 1));
}

const tutti_loss_def tutti_loss_categorical_hinge = {
    .name = "categorical_hinge",
    .doc = "max(max((1 - y) p) - sum(y p) + 1, 0)",
    .each = each,
};
