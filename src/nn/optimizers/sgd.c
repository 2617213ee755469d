/* sgd.c: gradient descent. */
#include "nn/optimizer.h"
#include "ops/build.h"

static tutti_sym build(const tutti_update *update)
{
    if (update->grad.rows.node)
        return tutti_sgd_update_rows(update->variable, update->grad.rows, update->grad.value,
                                     update->learning_rate);
    return tutti_sgd_update(update->variable, update->grad.value, update->learning_rate);
}

extern const tutti_optimizer_def tutti_optimizer_sgd;

tutti_optimizer tutti_sgd_make(const tutti_sgd_settings *settings)
{
    return (tutti_optimizer){.def = &tutti_optimizer_sgd,
                             .name = settings->name ? settings->name : "sgd",
                             .learning_rate =
                                 settings->learning_rate != 0 ? settings->learning_rate : 0.01};
}

const tutti_optimizer_def tutti_optimizer_sgd = {
    .name = "sgd",
    .doc = "w = w - lr g",
    .build = build,
};
