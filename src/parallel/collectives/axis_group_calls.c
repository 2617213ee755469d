/* axis_group_calls.c: the collectives of an axis group; see axis_group.h. Where a process has
 * several devices in it, these come together first (`inner`), and one of them speaks for all with
 * the other processes (`world`). No other device leaves a collective before the one that speaks is
 * done with that: another may speak in the next one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/recycle.h"
#include "comm/comm.h"
#include "parallel/collectives/axis_group.h"
#include "parallel/collectives/axis_group_sums.h"

static tutti_comm_call options_of(const tutti_axis_group *group, const tutti_axis_group_call *call,
                                  tutti_dtype dtype)
{
    tutti_comm_call options = {.struct_size = sizeof options,
                               .timeout = call->timeout,
                               .shards = call->shards,
                               .folded = call->shards > 0,
                               .algorithm = call->shards ? NULL : group->algorithm};
    if (dtype == TUTTI_F32 && (call->wire == TUTTI_BF16 || call->wire == TUTTI_F16))
        options.wire = call->wire;
    return options;
}

static tutti_comm_call plain_of(const tutti_axis_group_call *call)
{
    return (tutti_comm_call){.struct_size = sizeof(tutti_comm_call), .timeout = call->timeout};
}

/* Between this process's devices; NULL: it has one. */
static tutti_comm *inner_of(const tutti_axis_group *group, int local)
{
    return group->inner ? group->inner[local] : NULL;
}

/* One level, which is all there is; NULL where there are two, or the device is alone. */
static tutti_comm *only_level(const tutti_axis_group *group, int local)
{
    bool two = group->world && group->most > 1;
    return two ? NULL : group->world ? group->world : inner_of(group, local);
}

static bool is_alone(const tutti_axis_group *group)
{
    return !group->world && !group->inner;
}

/* What the processes' devices have done before the mean is divided. */
static tutti_reduction on_the_way(tutti_reduction reduction)
{
    return reduction == TUTTI_MEAN ? TUTTI_SUM : reduction;
}

/* The speaker has failed: the others of its process need not wait. */
static tutti_status speaker_failed(tutti_comm *inner, tutti_status status)
{
    if (inner && status != TUTTI_OK)
        tutti_comm_abort(inner, tutti_error_message());
    return status;
}

/* Memory that stays the group's, of the one that speaks; in parts of whole lines. */
static tutti_status room(tutti_axis_group *group, size_t bytes, char **ret)
{
    if (bytes > group->room_bytes) {
        void *larger = malloc(bytes);
        if (!larger)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a collective of %zu bytes", bytes);
        free(group->room);
        group->room = larger;
        group->room_bytes = bytes;
    }
    *ret = group->room;
    return TUTTI_OK;
}

/* The rank that is place `place` of a process. */
static int rank_of(const tutti_axis_group *group, int process, int place)
{
    int r = 0;
    while (group->places[r].process != process || group->places[r].place != place)
        r++;
    return r;
}

/* ---- sums ---- */

static tutti_status reduce_pieces(tutti_comm *comm, int count, const tutti_comm_piece *pieces,
                                  tutti_dtype dtype, tutti_reduction reduction,
                                  const tutti_comm_call *options)
{
    if (count == 1)
        return tutti_comm_all_reduce(comm, pieces[0].data, pieces[0].data, pieces[0].count, dtype,
                                     reduction, options);
    int64_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += pieces[i].count * (int64_t)tutti_dtype_size(dtype);
    return tutti_comm_all_reduce_many(
        comm, pieces, count, dtype, reduction,
        TUTTI_BUCKET(.bucket_bytes = bytes, .bucket_count = count + 1), options);
}

/* Reduces among the devices, then the first one with the other processes, then gives it to all. */
static tutti_status reduce_on_two_levels(tutti_axis_group *group, int local, int count,
                                         const tutti_comm_piece *pieces, tutti_dtype dtype,
                                         tutti_reduction reduction, const tutti_comm_call *options)
{
    tutti_comm *inner = inner_of(group, local);
    tutti_reduction within = on_the_way(reduction);
    tutti_comm_call plain = {.struct_size = sizeof plain, .timeout = options->timeout};
    for (int i = 0; inner && i < count; i++)
        TUTTI_TRY(tutti_comm_reduce(inner, pieces[i].data, pieces[i].data, pieces[i].count, dtype,
                                    within, 0, &plain));
    if (local == 0)
        TUTTI_TRY(speaker_failed(
            inner, reduce_pieces(group->world, count, pieces, dtype, within, options)));
    for (int i = 0; i < count; i++) {
        if (inner)
            TUTTI_TRY(
                tutti_comm_broadcast(inner, pieces[i].data, pieces[i].count, dtype, 0, &plain));
        tutti__fold_finish(dtype, reduction, pieces[i].data, pieces[i].count, group->size);
    }
    return TUTTI_OK;
}

