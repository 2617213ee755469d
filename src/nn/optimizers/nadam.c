/* nadam.c: Adam that looks ahead along its momentum. */
#include "nn/optimizers/optimizer.h"

static const tutti_optimizer_field fields[] = {
    TUTTI_FIELD(tutti_nadam_settings, beta1, 0.9, 0.9),
    TUTTI_FIELD(tutti_nadam_settings, beta2, 0.999, 0.999),
    TUTTI_FIELD(tutti_nadam_settings, epsilon, 1e-7, 1e-7),
    TUTTI_FIELD(tutti_nadam_settings, momentum_decay, 1, 1),
    {NULL},
};

static int nadam_slots(const tutti_optimizer *optimizer, tutti_optimizer_slot *ret)
{
    (void)optimizer;
    ret[0] = (tutti_optimizer_slot){"m", 0};
    ret[1] = (tutti_optimizer_slot){"v", 0};
    return 2;
}

extern const tutti_optimizer_def tutti_optimizer_nadam;

tutti_optimizer tutti_nadam_with(const tutti_nadam_settings *settings)
{
    return tutti__optimizer_make(&tutti_optimizer_nadam, settings);
}

const tutti_optimizer_def tutti_optimizer_nadam = {
    .name = "nadam",
    .doc =
        "w = w - lr (u' m / (1 - U u') + (1 - u) g / (1 - U)) / (sqrt(v / (1 - b2^t)) + e), u = b1 (1 - 0.96^(t d) / 2), U their product",
    .op = "nadam_update",
    .counts_steps = true,
    .learning_rate = 0.001,
    .fields = fields,
    .slots = nadam_slots,
};
