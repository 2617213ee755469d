/* optimizer_kept.c: gradients that are kept beside what they move, to be looked at. */
#include "base/params.h"
#include "nn/optimizers/optimizer.h"
#include "ops/build.h"

static const tutti_param keep_param = TUTTI_PARAM(
    "KEEP_GRADIENTS", "0", "1: keep each variable's last gradient beside it, in checkpoints too");

bool tutti__optimizer_keeps_gradients(tutti_graph *graph)
{
    bool keeps = false;
    tutti_status status = tutti__param_switch(&keep_param, &keeps);
    if (status != TUTTI_OK)
        tutti__poison(graph, status, "%s", tutti_error_message());
    return keeps;
}

tutti_sym tutti__optimizer_keep(const tutti_update *update)
{
    return tutti_assign(tutti__optimizer_slot(update, "gradient", 0),
                        tutti_cast(tutti_grad_dense(update->grad, update->variable),
                                   tutti_sym_type(update->variable).dtype));
}
