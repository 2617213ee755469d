/* team_parts.c: a bucket of which replicas of one process want parts only: each adds up its own,
 * straight from the others' memory, and nobody writes to another's. */
#include "comm/fold.h"
#include "dist/team.h"

/* What is not cut of elements [from, to) becomes whole, as ever. */
static tutti_status reduce_rest(tutti_comm *comm, float *message, int64_t from, int64_t to,
                                const tutti_comm_call *options)
{
    if (from >= to)
        return TUTTI_OK;
    return tutti_comm_all_reduce(comm, message + from, message + from, to - from, TUTTI_F32,
                                 TUTTI_SUM, options);
}

tutti_status tutti__team_reduce_parts(tutti_team *team, int local, float *message, int64_t count,
                                      int cut_count, const tutti_team_cut *cuts,
                                      const tutti_team_call *call)
{
    tutti_comm *comm = team->inner[local];
    tutti_comm_call options = {.struct_size = sizeof options, .timeout = call->timeout};
    int64_t own = (int64_t)(uintptr_t)message, all[TUTTI_TEAM_PARTS], at = 0;
    const void *inputs[TUTTI_TEAM_PARTS];
    TUTTI_TRY(tutti_comm_all_gather(comm, &own, all, 1, TUTTI_I64, &options));
    for (int i = 0; i < cut_count; i++) {
        int64_t first = cuts[i].offset + cuts[i].first;
        for (int r = 0; r < team->local; r++)
            inputs[r] = (const float *)(uintptr_t)all[r] + first;
        tutti__fold_find(TUTTI_F32, TUTTI_SUM)(message + first, inputs, team->local,
                                               cuts[i].end - cuts[i].first);
    }
    for (int i = 0; i < cut_count; i++) {
        TUTTI_TRY(reduce_rest(comm, message, at, cuts[i].offset, &options));
        at = cuts[i].offset + cuts[i].count;
    }
    if (at < count)
        return reduce_rest(comm, message, at, count, &options);
    return tutti_comm_barrier(comm, &options); /* until nobody reads here any more */
}
