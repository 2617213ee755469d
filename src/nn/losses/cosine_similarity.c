/* cosine_similarity.c: -1 where the outputs point as the targets do, 1 where they point away. */
#include "nn/losses/common.h"

/* x / |x|, and 0 for no length at all: the length counts as at least e. */
static tutti_sym unit(tutti_sym x)
{
    tutti_sym squares = tutti_sum(tutti_square(x), .axes = TUTTI_AXES(-1), .keepdims = true);
    double least = TUTTI_LOSS_EPSILON * TUTTI_LOSS_EPSILON;
    return tutti_mul(x, tutti_rsqrt(tutti__at_least(squares, least)));
}

static tutti_sym each(const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    (void)loss;
    return tutti_neg(tutti__last_sum(tutti_mul(unit(truth), unit(guess))));
}

const tutti_loss_def tutti_loss_cosine_similarity = {
    .name = "cosine_similarity",
    .doc = "-sum(y p) / (|y| |p|)",
    .each = each,
};
