/* adagrad.c: Adagrad: rates that fall with the squares seen so far. */
#include "nn/optimizers/optimizer.h"

static const tutti_optimizer_field fields[] = {
    TUTTI_FIELD(tutti_adagrad_settings, initial_accumulator, 0.1, 0),
    TUTTI_FIELD(tutti_adagrad_settings, epsilon, 1e-7, 1e-10),
    TUTTI_FIELD_FLAG(tutti_adagrad_settings, torch_form),
    {NULL},
};

static int adagrad_slots(const tutti_optimizer *optimizer, tutti_optimizer_slot *ret)
{
    ret[0] = (tutti_optimizer_slot){"accumulator",
                                    tutti__optimizer_number(optimizer, "initial_accumulator")};
    return 1;
}

extern const tutti_optimizer_def tutti_optimizer_adagrad;

tutti_optimizer tutti_adagrad_with(const tutti_adagrad_settings *settings)
{
    return tutti__optimizer_make(&tutti_optimizer_adagrad, settings);
}

const tutti_optimizer_def tutti_optimizer_adagrad = {
    .name = "adagrad",
    .doc = "s = s + g^2; w = w - lr g / sqrt(s + e)",
    .op = "adagrad_update",
    .learning_rate = 0.001,
    .fields = fields,
    .slots = adagrad_slots,
};
