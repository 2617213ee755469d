/* lamb.c: Adam whose step is as long as the variable says. */
#include "nn/optimizers/optimizer.h"

static const tutti_optimizer_field fields[] = {
    TUTTI_FIELD(tutti_lamb_settings, beta1, 0.9, 0.9),
    TUTTI_FIELD(tutti_lamb_settings, beta2, 0.999, 0.999),
    TUTTI_FIELD(tutti_lamb_settings, epsilon, 1e-7, 1e-7),
    {NULL},
};

static int lamb_slots(const tutti_optimizer *optimizer, tutti_optimizer_slot *ret)
{
    (void)optimizer;
    ret[0] = (tutti_optimizer_slot){"m", 0};
    ret[1] = (tutti_optimizer_slot){"v", 0};
    return 2;
}

extern const tutti_optimizer_def tutti_optimizer_lamb;

tutti_optimizer tutti_lamb_with(const tutti_lamb_settings *settings)
{
    return tutti__optimizer_make(&tutti_optimizer_lamb, settings);
}

const tutti_optimizer_def tutti_optimizer_lamb = {
    .name = "lamb",
    .doc = "u = m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + e); w = w - lr |w| / |u| u",
    .op = "lamb_update",
    .counts_steps = true,
    .learning_rate = 0.001,
    .fields = fields,
    .slots = lamb_slots,
};
