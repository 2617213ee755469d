/* axis_group_parts.c: a bucket of which replicas of one process want parts only: each adds up its
 * own, straight from the others' memory, and nobody writes to another's. */
#include <string.h>

#include "comm/coll/fold.h"
#include "parallel/collectives/axis_group.h"

/* Elements [from, to) of every replica's message, added up. */
static void axis_group_parts_fold(const tutti_axis_group *axis_group, const int64_t *all,
                                  int64_t from, int64_t to, float *out)
{
    const void *inputs[TUTTI_AXIS_GROUP_PARTS];
    for (int r = 0; r < axis_group->local; r++)
        inputs[r] = (const float *)(uintptr_t)all[2 * r] + from;
    if (from < to)
        tutti__fold_find(TUTTI_F32, TUTTI_SUM)(out, inputs, axis_group->local, to - from);
}

/* The next elements [*from, *to) that are not cut, behind cut number i - 1; false: no more. */
static bool next_rest(int64_t count, int cut_count, const tutti_axis_group_cut *cuts, int i,
                      int64_t *from, int64_t *to)
{
    if (i > cut_count)
        return false;
    *from = i > 0 ? cuts[i - 1].offset + cuts[i - 1].count : 0;
    *to = i < cut_count ? cuts[i].offset : count;
    return true;
}

/* What is not cut becomes whole. A little of it is added up aside while everybody reads, and put in
 * its place when nobody does any more. */
static tutti_status reduce_rest(const tutti_axis_group *axis_group, tutti_comm *comm,
                                const int64_t *all, float *message, int64_t count, int cut_count,
                                const tutti_axis_group_cut *cuts, const tutti_comm_call *options)
{
    enum { LITTLE = 4096 };
    float aside[LITTLE];
    int64_t from, to, rest = count, at = 0;
    for (int i = 0; i < cut_count; i++)
        rest -= cuts[i].count;
    if (rest > LITTLE) {
        for (int i = 0; next_rest(count, cut_count, cuts, i, &from, &to); i++)
            if (from < to)
                TUTTI_TRY(tutti_comm_all_reduce(comm, message + from, message + from, to - from,
                                                TUTTI_F32, TUTTI_SUM, options));
        return tutti_comm_barrier(comm, options); /* until nobody reads here any more */
    }
    for (int i = 0; next_rest(count, cut_count, cuts, i, &from, &to); at += to - from, i++)
        axis_group_parts_fold(axis_group, all, from, to, aside + at);
    TUTTI_TRY(tutti_comm_barrier(comm, options));
    at = 0;
    for (int i = 0; next_rest(count, cut_count, cuts, i, &from, &to); at += to - from, i++)
        memcpy(message + from, aside + at, (size_t)(to - from) * sizeof *message);
    return TUTTI_OK;
}

tutti_status tutti__axis_group_reduce_parts(tutti_axis_group *axis_group, int local, float *message,
                                            int64_t count, bool stays, int cut_count,
                                            tutti_axis_group_cut *cuts,
                                            const tutti_axis_group_call *call)
{
    tutti_comm *comm = axis_group->inner[local];
    tutti_comm_call options = {.struct_size = sizeof options, .timeout = call->timeout};
    int64_t own[2] = {(int64_t)(uintptr_t)message, stays}, all[2 * TUTTI_AXIS_GROUP_PARTS];
    TUTTI_TRY(tutti_comm_all_gather(comm, own, all, 2, TUTTI_I64, &options));
    for (int i = 0; i < cut_count; i++) {
        int64_t first = cuts[i].offset + cuts[i].first;
        if (cuts[i].late && axis_group->local == 2 && all[1] && all[3])
            cuts[i].other = (const float *)(uintptr_t)all[2 * (1 - local)] + cuts[i].offset;
        else
            axis_group_parts_fold(axis_group, all, first, cuts[i].offset + cuts[i].end,
                                  message + first);
    }
    return reduce_rest(axis_group, comm, all, message, count, cut_count, cuts, &options);
}