/* Sums whose bits depend on the order of their terms. */
static bool is_rounded(tutti_dtype dtype, tutti_reduction reduction)
{
    return tutti_dtype_is_float(dtype) && reduction != TUTTI_MIN && reduction != TUTTI_MAX;
}

/* Each rank is a shard: the same bits however the ranks are spread over processes. */
static tutti_status reduce_by_tree(tutti_axis_group *group, int local, int count,
                                   const tutti_comm_piece *pieces, tutti_dtype dtype,
                                   tutti_reduction reduction, const tutti_axis_group_call *call)
{
    tutti_axis_group_call by_tree = *call;
    by_tree.shards = group->size;
    for (int i = 0; i < count; i++) {
        TUTTI_TRY(tutti__axis_group_all_reduce(group, local, 1, &pieces[i], dtype,
                                               on_the_way(reduction), &by_tree));
        tutti__fold_finish(dtype, reduction, pieces[i].data, pieces[i].count, group->size);
    }
    return TUTTI_OK;
}

tutti_status tutti__axis_group_all_reduce(tutti_axis_group *group, int local, int count,
                                          const tutti_comm_piece *pieces, tutti_dtype dtype,
                                          tutti_reduction reduction,
                                          const tutti_axis_group_call *call)
{
    tutti_comm_call options = options_of(group, call, dtype);
    tutti_comm *comm = only_level(group, local);
    if (is_alone(group))
        return TUTTI_OK;
    if (group->deterministic && !call->shards && is_rounded(dtype, reduction))
        return reduce_by_tree(group, local, count, pieces, dtype, reduction, call);
    if (!comm && call->shards)
        return tutti__axis_group_fold_shards(group, local, pieces, dtype, reduction, &options);
    return comm ? reduce_pieces(comm, count, pieces, dtype, reduction, &options)
                : reduce_on_two_levels(group, local, count, pieces, dtype, reduction, &options);
}

tutti_status tutti__axis_group_compressed(tutti_axis_group *group, int local, tutti_state *state,
                                          const char *name, const char *compression,
                                          const tutti_type *type, float *data,
                                          const tutti_axis_group_call *call)
{
    tutti_comm *comm = only_level(group, local), *inner = comm ? NULL : inner_of(group, local);
    tutti_comm_call plain = plain_of(call), options = plain;
    tutti_status status = TUTTI_OK;
    int64_t count = tutti_type_count(type);
    if (inner)
        TUTTI_TRY(tutti_comm_reduce(inner, data, data, count, TUTTI_F32, TUTTI_SUM, 0, &plain));
    if (comm || local == 0) {
        options.label = call->name;
        status =
            tutti__state_error_feedback(state, local, name, compression, type, &options.compressor);
        if (status == TUTTI_OK)
            status = tutti_comm_all_reduce(comm ? comm : group->world, data, data, count, TUTTI_F32,
                                           TUTTI_SUM, &options);
    }
    TUTTI_TRY(speaker_failed(inner, status));
    return inner ? tutti_comm_broadcast(inner, data, count, TUTTI_F32, 0, &plain) : TUTTI_OK;
}

tutti_status tutti__axis_group_start(tutti_axis_group *group, int local, const char *channel,
                                     const tutti_comm_piece *piece, tutti_dtype dtype,
                                     tutti_reduction reduction, const tutti_axis_group_call *call)
{
    size_t most = sizeof group->pending / sizeof *group->pending, at = 0;
    while (at < most && group->pending[at].request)
        at++;
    if (!group->world || group->inner || call->shards || at == most)
        return tutti__axis_group_all_reduce(group, local, 1, piece, dtype, reduction, call);
    tutti_comm_call options = options_of(group, call, dtype);
    tutti_request *request = NULL;
    options.request = &request;
    options.label = call->name;
    TUTTI_TRY(tutti_comm_all_reduce(group->world, piece->data, piece->data, piece->count, dtype,
                                    reduction, &options));
    snprintf(group->pending[at].channel, sizeof group->pending[at].channel, "%s", channel);
    group->pending[at].request = request;
    return TUTTI_OK;
}

