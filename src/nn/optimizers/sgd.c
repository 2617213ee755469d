/* sgd.c: gradient descent, with momentum or without. */
#include "nn/optimizers/optimizer.h"

static const tutti_optimizer_field fields[] = {
    TUTTI_FIELD(tutti_sgd_settings, momentum, 0, 0),
    TUTTI_FIELD_FLAG(tutti_sgd_settings, nesterov),
    TUTTI_FIELD_FLAG(tutti_sgd_settings, torch_form),
    {NULL},
};

static int sgd_slots(const tutti_optimizer *optimizer, tutti_optimizer_slot *ret)
{
    ret[0] = (tutti_optimizer_slot){"momentum", 0};
    return tutti__optimizer_number(optimizer, "momentum") != 0;
}

extern const tutti_optimizer_def tutti_optimizer_sgd;

tutti_optimizer tutti_sgd_with(const tutti_sgd_settings *settings)
{
    return tutti__optimizer_make(&tutti_optimizer_sgd, settings);
}

const tutti_optimizer_def tutti_optimizer_sgd = {
    .name = "sgd",
    .doc = "w = w - lr g; with momentum m = u m - lr g, w = w + m",
    .op = "sgd_update",
    .learning_rate = 0.01,
    .fields = fields,
    .slots = sgd_slots,
};
