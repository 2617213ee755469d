/* account.c: where the time of a distributed training went: input, compute, communication, and
 * waiting for whom. */
#include "parallel/collectives/account.h"
#include "base/world.h"
#include "nn/model/model_strategy.h"
#include "nn/training/callback.h"

static tutti_axis_group *axis_group_of(const tutti_fit *fit)
{
    tutti_strategy *strategy = tutti__model_strategy(fit->model);
    return fit->accounts && tutti__strategy_meeting_replicas(strategy) > 1 ? strategy->axis_group
                                                                           : NULL;
}

void tutti__fit_account_begin(tutti_fit *fit)
{
    tutti_axis_group *axis_group = axis_group_of(fit);
    fit->account = (tutti_fit_account){.slowest = -1, .began = tutti__now_ns()};
    if (axis_group)
        tutti__axis_group_account_begin(axis_group);
}

tutti_status tutti__fit_account_end(tutti_fit *fit)
{
    tutti_axis_group *axis_group = axis_group_of(fit);
    tutti_fit_account *a = &fit->account;
    tutti_axis_group_account met;
    double sums[] = {1e-9 * (double)(tutti__now_ns() - a->began), a->waited, 1};
    if (!axis_group || !axis_group->diaries)
        return TUTTI_OK;
    TUTTI_TRY(tutti__axis_group_account_end(axis_group, &met));
    if (axis_group->world)
        TUTTI_TRY(
            tutti_comm_all_reduce(axis_group->world, sums, sums, 3, TUTTI_F64, TUTTI_SUM, NULL));
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