tutti_status tutti__axis_group_finish(tutti_axis_group *group, const char *channel)
{
    for (size_t i = 0; i < sizeof group->pending / sizeof *group->pending; i++) {
        tutti_request *request = group->pending[i].request;
        if (!request || strcmp(group->pending[i].channel, channel) != 0)
            continue;
        group->pending[i].request = NULL;
        return tutti_comm_wait(request);
    }
    return TUTTI_OK;
}

tutti_status tutti__axis_group_reduce(tutti_axis_group *group, int local, void *data, int64_t count,
                                      tutti_dtype dtype, tutti_reduction reduction, int root,
                                      const tutti_axis_group_call *call)
{
    tutti_axis_rank home = group->places[root];
    int speaker = home.process == group->process ? home.place : 0;
    tutti_comm *comm = only_level(group, local), *inner = inner_of(group, local);
    tutti_comm_call plain = plain_of(call);
    tutti_reduction within = on_the_way(reduction);
    if (is_alone(group))
        return TUTTI_OK;
    if (group->deterministic && is_rounded(dtype, reduction))
        return reduce_by_tree(group, local, 1, &(tutti_comm_piece){data, count}, dtype, reduction,
                              call);
    if (comm) /* ranks of the group are those of the level */
        return tutti_comm_reduce(comm, data, data, count, dtype, reduction,
                                 comm == group->world ? home.process : home.place, &plain);
    if (inner)
        TUTTI_TRY(tutti_comm_reduce(inner, data, data, count, dtype, within, speaker, &plain));
    if (local == speaker)
        TUTTI_TRY(speaker_failed(inner, tutti_comm_reduce(group->world, data, data, count, dtype,
                                                          within, home.process, &plain)));
    if (group->ranks[local] == root)
        tutti__fold_finish(dtype, reduction, data, count, group->size);
    return inner ? tutti_comm_barrier(inner, &plain) : TUTTI_OK; /* another may speak next */
}

/* Blocks by rank, as blocks by process and place; each process has room for as many. */
static void pack(const tutti_axis_group *group, const char *by_rank, size_t block, char *ret)
{
    for (int r = 0; r < group->size; r++)
        memcpy(ret + ((size_t)group->places[r].process * (size_t)group->most +
                      (size_t)group->places[r].place) *
                         block,
               by_rank + (size_t)r * block, block);
}

static tutti_status scatter_sums(tutti_axis_group *group, const void *in, char *sums, char *packed,
                                 char *own, int64_t count, tutti_dtype dtype,
                                 tutti_reduction within, const tutti_comm_call *plain)
{
    tutti_comm *inner = inner_of(group, 0);
    size_t block = (size_t)count * tutti_dtype_size(dtype);
    if (inner)
        TUTTI_TRY(tutti_comm_reduce(inner, in, sums, count * group->size, dtype, within, 0, plain));
    if (!group->even)
        pack(group, inner ? sums : in, block, packed);
    return speaker_failed(inner, tutti_comm_reduce_scatter(group->world,
                                                           !group->even ? packed
                                                           : inner      ? sums
                                                                        : in,
                                                           own, count * group->most, dtype, within,
                                                           plain));
}

static tutti_status scatter_by_tree(tutti_axis_group *group, int local, const void *in, void *out,
                                    int64_t count, tutti_dtype dtype, tutti_reduction reduction,
                                    const tutti_axis_group_call *call)
{
    size_t block = (size_t)count * tutti_dtype_size(dtype);
    char *sums = tutti__recycle_take(block * (size_t)group->size + 1);
    if (!sums)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a collective");
    memcpy(sums, in, block * (size_t)group->size);
    tutti_status status = reduce_by_tree(
        group, local, 1, &(tutti_comm_piece){sums, count * group->size}, dtype, reduction, call);
    if (status == TUTTI_OK)
        memcpy(out, sums + (size_t)group->ranks[local] * block, block);
    tutti__recycle_give(sums, block * (size_t)group->size + 1);
    return status;
}

