/* adadelta.c: Adadelta: moves in proportion to the moves before. */
#include "nn/optimizers/optimizer.h"

static const tutti_optimizer_field fields[] = {
    TUTTI_FIELD(tutti_adadelta_settings, rho, 0.95, 0.95),
    TUTTI_FIELD(tutti_adadelta_settings, epsilon, 1e-7, 1e-7),
    {NULL},
};

static int adadelta_slots(const tutti_optimizer *optimizer, tutti_optimizer_slot *ret)
{
    (void)optimizer;
    ret[0] = (tutti_optimizer_slot){"gradient_square", 0};
    ret[1] = (tutti_optimizer_slot){"move_square", 0};
    return 2;
}

extern const tutti_optimizer_def tutti_optimizer_adadelta;

tutti_optimizer tutti_adadelta_with(const tutti_adadelta_settings *settings)
{
    return tutti__optimizer_make(&tutti_optimizer_adadelta, settings);
}

const tutti_optimizer_def tutti_optimizer_adadelta = {
    .name = "adadelta",
    .doc =
        "s = r s + (1 - r) g^2; x = g sqrt(d + e) / sqrt(s + e); d = r d + (1 - r) x^2; w = w - lr x",
    .op = "adadelta_update",
    .learning_rate = 0.001,
    .fields = fields,
    .slots = adadelta_slots,
};
