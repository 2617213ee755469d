/* poll.c: what processes that train together tell each other every few steps. */
#include <math.h>

#include "base/job.h"
#include "base/recycle.h"
#include "nn/model/model_strategy.h"

tutti_status tutti__poll_processes(tutti_strategy *strategy, tutti_asked *asked)
{
    int workers = tutti__strategy_processes(strategy), number = 0;
    double mine[3] = {tutti__interrupt_signal(), asked->rate, asked->stop};
    double(*all)[3] = tutti__recycle_zeros((size_t)workers, sizeof *all);
    if (!all)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to ask %d processes", workers);
    tutti_status status =
        tutti_comm_all_gather(strategy->axis_group->world, mine, all, 3, TUTTI_F64, NULL);
    for (int r = 0; status == TUTTI_OK && r < workers; r++) {
        number = (int)all[r][0] > number ? (int)all[r][0] : number;
        asked->stop = asked->stop || all[r][2] != 0;
        if (all[r][1] != all[0][1] && !(isnan(all[r][1]) && isnan(all[0][1])))
            status =
                tutti_fail(TUTTI_INVALID,
                           "rank %d has a learning rate of %g in step %lld, rank 0 of %g; what "
                           "changes the rate has to do it on all ranks alike",
                           r, all[r][1], (long long)asked->step + 1, all[0][1]);
    }
    tutti__recycle_free(all);
    TUTTI_TRY(status);
    asked->interrupted = number != 0;
    tutti__interrupt_hear(number);
    return TUTTI_OK;
}
