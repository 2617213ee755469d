/* axis_group.c: see axis_group.h. Where a process has several replicas, these come together first:
 * the first of them speaks for all with the other processes. */
#include "parallel/collectives/axis_group.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/recycle.h"
#include "base/status.h"
#include "base/world.h"
#include "comm/comm.h"
#include "parallel/collectives/axis_group_sums.h"

tutti_status tutti__axis_group_create(tutti_comm *world, int local, const char *const *devices,
                                      const char *algorithm, tutti_axis_group **ret)
{
    tutti_axis_group *axis_group = calloc(1, sizeof *axis_group);
    tutti_status status = TUTTI_OK;
    if (axis_group) {
        tutti__axis_group_runs_init(axis_group);
        axis_group->world = world;
        axis_group->local = local;
        axis_group->size = local * (world ? tutti_comm_size(world) : 1);
        axis_group->first = local * (world ? tutti_comm_rank(world) : 0);
        axis_group->algorithm = algorithm;
        axis_group->devices = calloc((size_t)local, sizeof *axis_group->devices);
        axis_group->over = calloc((size_t)local, sizeof *axis_group->over);
        axis_group->inner = local > 1 ? calloc((size_t)local, sizeof *axis_group->inner) : NULL;
    }
    if (!axis_group || !axis_group->devices || !axis_group->over ||
        (local > 1 && !axis_group->inner))
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for %d replicas", local);
    for (int i = 0; status == TUTTI_OK && i < local; i++)
        snprintf(axis_group->devices[i], sizeof axis_group->devices[i], "%s", devices[i]);
    if (status == TUTTI_OK && local > 1)
        status = tutti_comm_local(local, NULL, axis_group->inner);
    if (status == TUTTI_OK) {
        *ret = axis_group;
        return TUTTI_OK;
    }
    if (axis_group)
        tutti__axis_group_close(axis_group);
    else
        tutti_comm_close(world);
    return status;
}

tutti_status tutti__axis_group_close(tutti_axis_group *axis_group)
{
    if (!axis_group)
        return TUTTI_OK;
    for (size_t i = 0; i < sizeof axis_group->pending / sizeof *axis_group->pending; i++)
        if (axis_group->pending[i].request) /* of a run that failed */
            (void)tutti_comm_wait(axis_group->pending[i].request);
    for (int i = 0; axis_group->inner && i < axis_group->local; i++)
        tutti_comm_close(axis_group->inner[i]);
    tutti__axis_group_trace_close(axis_group);
    tutti_status status = tutti_comm_close(axis_group->world);
    TUTTI_VEC_FREE(&axis_group->agreed);
    TUTTI_VEC_FREE(&axis_group->states);
    pthread_mutex_destroy(&axis_group->surviving);
    free(axis_group->over);
    free(axis_group->diaries);
    free(axis_group->cost);
    free(axis_group->inner);
    free(axis_group->devices);
    pthread_mutex_destroy(&axis_group->runs_lock);
    pthread_cond_destroy(&axis_group->met);
    free(axis_group);
    return status;
}

int tutti__axis_group_find(const tutti_axis_group *axis_group, const char *device)
{
    for (int i = 0; i < axis_group->local; i++)
        if (strcmp(axis_group->devices[i], device) == 0)
            return i;
    return -1;
}

