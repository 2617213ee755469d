/* adamax.c: Adamax: Adam with the largest magnitude for the second moment. */
#include "nn/optimizers/optimizer.h"

static const tutti_optimizer_field fields[] = {
    TUTTI_FIELD(tutti_adamax_settings, beta1, 0.9, 0.9),
    TUTTI_FIELD(tutti_adamax_settings, beta2, 0.999, 0.999),
    TUTTI_FIELD(tutti_adamax_settings, epsilon, 1e-7, 1e-8),
    TUTTI_FIELD_FLAG(tutti_adamax_settings, torch_form),
    {NULL},
};

static int adamax_slots(const tutti_optimizer *optimizer, tutti_optimizer_slot *ret)
{
    (void)optimizer;
    ret[0] = (tutti_optimizer_slot){"m", 0};
    ret[1] = (tutti_optimizer_slot){"u", 0};
    return 2;
}

extern const tutti_optimizer_def tutti_optimizer_adamax;

tutti_optimizer tutti_adamax_with(const tutti_adamax_settings *settings)
{
    return tutti__optimizer_make(&tutti_optimizer_adamax, settings);
}

const tutti_optimizer_def tutti_optimizer_adamax = {
    .name = "adamax",
    .doc = "m = b1 m + (1 - b1) g; u = max(b2 u, |g|); w = w - lr / (1 - b1^t) m / (u + e)",
    .op = "adamax_update",
    .counts_steps = true,
    .learning_rate = 0.001,
    .fields = fields,
    .slots = adamax_slots,
};