tutti_status tutti__axis_group_reduce_scatter(tutti_axis_group *group, int local, const void *in,
                                              void *out, int64_t count, tutti_dtype dtype,
                                              tutti_reduction reduction,
                                              const tutti_axis_group_call *call)
{
    tutti_comm *comm = only_level(group, local), *inner = inner_of(group, local);
    tutti_comm_call plain = plain_of(call);
    size_t block = (size_t)count * tutti_dtype_size(dtype), whole = block * (size_t)group->size;
    size_t padded = block * (size_t)group->most * (size_t)group->processes;
    char *sums = NULL;
    if (is_alone(group)) {
        memmove(out, in, block);
        return TUTTI_OK;
    }
    if (group->deterministic && is_rounded(dtype, reduction))
        return scatter_by_tree(group, local, in, out, count, dtype, reduction, call);
    if (comm)
        return tutti_comm_reduce_scatter(comm, in, out, count, dtype, reduction, &plain);
    tutti_reduction within = on_the_way(reduction);
    char *packed = NULL, *own = NULL;
    if (local == 0) {
        TUTTI_TRY(speaker_failed(inner,
                                 room(group, whole + padded + block * (size_t)group->most, &sums)));
        packed = sums + whole;
        own = packed + padded;
        memset(packed, 0, padded);
        TUTTI_TRY(scatter_sums(group, in, sums, packed, own, count, dtype, within, &plain));
    } else {
        TUTTI_TRY(
            tutti_comm_reduce(inner, in, NULL, count * group->size, dtype, within, 0, &plain));
    }
    if (inner)
        TUTTI_TRY(tutti_comm_scatter(inner, own, out, count, dtype, 0, &plain));
    else
        memcpy(out, own, block);
    tutti__fold_finish(dtype, reduction, out, count, group->size);
    return TUTTI_OK;
}

/* ---- what is not added ---- */

/* Every process has its blocks one behind the other in `own`; the first of its devices gets those
 * of the others, and puts all in the order of ranks. */
static tutti_status gather_between(tutti_axis_group *group, const void *own, const int64_t *counts,
                                   char *out, size_t size, tutti_dtype dtype,
                                   const tutti_comm_call *options)
{
    int64_t total = 0, *sums = tutti__recycle_zeros((size_t)group->processes, sizeof *sums);
    char *all = out;
    tutti_status status =
        sums ? TUTTI_OK
             : tutti_fail(TUTTI_NO_MEMORY, "no memory to gather from %d", group->processes);
    for (int r = 0; sums && r < group->size; r++) {
        sums[group->places[r].process] += counts[r];
        total += counts[r];
    }
    if (status == TUTTI_OK && !group->in_order)
        status = room(group, (size_t)total * size + 1, &all);
    if (status == TUTTI_OK)
        status = tutti_comm_all_gather_uneven(group->world, own, sums, all, dtype, options);
    size_t at = 0;
    for (int p = 0; status == TUTTI_OK && !group->in_order && p < group->processes; p++)
        for (int i = 0; i < group->counts[p]; i++) {
            int r = rank_of(group, p, i);
            size_t before = 0, bytes = (size_t)counts[r] * size;
            for (int k = 0; k < r; k++)
                before += (size_t)counts[k] * size;
            if (bytes > 0)
                memcpy(out + before, all + at, bytes);
            at += bytes;
        }
    tutti__recycle_free(sums);
    return status;
}

tutti_status tutti__axis_group_all_gather(tutti_axis_group *group, int local, const void *in,
                                          const int64_t *counts, void *out, tutti_dtype dtype,
                                          const tutti_axis_group_call *call)
{
    tutti_comm *comm = only_level(group, local), *inner = inner_of(group, local);
    tutti_comm_call plain = plain_of(call);
    size_t size = tutti_dtype_size(dtype);
    int64_t before = 0, total = 0, few[16], *own = few;
    if (is_alone(group)) {
        if (counts[0] > 0)
            memmove(out, in, (size_t)counts[0] * size);
        return TUTTI_OK;
    }
    if (comm)
        return tutti_comm_all_gather_uneven(comm, in, counts, out, dtype, &plain);
    for (int r = 0; r < group->size; r++) {
        before += group->in_order && r < group->first ? counts[r] : 0;
        total += counts[r];
    }
    const char *blocks = inner ? (char *)out + (size_t)before * size : in;
    if (inner) {
        if (group->local > 16 && !(own = tutti__recycle_zeros((size_t)group->local, sizeof *own)))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory to gather from %d", group->local);
        for (int i = 0; i < group->local; i++)
            own[i] = counts[group->ranks[i]];
        tutti_status status = tutti_comm_all_gather_uneven(
            inner, in, own, (char *)out + (size_t)before * size, dtype, &plain);
        if (own != few)
            tutti__recycle_free(own);
        TUTTI_TRY(status);
    }
    if (local == 0)
        TUTTI_TRY(
            speaker_failed(inner, gather_between(group, blocks, counts, out, size, dtype, &plain)));
    return inner ? tutti_comm_broadcast(inner, out, total, dtype, 0, &plain) : TUTTI_OK;
}

