/* team.c: see team.h. Where a process has several replicas, these come together first: the first of
 * them speaks for all with the other processes. */
#include "dist/team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/world.h"
#include "dist/team_shards.h"

tutti_status tutti__team_create(tutti_comm *world, int local, const char *const *devices,
                                const char *algorithm, tutti_team **ret)
{
    tutti_team *team = calloc(1, sizeof *team);
    tutti_status status = TUTTI_OK;
    if (team) {
        tutti__team_runs_init(team);
        team->world = world;
        team->local = local;
        team->size = local * (world ? tutti_comm_size(world) : 1);
        team->first = local * (world ? tutti_comm_rank(world) : 0);
        team->algorithm = algorithm;
        team->devices = calloc((size_t)local, sizeof *team->devices);
        team->over = calloc((size_t)local, sizeof *team->over);
        team->inner = local > 1 ? calloc((size_t)local, sizeof *team->inner) : NULL;
    }
    if (!team || !team->devices || !team->over || (local > 1 && !team->inner))
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for %d replicas", local);
    for (int i = 0; status == TUTTI_OK && i < local; i++)
        snprintf(team->devices[i], sizeof team->devices[i], "%s", devices[i]);
    if (status == TUTTI_OK && local > 1)
        status = tutti_comm_local(local, NULL, team->inner);
    if (status == TUTTI_OK) {
        *ret = team;
        return TUTTI_OK;
    }
    if (team)
        tutti__team_close(team);
    else
        tutti_comm_close(world);
    return status;
}

tutti_status tutti__team_close(tutti_team *team)
{
    if (!team)
        return TUTTI_OK;
    for (size_t i = 0; i < sizeof team->pending / sizeof *team->pending; i++)
        if (team->pending[i].request) /* of a run that failed */
            (void)tutti_comm_wait(team->pending[i].request);
    for (int i = 0; team->inner && i < team->local; i++)
        tutti_comm_close(team->inner[i]);
    tutti__team_trace_close(team);
    tutti_status status = tutti_comm_close(team->world);
    TUTTI_VEC_FREE(&team->agreed);
    free(team->over);
    free(team->diaries);
    free(team->cost);
    free(team->inner);
    free(team->devices);
    pthread_mutex_destroy(&team->runs_lock);
    pthread_cond_destroy(&team->met);
    free(team);
    return status;
}

int tutti__team_find(const tutti_team *team, const char *device)
{
    for (int i = 0; i < team->local; i++)
        if (strcmp(team->devices[i], device) == 0)
            return i;
    return -1;
}

static tutti_comm_call options_of(const tutti_team *team, const tutti_team_call *call,
                                  tutti_dtype dtype)
{
    tutti_comm_call options = {.struct_size = sizeof options,
                               .timeout = call->timeout,
                               .shards = call->shards,
                               .folded = call->shards > 0,
                               .algorithm = call->shards ? NULL : team->algorithm};
    if (dtype == TUTTI_F32 && (call->wire == TUTTI_BF16 || call->wire == TUTTI_F16))
        options.wire = call->wire;
    return options;
}

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
static tutti_status reduce_on_two_levels(tutti_team *team, int local, int count,
                                         const tutti_comm_piece *pieces, tutti_dtype dtype,
                                         tutti_reduction reduction, const tutti_comm_call *options)
{
    tutti_comm *inner = team->inner[local];
    tutti_reduction within = reduction == TUTTI_MEAN ? TUTTI_SUM : reduction;
    tutti_comm_call plain = {.struct_size = sizeof plain, .timeout = options->timeout};
    for (int i = 0; i < count; i++)
        TUTTI_TRY(tutti_comm_reduce(inner, pieces[i].data, pieces[i].data, pieces[i].count, dtype,
                                    within, 0, &plain));
    if (local == 0) {
        tutti_status status = reduce_pieces(team->world, count, pieces, dtype, within, options);
        if (status != TUTTI_OK) {
            tutti_comm_abort(inner, tutti_error_message());
            return status;
        }
    }
    for (int i = 0; i < count; i++)
        TUTTI_TRY(tutti_comm_broadcast(inner, pieces[i].data, pieces[i].count, dtype, 0, &plain));
    return TUTTI_OK;
}

tutti_status tutti__team_all_reduce(tutti_team *team, int local, int count,
                                    const tutti_comm_piece *pieces, tutti_dtype dtype,
                                    tutti_reduction reduction, const tutti_team_call *call)
{
    tutti_comm_call options = options_of(team, call, dtype);
    if (!team->world && !team->inner)
        return TUTTI_OK;
    if (team->world && team->inner && call->shards)
        return tutti__team_fold_shards(team, local, pieces, dtype, &options);
    if (team->world && team->inner)
        return reduce_on_two_levels(team, local, count, pieces, dtype, reduction, &options);
    return reduce_pieces(team->world ? team->world : team->inner[local], count, pieces, dtype,
                         reduction, &options);
}

