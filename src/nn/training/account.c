/* account.c: where the time of a distributed training went: input, compute, communication, and
 * waiting for whom. */
#include "base/world.h"
#include "nn/model/model_strategy.h"
#include "nn/training/callback.h"

static const tutti_strategy *accounted(const tutti_fit *fit)
{
    const tutti_strategy *strategy = tutti__model_strategy(fit->model);
    return fit->accounts && tutti__strategy_meeting_replicas(strategy) > 1 ? strategy : NULL;
}

void tutti__fit_account_begin(tutti_fit *fit)
{
    fit->account = (tutti_fit_account){.slowest = -1, .began = tutti__now_ns()};
    if (accounted(fit))
        tutti__processes_account_begin(accounted(fit));
}

tutti_status tutti__fit_account_end(tutti_fit *fit)
{
    tutti_fit_account *a = &fit->account;
    tutti_axis_group_account met;
    double sums[] = {1e-9 * (double)(tutti__now_ns() - a->began), a->waited, 1};
    bool known = false;
    if (accounted(fit))
        TUTTI_TRY(tutti__processes_account_end(accounted(fit), 3, sums, &met, &known));
    if (!known)
        return TUTTI_OK;
    double all = sums[0] / sums[2], input = sums[1] / sums[2];
    a->input = input / all;
    a->waiting = met.waiting / all;
    a->communication = (met.inside - met.waiting) / all;
    a->compute = 1 - a->input - a->waiting - a->communication;
    a->slowest = met.slowest;
    a->for_slowest = met.for_it / all;
    a->meetings = met.meetings;
    a->came_last = met.came_last;
    a->known = true;
    return TUTTI_OK;
}

void tutti__fit_account_text(const tutti_fit *fit, tutti_text *text)
{
    const tutti_fit_account *a = &fit->account;
    const tutti_strategy *strategy = tutti__model_strategy(fit->model);
    if (!a->known)
        return;
    tutti__text_add(text,
                    "time: input %.0f %%, compute %.0f %%, exposed communication %.0f %%, waiting "
                    "%.0f %%",
                    100 * a->input, 100 * a->compute, 100 * a->communication, 100 * a->waiting);
    if (a->slowest < 0)
        return;
    int local = tutti_strategy_local(strategy), workers = tutti_strategy_workers(strategy);
    if (workers > 1)
        tutti__text_add(text, ", most of it for rank %d", a->slowest / local);
    if (local > 1)
        tutti__text_add(text, "%s%s", workers > 1 ? " on " : ", most of it for ",
                        strategy->devices[a->slowest % local]);
    tutti__text_add(text, " (%.0f %%; last in %lld of %lld meetings)", 100 * a->for_slowest,
                    (long long)a->came_last, (long long)a->meetings);
}
