/* adamw.c: Adam with decoupled weight decay. */
#include "nn/optimizers/optimizer.h"

static const tutti_optimizer_field fields[] = {
    TUTTI_FIELD(tutti_adam_settings, beta1, 0.9, 0.9),
    TUTTI_FIELD(tutti_adam_settings, beta2, 0.999, 0.999),
    TUTTI_FIELD(tutti_adam_settings, epsilon, 1e-7, 1e-8),
    TUTTI_FIELD_FLAG(tutti_adam_settings, amsgrad),
    TUTTI_FIELD_FLAG(tutti_adam_settings, torch_form),
    {NULL},
};

static int adamw_slots(const tutti_optimizer *optimizer, tutti_optimizer_slot *ret)
{
    ret[0] = (tutti_optimizer_slot){"m", 0};
    ret[1] = (tutti_optimizer_slot){"v", 0};
    ret[2] = (tutti_optimizer_slot){"v_largest", 0};
    return tutti__optimizer_number(optimizer, "amsgrad") != 0 ? 3 : 2;
}

extern const tutti_optimizer_def tutti_optimizer_adamw;

tutti_optimizer tutti_adamw_with(const tutti_adam_settings *settings)
{
    return tutti__optimizer_make(&tutti_optimizer_adamw, settings);
}

const tutti_optimizer_def tutti_optimizer_adamw = {
    .name = "adamw",
    .doc = "w = w - lr decay w; then adam",
    .op = "adam_update",
    .counts_steps = true,
    .learning_rate = 0.001,
    .weight_decay = 0.004,
    .torch_weight_decay = 0.01,
    .fields = fields,
    .slots = adamw_slots,
};