tutti_status tutti__axis_group_broadcast(tutti_axis_group *group, int local, void *data,
                                         int64_t count, tutti_dtype dtype, int root,
                                         const tutti_axis_group_call *call)
{
    tutti_axis_rank home = group->places[root];
    tutti_comm *comm = only_level(group, local), *inner = inner_of(group, local);
    tutti_comm_call plain = plain_of(call);
    int speaker = home.process == group->process ? home.place : 0;
    if (is_alone(group))
        return TUTTI_OK;
    if (comm)
        return tutti_comm_broadcast(comm, data, count, dtype,
                                    comm == group->world ? home.process : home.place, &plain);
    if (local == speaker)
        TUTTI_TRY(speaker_failed(
            inner, tutti_comm_broadcast(group->world, data, count, dtype, home.process, &plain)));
    return inner ? tutti_comm_broadcast(inner, data, count, dtype, speaker, &plain) : TUTTI_OK;
}

/* Of what this process's devices give, [place][rank], what each other one gets, by process and
 * places; and back. */
static void turn(const tutti_axis_group *group, char *by_rank, char *by_process, size_t block,
                 bool back)
{
    size_t most = (size_t)group->most;
    for (int i = 0; i < group->local; i++)
        for (int r = 0; r < group->size; r++) {
            size_t p = (size_t)group->places[r].process, j = (size_t)group->places[r].place;
            char *one = by_rank + ((size_t)i * (size_t)group->size + (size_t)r) * block;
            size_t from = back ? j : (size_t)i, to = back ? (size_t)i : j;
            char *other = by_process + ((p * most + from) * most + to) * block;
            memcpy(back ? one : other, back ? other : one, block);
        }
}

tutti_status tutti__axis_group_all_to_all(tutti_axis_group *group, int local, const void *in,
                                          void *out, int64_t count, tutti_dtype dtype,
                                          const tutti_axis_group_call *call)
{
    tutti_comm *comm = only_level(group, local), *inner = inner_of(group, local);
    tutti_comm_call plain = plain_of(call);
    size_t block = (size_t)count * tutti_dtype_size(dtype), most = (size_t)group->most;
    size_t mine = block * (size_t)group->size * (size_t)group->local,
           padded = block * most * most * (size_t)group->processes;
    int64_t each = count * group->size;
    char *all = NULL;
    if (is_alone(group)) {
        memmove(out, in, block);
        return TUTTI_OK;
    }
    if (comm)
        return tutti_comm_all_to_all(comm, in, out, count, dtype, &plain);
    if (local == 0)
        TUTTI_TRY(speaker_failed(inner, room(group, mine + 2 * padded, &all)));
    if (inner)
        TUTTI_TRY(tutti_comm_gather(inner, in, all, each, dtype, 0, &plain));
    else
        memcpy(all, in, mine);
    if (local == 0) {
        char *given = all + mine, *got = given + padded;
        memset(given, 0, padded);
        turn(group, all, given, block, false);
        TUTTI_TRY(speaker_failed(inner, tutti_comm_all_to_all(group->world, given, got,
                                                              count * group->most * group->most,
                                                              dtype, &plain)));
        turn(group, all, got, block, true);
    }
    if (inner)
        return tutti_comm_scatter(inner, all, out, each, dtype, 0, &plain);
    memcpy(out, all, mine);
    return TUTTI_OK;
}

tutti_status tutti__axis_group_barrier(tutti_axis_group *group, int local,
                                       const tutti_axis_group_call *call)
{
    tutti_comm *comm = only_level(group, local), *inner = inner_of(group, local);
    tutti_comm_call plain = plain_of(call);
    if (is_alone(group))
        return TUTTI_OK;
    if (comm)
        return tutti_comm_barrier(comm, &plain);
    if (inner)
        TUTTI_TRY(tutti_comm_barrier(inner, &plain));
    if (local == 0)
        TUTTI_TRY(speaker_failed(inner, tutti_comm_barrier(group->world, &plain)));
    return inner ? tutti_comm_barrier(inner, &plain) : TUTTI_OK;
}
