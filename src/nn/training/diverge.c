/* diverge.c: a loss that is no number ends a training. Several processes all see it after the same
 * step, and they tell each other whose examples were none either. The first steps are looked at,
 * then some: reading the loss waits for the step.
 *
 * An infinite loss ends nothing, as log 0 is one; but one that infinite examples gave makes the
 * weights no numbers, and the loss of a later step with them. So examples are looked at when the
 * loss becomes infinite, and what was found is told when it is no number. */
#include <math.h>
#include <stdlib.h>

#include "base/job.h"
#include "data/dataset.h"
#include "nn/model/model_strategy.h"
#include "nn/training/callback.h"

enum { EVERY = 16 };

static bool is_odd(const tutti_tensor *tensor, int64_t *ret_row)
{
    tutti_dtype dtype = tutti_tensor_dtype(tensor);
    int64_t count = tutti_tensor_count(tensor);
    if (dtype != TUTTI_F32 && dtype != TUTTI_F64 && dtype != TUTTI_F16 && dtype != TUTTI_BF16)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(tutti_tensor_get(tensor, i))) {
            *ret_row =
                tutti_tensor_rank(tensor) > 0 ? i / (count / tutti_tensor_dims(tensor)[0]) : 0;
            return true;
        }
    return false;
}

static tutti_status find_odd(const tutti_fit *fit, const tutti_element *element,
                             tutti_odd_number *ret)
{
    const tutti_model *model = fit->model;
    tutti_rows rows;
    *ret = (tutti_odd_number){-1, 0, fit->event.step};
    if (!element)
        return TUTTI_OK;
    TUTTI_TRY(tutti__rows_take(model, element->rows, element->count, element->tensors, &rows));
    for (int i = 0; i < rows.count && ret->component < 0; i++)
        if (is_odd(rows.tensors[i], &ret->row))
            ret->component = i;
    tutti__rows_release(&rows);
    return TUTTI_OK;
}

static tutti_status verdict_alone(const tutti_fit *fit, const tutti_odd_number *odd)
{
    const tutti_dataset *data = fit->data;
    const char *name = data && odd->component >= 0 ? data->info.names[odd->component] : NULL;
    if (odd->component < 0)
        return tutti_fail(TUTTI_INVALID,
                          "step %lld: the loss is no number, though the examples of this step are "
                          "finite: training has diverged, or an example of the %d steps before was "
                          "not finite; try a smaller learning rate or clip gradients, or end "
                          "without an error by tutti_terminate_on_nan()",
                          (long long)fit->event.step, EVERY);
    return tutti_fail(TUTTI_INVALID,
                      "step %lld (epoch %d): the loss is no number, and the examples are not all "
                      "finite (component %lld '%s', row %lld of the batch); look at the data, or "
                      "leave such examples out with tutti_filter",
                      (long long)odd->step, fit->event.epoch + 1, (long long)odd->component,
                      name ? name : "", (long long)odd->row);
}

static tutti_status verdict(int64_t step, int workers, const tutti_odd_number *all)
{
    for (int r = 0; r < workers; r++)
        if (all[r].component >= 0)
            return tutti_fail(TUTTI_INVALID,
                              "step %lld: the loss is no number: rank %d's examples are not all "
                              "finite (component %lld, row %lld of its rows); look at its data, or "
                              "leave such examples out with tutti_filter",
                              (long long)all[r].step, r, (long long)all[r].component,
                              (long long)all[r].row);
    return tutti_fail(TUTTI_INVALID,
                      "step %lld: the loss is no number, though no rank's examples are the cause "
                      "in this step: training has diverged, or an example of the %d steps before "
                      "was not finite; try a smaller learning rate or clip gradients, or end "
                      "without an error by tutti_terminate_on_nan()",
                      (long long)step, EVERY);
}

tutti_status tutti__fit_look_for_nan(tutti_fit *fit, const tutti_element *element)
{
    const tutti_model *model = fit->model;
    tutti_strategy *strategy = tutti__model_strategy(model);
    if (model->trainer->stop || model->trainer->gathered > 0 ||
        (element && fit->event.step > EVERY && fit->event.step % EVERY != 0))
        return TUTTI_OK;
    double loss;
    tutti_odd_number mine;
    TUTTI_TRY(tutti__track_loss(model, &loss));
    bool first = !isfinite(loss) && !fit->infinite;
    fit->infinite = !isfinite(loss);
    if (first)
        TUTTI_TRY(find_odd(fit, element, &fit->odd));
    if (!isnan(loss))
        return TUTTI_OK;
    TUTTI_TRY(find_odd(fit, element, &mine));
    if (fit->odd.component >= 0)
        mine = fit->odd;
    if (!tutti__model_shares(model))
        return verdict_alone(fit, &mine);
    int workers = tutti__strategy_processes(strategy);
    tutti_odd_number *all = calloc((size_t)workers, sizeof *all);
    if (!all)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to ask %d processes", workers);
    tutti_status status = tutti__processes_gather(strategy, "find a loss that is no number",
                                                  TUTTI_I64, 3, &mine, all);
    if (status == TUTTI_OK)
        status = verdict(fit->event.step, workers, all);
    free(all);
    return status;
}
