/* lion.c: the sign of a mean of gradients. */
#include "nn/optimizers/optimizer.h"

static const tutti_optimizer_field fields[] = {
    TUTTI_FIELD(tutti_lion_settings, beta1, 0.9, 0.9),
    TUTTI_FIELD(tutti_lion_settings, beta2, 0.99, 0.99),
    {NULL},
};

static int lion_slots(const tutti_optimizer *optimizer, tutti_optimizer_slot *ret)
{
    (void)optimizer;
    ret[0] = (tutti_optimizer_slot){"m", 0};
    return 1;
}

extern const tutti_optimizer_def tutti_optimizer_lion;

tutti_optimizer tutti_lion_with(const tutti_lion_settings *settings)
{
    return tutti__optimizer_make(&tutti_optimizer_lion, settings);
}

const tutti_optimizer_def tutti_optimizer_lion = {
    .name = "lion",
    .doc = "w = w - lr sign(b1 m + (1 - b1) g); m = b2 m + (1 - b2) g",
    .op = "lion_update",
    .learning_rate = 0.001,
    .fields = fields,
    .slots = lion_slots,
};
