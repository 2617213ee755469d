/* lars.c: momentum at a rate that norms set. */
#include "nn/optimizers/optimizer.h"

static const tutti_optimizer_field fields[] = {
    TUTTI_FIELD(tutti_lars_settings, momentum, 0.9, 0.9),
    TUTTI_FIELD(tutti_lars_settings, trust, 0.001, 0.001),
    TUTTI_FIELD(tutti_lars_settings, epsilon, 0, 0),
    TUTTI_FIELD_FLAG(tutti_lars_settings, nesterov),
    {NULL},
};

static int lars_slots(const tutti_optimizer *optimizer, tutti_optimizer_slot *ret)
{
    (void)optimizer;
    ret[0] = (tutti_optimizer_slot){"momentum", 0};
    return 1;
}

extern const tutti_optimizer_def tutti_optimizer_lars;

tutti_optimizer tutti_lars_with(const tutti_lars_settings *settings)
{
    return tutti__optimizer_make(&tutti_optimizer_lars, settings);
}

const tutti_optimizer_def tutti_optimizer_lars = {
    .name = "lars",
    .doc = "r = trust |w| / (|g| + decay |w| + e); m = u m + lr r (g + decay w); w = w - m",
    .op = "lars_update",
    .learning_rate = 0.01,
    .fields = fields,
    .slots = lars_slots,
};