static tutti_comm_call options_of(const tutti_axis_group *axis_group,
                                  const tutti_axis_group_call *call, tutti_dtype dtype)
{
    tutti_comm_call options = {.struct_size = sizeof options,
                               .timeout = call->timeout,
                               .shards = call->shards,
                               .folded = call->shards > 0,
                               .algorithm = call->shards ? NULL : axis_group->algorithm};
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
static tutti_status reduce_on_two_levels(tutti_axis_group *axis_group, int local, int count,
                                         const tutti_comm_piece *pieces, tutti_dtype dtype,
                                         tutti_reduction reduction, const tutti_comm_call *options)
{
    tutti_comm *inner = axis_group->inner[local];
    tutti_reduction within = reduction == TUTTI_MEAN ? TUTTI_SUM : reduction;
    tutti_comm_call plain = {.struct_size = sizeof plain, .timeout = options->timeout};
    for (int i = 0; i < count; i++)
        TUTTI_TRY(tutti_comm_reduce(inner, pieces[i].data, pieces[i].data, pieces[i].count, dtype,
                                    within, 0, &plain));
    if (local == 0) {
        tutti_status status =
            reduce_pieces(axis_group->world, count, pieces, dtype, within, options);
        if (status != TUTTI_OK) {
            tutti_comm_abort(inner, tutti_error_message());
            return status;
        }
    }
    for (int i = 0; i < count; i++)
        TUTTI_TRY(tutti_comm_broadcast(inner, pieces[i].data, pieces[i].count, dtype, 0, &plain));
    return TUTTI_OK;
}

tutti_status tutti__axis_group_all_reduce(tutti_axis_group *axis_group, int local, int count,
                                          const tutti_comm_piece *pieces, tutti_dtype dtype,
                                          tutti_reduction reduction,
                                          const tutti_axis_group_call *call)
{
    tutti_comm_call options = options_of(axis_group, call, dtype);
    if (!axis_group->world && !axis_group->inner)
        return TUTTI_OK;
    if (axis_group->world && axis_group->inner && call->shards)
        return tutti__axis_group_fold_shards(axis_group, local, pieces, dtype, &options);
    if (axis_group->world && axis_group->inner)
        return reduce_on_two_levels(axis_group, local, count, pieces, dtype, reduction, &options);
    return reduce_pieces(axis_group->world ? axis_group->world : axis_group->inner[local], count,
                         pieces, dtype, reduction, &options);
}

tutti_status tutti__axis_group_compressed(tutti_axis_group *axis_group, int local,
                                          tutti_state *state, const char *name,
                                          const char *compression, const tutti_type *type,
                                          float *data, const tutti_axis_group_call *call)
{
    bool levels = axis_group->world && axis_group->inner;
    tutti_comm *inner = levels ? axis_group->inner[local] : NULL;
    tutti_comm_call plain = {.struct_size = sizeof plain, .timeout = call->timeout};
    tutti_comm_call options = plain;
    tutti_status status = TUTTI_OK;
    int64_t count = tutti_type_count(type);
    if (levels)
        TUTTI_TRY(tutti_comm_reduce(inner, data, data, count, TUTTI_F32, TUTTI_SUM, 0, &plain));
    if (!levels || local == 0) {
        options.label = call->name;
        status =
            tutti__state_error_feedback(state, local, name, compression, type, &options.compressor);
        if (status == TUTTI_OK)
            status = tutti_comm_all_reduce(axis_group->world ? axis_group->world
                                                             : axis_group->inner[local],
                                           data, data, count, TUTTI_F32, TUTTI_SUM, &options);
    }
    if (levels && status != TUTTI_OK)
        tutti_comm_abort(inner, tutti_error_message());
    return levels && status == TUTTI_OK
               ? tutti_comm_broadcast(inner, data, count, TUTTI_F32, 0, &plain)
               : status;
}

tutti_status tutti__axis_group_start(tutti_axis_group *axis_group, int local, const char *channel,
                                     const tutti_comm_piece *piece, tutti_dtype dtype,
                                     tutti_reduction reduction, const tutti_axis_group_call *call)
{
    size_t most = sizeof axis_group->pending / sizeof *axis_group->pending, at = 0;
    while (at < most && axis_group->pending[at].request)
        at++;
    if (!axis_group->world || axis_group->inner || call->shards || at == most)
        return tutti__axis_group_all_reduce(axis_group, local, 1, piece, dtype, reduction, call);
    tutti_comm_call options = options_of(axis_group, call, dtype);
    tutti_request *request = NULL;
    options.request = &request;
    options.label = call->name;
    TUTTI_TRY(tutti_comm_all_reduce(axis_group->world, piece->data, piece->data, piece->count,
                                    dtype, reduction, &options));
    snprintf(axis_group->pending[at].channel, sizeof axis_group->pending[at].channel, "%s",
             channel);
    axis_group->pending[at].request = request;
    return TUTTI_OK;
}

tutti_status tutti__axis_group_finish(tutti_axis_group *axis_group, const char *channel)
{
    for (size_t i = 0; i < sizeof axis_group->pending / sizeof *axis_group->pending; i++) {
        tutti_request *request = axis_group->pending[i].request;
        if (!request || strcmp(axis_group->pending[i].channel, channel) != 0)
            continue;
        axis_group->pending[i].request = NULL;
        return tutti_comm_wait(request);
    }
    return TUTTI_OK;
}

/* Every process fills its own blocks, its first replica the others'. */
static tutti_status gather_on_two_levels(tutti_axis_group *axis_group, int local,
                                         const int64_t *counts, char *out, size_t size,
                                         tutti_dtype dtype, const tutti_comm_call *options)
{
    tutti_comm *inner = axis_group->inner[local];
    int processes = axis_group->size / axis_group->local;
    int64_t total = 0, *sums = tutti__recycle_zeros((size_t)processes, sizeof *sums);
    tutti_status status =
        sums ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory to gather from %d", processes);
    int64_t before = 0;
    for (int r = 0; sums && r < axis_group->size; r++) {
        sums[r / axis_group->local] += counts[r];
        before += r < axis_group->first ? counts[r] : 0;
        total += counts[r];
    }
    if (status == TUTTI_OK && local == 0)
        status = tutti_comm_all_gather_uneven(axis_group->world, out + (size_t)before * size, sums,
                                              out, dtype, options);
    tutti__recycle_free(sums);
    if (status == TUTTI_OK)
        status = tutti_comm_broadcast(inner, out, total, dtype, 0, options);
    else
        tutti_comm_abort(inner, tutti_error_message());
    return status;
}

tutti_status tutti__axis_group_all_gather(tutti_axis_group *axis_group, int local, const void *in,
                                          const int64_t *counts, void *out, tutti_dtype dtype,
                                          const tutti_axis_group_call *call)
{
    tutti_comm_call options = {.struct_size = sizeof options, .timeout = call->timeout};
    size_t size = tutti_dtype_size(dtype);
    if (!axis_group->world && !axis_group->inner) {
        if (counts[0] > 0)
            memmove(out, in, (size_t)counts[0] * size);
        return TUTTI_OK;
    }
    if (!axis_group->inner || !axis_group->world)
        return tutti_comm_all_gather_uneven(axis_group->world ? axis_group->world
                                                              : axis_group->inner[local],
                                            in, counts, out, dtype, &options);
    int64_t before = 0;
    for (int r = 0; r < axis_group->first; r++)
        before += counts[r];
    TUTTI_TRY(tutti_comm_all_gather_uneven(axis_group->inner[local], in, counts + axis_group->first,
                                           (char *)out + (size_t)before * size, dtype, &options));
    return gather_on_two_levels(axis_group, local, counts, out, size, dtype, &options);
}

tutti_status tutti__axis_group_broadcast(tutti_axis_group *axis_group, int local, void *data,
                                         int64_t count, tutti_dtype dtype, int root,
                                         const tutti_axis_group_call *call)
{
    tutti_comm_call options = {.struct_size = sizeof options, .timeout = call->timeout};
    if (!axis_group->world && !axis_group->inner)
        return TUTTI_OK;
    if (!axis_group->inner)
        return tutti_comm_broadcast(axis_group->world, data, count, dtype, root, &options);
    if (axis_group->world && root / axis_group->local == axis_group->first / axis_group->local)
        TUTTI_TRY(tutti_comm_broadcast(axis_group->inner[local], data, count, dtype,
                                       root % axis_group->local, &options));
    if (axis_group->world && local == 0)
        TUTTI_TRY(tutti_comm_broadcast(axis_group->world, data, count, dtype,
                                       root / axis_group->local, &options));
    return tutti_comm_broadcast(axis_group->inner[local], data, count, dtype,
                                axis_group->world ? 0 : root, &options);
}

/* ---- runs whose devices meet ---- */

void tutti__axis_group_runs_init(tutti_axis_group *axis_group)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&axis_group->runs_lock, NULL);
    pthread_mutex_init(&axis_group->surviving, NULL);
    pthread_cond_init(&axis_group->met, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* Under the lock; false when it is too late. */
static bool wait_for_others(tutti_axis_group *axis_group, int64_t deadline_ns)
{
    struct timespec until = {.tv_sec = (time_t)(deadline_ns / 1000000000),
                             .tv_nsec = (long)(deadline_ns % 1000000000)};
    int late = 0;
    while (axis_group->meeting && !late)
        late = pthread_cond_timedwait(&axis_group->met, &axis_group->runs_lock, &until);
    return !axis_group->meeting;
}

tutti_status tutti__axis_group_enter(tutti_axis_group *axis_group, bool meets, int64_t deadline_ns)
{
    pthread_mutex_lock(&axis_group->runs_lock);
    bool free = !meets || wait_for_others(axis_group, deadline_ns);
    if (free && meets)
        axis_group->meeting = true;
    if (free)
        axis_group->runs++;
    pthread_mutex_unlock(&axis_group->runs_lock);
    return free ? TUTTI_OK
                : tutti_fail(TUTTI_DEADLINE,
                             "another run of the same strategy had not ended before the deadline; "
                             "does it wait for this one?");
}

static bool is_agreed(tutti_axis_group *axis_group, uint64_t schedule)
{
    bool found = false;
    pthread_mutex_lock(&axis_group->runs_lock);
    for (size_t i = axis_group->agreed.count; !found && i-- > 0;)
        found = axis_group->agreed.data[i] == schedule;
    pthread_mutex_unlock(&axis_group->runs_lock);
    return found;
}

static tutti_status note_agreed(tutti_axis_group *axis_group, uint64_t schedule)
{
    pthread_mutex_lock(&axis_group->runs_lock);
    bool ok = TUTTI_VEC_PUSH(&axis_group->agreed, schedule);
    pthread_mutex_unlock(&axis_group->runs_lock);
    return ok ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a schedule");
}

tutti_status tutti__axis_group_agree(tutti_axis_group *axis_group, int64_t count,
                                     const char *const *texts, int64_t deadline_ns)
{
    uint64_t schedule = (uint64_t)count;
    for (int64_t i = 0; i < count; i++)
        schedule = tutti__hash_mix(tutti__hash_string(schedule, texts[i]), (uint64_t)i);
    if (!is_agreed(axis_group, schedule)) {
        double left = 1e-9 * (double)(deadline_ns - tutti__now_ns());
        tutti_comm_call call = {.struct_size = sizeof call, .timeout = fmax(left, 1e-3)};
        TUTTI_TRY(
            tutti_comm_agree(axis_group->world, "program of the step", texts, count, 0, &call));
        TUTTI_TRY(note_agreed(axis_group, schedule));
    }
    tutti__comm_mark(axis_group->world, schedule);
    return TUTTI_OK;
}

void tutti__axis_group_cancel(tutti_axis_group *axis_group, const char *why)
{
    pthread_mutex_lock(&axis_group->runs_lock);
    if (!axis_group->cancelled)
        tutti_comm_abort(axis_group->inner[0], why);
    axis_group->cancelled = true;
    pthread_mutex_unlock(&axis_group->runs_lock);
}

/* Without memory for another group the old one stays and says why it ended. */
static void renew(tutti_axis_group *axis_group)
{
    tutti_comm **fresh = calloc((size_t)axis_group->local, sizeof *fresh);
    if (fresh && tutti_comm_local(axis_group->local, NULL, fresh) == TUTTI_OK) {
        for (int i = 0; i < axis_group->local; i++) {
            tutti_comm_close(axis_group->inner[i]);
            axis_group->inner[i] = fresh[i];
        }
        axis_group->cancelled = false;
    }
    free(fresh);
}

void tutti__axis_group_leave(tutti_axis_group *axis_group, bool meets)
{
    tutti_error before;
    pthread_mutex_lock(&axis_group->runs_lock);
    if (meets) {
        axis_group->meeting = false;
        pthread_cond_signal(&axis_group->met);
    }
    if (--axis_group->runs == 0 && axis_group->cancelled) {
        tutti__error_capture(TUTTI_OK, &before);
        renew(axis_group);
        tutti__error_restore(&before);
    }
    pthread_mutex_unlock(&axis_group->runs_lock);
}

/* Ends of queues, deadlines and what others failed with are no failures of this process: the first
 * two are to be tried again, and of the last all know. */
void tutti__axis_group_fail(tutti_axis_group *axis_group, tutti_status status)
{
    tutti_error error;
    if (!axis_group || !axis_group->world || status == TUTTI_CLOSED || status == TUTTI_DEADLINE ||
        status == TUTTI_CANCELLED)
        return;
    tutti__error_capture(status, &error);
    tutti_comm_abort(axis_group->world, error.message);
    tutti__error_restore(&error);
}
