/* adam.c: Adam, in Keras' form or PyTorch's. */
#include "nn/optimizer.h"
#include "ops/build.h"

static tutti_sym build(const tutti_update *update)
{
    const tutti_optimizer *adam = update->optimizer;
    tutti_sym m = tutti__optimizer_slot(update, "m"), s = tutti__optimizer_slot(update, "v");
    tutti_adam_options options = {.struct_size = sizeof options,
                                  .beta1 = adam->beta1,
                                  .beta2 = adam->beta2,
                                  .epsilon = adam->epsilon,
                                  .torch_form = adam->torch_form};
    if (update->grad.rows.node)
        return (tutti_adam_update_rows)(update->variable, m, s, update->grad.rows,
                                        update->grad.value, update->learning_rate, update->step,
                                        &options);
    return (tutti_adam_update)(update->variable, m, s, update->grad.value, update->learning_rate,
                               update->step, &options);
}

extern const tutti_optimizer_def tutti_optimizer_adam;

tutti_optimizer tutti_adam_make(const tutti_adam_settings *settings)
{
    return (tutti_optimizer){.def = &tutti_optimizer_adam,
                             .name = settings->name ? settings->name : "adam",
                             .learning_rate =
                                 settings->learning_rate != 0 ? settings->learning_rate : 0.001,
                             .beta1 = settings->beta1,
                             .beta2 = settings->beta2,
                             .epsilon = settings->epsilon,
                             .torch_form = settings->torch_form};
}

const tutti_optimizer_def tutti_optimizer_adam = {
    .name = "adam",
    .doc =
        "m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; w = w - lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + e)",
    .counts_steps = true,
    .build = build,
};
