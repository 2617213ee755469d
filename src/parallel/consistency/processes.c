/* processes.c: see processes.h. */
#include "parallel/consistency/processes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/job.h"
#include "base/recycle.h"

bool tutti__processes_share(const tutti_strategy *strategy)
{
    return strategy && tutti__strategy_processes(strategy) > 1 && strategy->axis_group &&
           strategy->axis_group->world;
}

tutti_status tutti__processes_reduce(const tutti_strategy *strategy, const char *label,
                                     tutti_dtype dtype, int64_t count, void *values,
                                     tutti_reduction reduction)
{
    tutti_comm_call call = {.struct_size = sizeof call, .label = label};
    return tutti__processes_share(strategy)
               ? tutti_comm_all_reduce(strategy->axis_group->world, values, values, count, dtype,
                                       reduction, &call)
               : TUTTI_OK;
}

tutti_status tutti__processes_gather(const tutti_strategy *strategy, const char *label,
                                     tutti_dtype dtype, int64_t count, const void *mine,
                                     void *ret_all)
{
    tutti_comm_call call = {.struct_size = sizeof call, .label = label};
    if (tutti__processes_share(strategy))
        return tutti_comm_all_gather(strategy->axis_group->world, mine, ret_all, count, dtype,
                                     &call);
    memcpy(ret_all, mine, (size_t)count * tutti_dtype_size(dtype));
    return TUTTI_OK;
}

tutti_status tutti__processes_take(const tutti_strategy *strategy, const char *label, int from,
                                   int64_t size, void *bytes)
{
    tutti_comm_call call = {.struct_size = sizeof call, .label = label};
    return tutti__processes_share(strategy)
               ? tutti_comm_broadcast(strategy->axis_group->world, bytes, size, TUTTI_U8, from,
                                      &call)
               : TUTTI_OK;
}

tutti_status tutti__processes_same(const tutti_strategy *strategy, int count,
                                   const char *const *lines)
{
    return tutti__processes_share(strategy)
               ? tutti_comm_agree(strategy->axis_group->world, "training", lines, count, 0, NULL)
               : TUTTI_OK;
}

tutti_status tutti__processes_poll(const tutti_strategy *strategy, tutti_poll *poll)
{
    int workers = tutti__strategy_processes(strategy), number = 0;
    double mine[3] = {tutti__interrupt_signal(), poll->rate, poll->stop};
    double(*all)[3] = tutti__recycle_zeros((size_t)workers, sizeof *all);
    if (!all)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to ask %d processes", workers);
    tutti_status status =
        tutti__processes_gather(strategy, "look for signals", TUTTI_F64, 3, mine, all);
    for (int r = 0; status == TUTTI_OK && r < workers; r++) {
        number = (int)all[r][0] > number ? (int)all[r][0] : number;
        poll->stop = poll->stop || all[r][2] != 0;
        if (all[r][1] != all[0][1] && !(isnan(all[r][1]) && isnan(all[0][1])))
            status =
                tutti_fail(TUTTI_INVALID,
                           "rank %d has a learning rate of %g in step %lld, rank 0 of %g; what "
                           "changes the rate has to do it on all ranks alike",
                           r, all[r][1], (long long)poll->step + 1, all[0][1]);
    }
    tutti__recycle_free(all);
    TUTTI_TRY(status);
    poll->interrupted = number != 0;
    tutti__interrupt_hear(number);
    return TUTTI_OK;
}

/* ---- what it goes on from ---- */

enum { IDENTITY, STEP, FACTS };

/* All say the same, as the first rank that differs from rank 0 has it. */
static tutti_status refuse_found(const tutti_found *found, int rank, const int64_t *first,
                                 const int64_t *other)
{
    static const char hint[] =
        "all processes go on from the same one: in a folder that all of them see, or a copy of it "
        "on each machine";
    int none = first[IDENTITY] == 0 ? 0 : other[IDENTITY] == 0 ? rank : -1;
    if (none >= 0)
        return tutti_fail(
            TUTTI_INVALID, "rank %d found no checkpoint %s, rank %d one of step %lld; %s", none,
            found->place, none == 0 ? rank : 0, (long long)(none == 0 ? other : first)[STEP], hint);
    if (first[STEP] != other[STEP])
        return tutti_fail(TUTTI_INVALID,
                          "rank %d found a checkpoint of step %lld %s, rank 0 one of step %lld; %s",
                          rank, (long long)other[STEP], found->place, (long long)first[STEP], hint);
    return tutti_fail(
        TUTTI_INVALID,
        "rank %d found another checkpoint of step %lld %s than rank 0: what they hold differs; %s",
        rank, (long long)other[STEP], found->place, hint);
}

tutti_status tutti__found_consistent(const tutti_strategy *strategy, const tutti_found *found)
{
    if (tutti__strategy_processes(strategy) < 2)
        return TUTTI_OK;
    int64_t mine[FACTS] = {(int64_t)found->identity, found->step};
    int size = tutti__strategy_processes(strategy);
    int64_t *all = calloc((size_t)size * FACTS, sizeof *all);
    if (!all)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to compare checkpoints");
    tutti_status status =
        tutti__processes_gather(strategy, "checkpoints to go on from", TUTTI_I64, FACTS, mine, all);
    for (int rank = 1; status == TUTTI_OK && rank < size; rank++)
        if (memcmp(all, all + FACTS * rank, sizeof mine) != 0)
            status = refuse_found(found, rank, all, all + (size_t)FACTS * (size_t)rank);
    free(all);
    return status;
}

/* ---- where the time went ---- */

void tutti__processes_account_begin(const tutti_strategy *strategy)
{
    if (tutti__strategy_meeting_replicas(strategy) > 1)
        tutti__axis_group_account_begin(strategy->axis_group);
}

tutti_status tutti__processes_account_end(const tutti_strategy *strategy, int count, double *sums,
                                          tutti_axis_group_account *ret, bool *ret_known)
{
    *ret_known = tutti__strategy_meeting_replicas(strategy) > 1 && strategy->axis_group->diaries;
    if (!*ret_known)
        return TUTTI_OK;
    TUTTI_TRY(tutti__axis_group_account_end(strategy->axis_group, ret));
    return tutti__processes_reduce(strategy, "account of the time", TUTTI_F64, count, sums,
                                   TUTTI_SUM);
}