tutti_status tutti__team_compressed(tutti_team *team, int local, tutti_state *state,
                                    const char *name, const char *compression,
                                    const tutti_type *type, float *data,
                                    const tutti_team_call *call)
{
    bool levels = team->world && team->inner;
    tutti_comm *inner = levels ? team->inner[local] : NULL;
    tutti_comm_call plain = {.struct_size = sizeof plain, .timeout = call->timeout};
    tutti_comm_call options = plain;
    tutti_status status = TUTTI_OK;
    int64_t count = tutti_type_count(type);
    if (levels)
        TUTTI_TRY(tutti_comm_reduce(inner, data, data, count, TUTTI_F32, TUTTI_SUM, 0, &plain));
    if (!levels || local == 0) {
        options.label = call->name;
        status = tutti__state_left_out(state, local, name, compression, type, &options.compressor);
        if (status == TUTTI_OK)
            status = tutti_comm_all_reduce(team->world ? team->world : team->inner[local], data,
                                           data, count, TUTTI_F32, TUTTI_SUM, &options);
    }
    if (levels && status != TUTTI_OK)
        tutti_comm_abort(inner, tutti_error_message());
    return levels && status == TUTTI_OK
               ? tutti_comm_broadcast(inner, data, count, TUTTI_F32, 0, &plain)
               : status;
}

tutti_status tutti__team_start(tutti_team *team, int local, const char *channel,
                               const tutti_comm_piece *piece, tutti_dtype dtype,
                               tutti_reduction reduction, const tutti_team_call *call)
{
    size_t most = sizeof team->pending / sizeof *team->pending, at = 0;
    while (at < most && team->pending[at].request)
        at++;
    if (!team->world || team->inner || call->shards || at == most)
        return tutti__team_all_reduce(team, local, 1, piece, dtype, reduction, call);
    tutti_comm_call options = options_of(team, call, dtype);
    tutti_request *request = NULL;
    options.request = &request;
    options.label = call->name;
    TUTTI_TRY(tutti_comm_all_reduce(team->world, piece->data, piece->data, piece->count, dtype,
                                    reduction, &options));
    snprintf(team->pending[at].channel, sizeof team->pending[at].channel, "%s", channel);
    team->pending[at].request = request;
    return TUTTI_OK;
}

tutti_status tutti__team_finish(tutti_team *team, const char *channel)
{
    for (size_t i = 0; i < sizeof team->pending / sizeof *team->pending; i++) {
        tutti_request *request = team->pending[i].request;
        if (!request || strcmp(team->pending[i].channel, channel) != 0)
            continue;
        team->pending[i].request = NULL;
        return tutti_comm_wait(request);
    }
    return TUTTI_OK;
}

/* Every process fills its own blocks, its first replica the others'. */
static tutti_status gather_on_two_levels(tutti_team *team, int local, const int64_t *counts,
                                         char *out, size_t size, tutti_dtype dtype,
                                         const tutti_comm_call *options)
{
    tutti_comm *inner = team->inner[local];
    int processes = team->size / team->local;
    int64_t total = 0, *sums = calloc((size_t)processes, sizeof *sums);
    tutti_status status =
        sums ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory to gather from %d", processes);
    int64_t before = 0;
    for (int r = 0; sums && r < team->size; r++) {
        sums[r / team->local] += counts[r];
        before += r < team->first ? counts[r] : 0;
        total += counts[r];
    }
    if (status == TUTTI_OK && local == 0)
        status = tutti_comm_all_gather_uneven(team->world, out + (size_t)before * size, sums, out,
                                              dtype, options);
    free(sums);
    if (status == TUTTI_OK)
        status = tutti_comm_broadcast(inner, out, total, dtype, 0, options);
    else
        tutti_comm_abort(inner, tutti_error_message());
    return status;
}

tutti_status tutti__team_all_gather(tutti_team *team, int local, const void *in,
                                    const int64_t *counts, void *out, tutti_dtype dtype,
                                    const tutti_team_call *call)
{
    tutti_comm_call options = {.struct_size = sizeof options, .timeout = call->timeout};
    size_t size = tutti_dtype_size(dtype);
    if (!team->world && !team->inner) {
        if (counts[0] > 0)
            memmove(out, in, (size_t)counts[0] * size);
        return TUTTI_OK;
    }
    if (!team->inner || !team->world)
        return tutti_comm_all_gather_uneven(team->world ? team->world : team->inner[local], in,
                                            counts, out, dtype, &options);
    int64_t before = 0;
    for (int r = 0; r < team->first; r++)
        before += counts[r];
    TUTTI_TRY(tutti_comm_all_gather_uneven(team->inner[local], in, counts + team->first,
                                           (char *)out + (size_t)before * size, dtype, &options));
    return gather_on_two_levels(team, local, counts, out, size, dtype, &options);
}

tutti_status tutti__team_broadcast(tutti_team *team, int local, void *data, int64_t count,
                                   tutti_dtype dtype, int root, const tutti_team_call *call)
{
    tutti_comm_call options = {.struct_size = sizeof options, .timeout = call->timeout};
    if (!team->world && !team->inner)
        return TUTTI_OK;
    if (!team->inner)
        return tutti_comm_broadcast(team->world, data, count, dtype, root, &options);
    if (team->world && root / team->local == team->first / team->local)
        TUTTI_TRY(tutti_comm_broadcast(team->inner[local], data, count, dtype, root % team->local,
                                       &options));
    if (team->world && local == 0)
        TUTTI_TRY(
            tutti_comm_broadcast(team->world, data, count, dtype, root / team->local, &options));
    return tutti_comm_broadcast(team->inner[local], data, count, dtype, team->world ? 0 : root,
                                &options);
}
