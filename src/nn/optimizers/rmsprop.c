/* rmsprop.c: RMSprop, centered or not, with momentum or without. */
#include "nn/optimizers/optimizer.h"

static const tutti_optimizer_field fields[] = {
    TUTTI_FIELD(tutti_rmsprop_settings, rho, 0.9, 0.99),
    TUTTI_FIELD(tutti_rmsprop_settings, epsilon, 1e-7, 1e-8),
    TUTTI_FIELD(tutti_rmsprop_settings, momentum, 0, 0),
    TUTTI_FIELD_FLAG(tutti_rmsprop_settings, centered),
    TUTTI_FIELD_FLAG(tutti_rmsprop_settings, torch_form),
    {NULL},
};

static int rmsprop_slots(const tutti_optimizer *optimizer, tutti_optimizer_slot *ret)
{
    int count = 0;
    ret[count++] = (tutti_optimizer_slot){"v", 0};
    if (tutti__optimizer_number(optimizer, "centered") != 0)
        ret[count++] = (tutti_optimizer_slot){"mean", 0};
    if (tutti__optimizer_number(optimizer, "momentum") != 0)
        ret[count++] = (tutti_optimizer_slot){"momentum", 0};
    return count;
}

extern const tutti_optimizer_def tutti_optimizer_rmsprop;

tutti_optimizer tutti_rmsprop_with(const tutti_rmsprop_settings *settings)
{
    return tutti__optimizer_make(&tutti_optimizer_rmsprop, settings);
}

const tutti_optimizer_def tutti_optimizer_rmsprop = {
    .name = "rmsprop",
    .doc = "v = r v + (1 - r) g^2; w = w - lr g / sqrt(v + e)",
    .op = "rmsprop_update",
    .learning_rate = 0.001,
    .fields = fields,
    .slots = rmsprop_slots,
};
