/* bucket.c: many small tensors in one operation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/require.h"
#include "comm/comm.h"
#include "comm/group/overlap.h"

enum { BUCKET_BYTES = 4 << 20, BUCKET_COUNT = 1000 };

/* One call for many tensors. */
typedef struct many {
    tutti_comm_job job;
    int piece_count, most;      /* pieces of a bucket */
    int64_t bytes, deadline_ns; /* of a bucket */
    tutti_dtype dtype;
    tutti_reduction reduction;
    tutti_comm_call call;
    tutti_comm_piece pieces[];
} many;

/* Pieces [first, last) one behind the other, reduced, and back. */
static tutti_status reduce_bucket(tutti_comm *comm, const many *m, int first, int last)
{
    const tutti_comm_piece *pieces = m->pieces;
    char *memory = comm->bucket;
    size_t element = tutti_dtype_size(m->dtype);
    int64_t total = 0;
    uint64_t sizes = 1;
    if (last - first == 1)
        return tutti__all_reduce_now(comm, pieces[first].data, pieces[first].count, 0, m->dtype,
                                     m->reduction, &m->call, m->deadline_ns);
    for (int i = first; i < last; i++) {
        if (pieces[i].count > 0)
            memcpy(memory + (size_t)total * element, pieces[i].data,
                   (size_t)pieces[i].count * element);
        total += pieces[i].count;
        sizes = tutti__hash_mix(sizes, (uint64_t)pieces[i].count);
    }
    TUTTI_TRY(tutti__all_reduce_now(comm, memory, total, sizes, m->dtype, m->reduction, &m->call,
                                    m->deadline_ns));
    total = 0;
    for (int i = first; i < last; i++) {
        if (pieces[i].count > 0)
            memcpy(pieces[i].data, memory + (size_t)total * element,
                   (size_t)pieces[i].count * element);
        total += pieces[i].count;
    }
    return TUTTI_OK;
}

/* How many pieces from `first` on go together. */
static int bucket_end(const many *m, int first)
{
    int64_t most_elements = m->bytes / (int64_t)tutti_dtype_size(m->dtype);
    int64_t total = m->pieces[first].count;
    int last = first + 1;
    while (last < m->piece_count && last - first < m->most &&
           m->pieces[last].count <= most_elements - total)
        total += m->pieces[last++].count;
    return last;
}

/* Bytes of the largest bucket of several pieces. */
static int64_t bytes_needed(const many *m)
{
    int64_t most = 0;
    for (int first = 0; first < m->piece_count;) {
        int last = bucket_end(m, first);
        int64_t total = 0;
        for (int i = first; i < last; i++)
            total += m->pieces[i].count;
        most = last - first > 1 && total > most ? total : most;
        first = last;
    }
    return most * (int64_t)tutti_dtype_size(m->dtype);
}

/* Memory that all ranks of the machine can reach, or private memory where the arena is full. A rank
 * without any ends the call for all, which wait for it. */
static tutti_status bucket_memory(tutti_comm *comm, int64_t bytes)
{
    if (comm->bucket_bytes >= (size_t)bytes)
        return TUTTI_OK;
    tutti_comm_free(comm, comm->bucket);
    comm->bucket = NULL;
    comm->bucket_bytes = 0;
    if (tutti_comm_allocate(comm, bytes, &comm->bucket) != TUTTI_OK)
        comm->bucket = tutti__comm_private_memory(bytes);
    if (!comm->bucket) {
        char why[200];
        snprintf(why, sizeof why, "rank %d has no memory for %lld bytes of tensors in one bucket",
                 comm->fabric->rank, (long long)bytes);
        if (comm->fabric->membership)
            tutti__membership_break(comm->fabric->membership, TUTTI_NO_MEMORY, why);
        return tutti__fabric_break(comm->fabric, TUTTI_NO_MEMORY, why);
    }
    comm->bucket_bytes = (size_t)bytes;
    return TUTTI_OK;
}

static tutti_status bucket_run(tutti_comm *comm, tutti_comm_job *job)
{
    const many *m = (const many *)(const void *)job;
    TUTTI_TRY(bucket_memory(comm, bytes_needed(m)));
    for (int first = 0; first < m->piece_count;) {
        int last = bucket_end(m, first);
        TUTTI_TRY(reduce_bucket(comm, m, first, last));
        first = last;
    }
    return TUTTI_OK;
}

static tutti_status bucket_check(const tutti_comm_piece *pieces, int count, tutti_dtype dtype,
                                 const tutti_comm_call *call)
{
    if (call->shards || call->compressor || tutti_dtype_size(dtype) == 0)
        return tutti_fail(TUTTI_INVALID,
                          "all_reduce of many tensors: it cannot be sharded or have one "
                          "compressor for all; type is %s",
                          tutti_dtype_name(dtype));
    for (int i = 0; i < count; i++) {
        if (pieces[i].count < 0)
            return tutti_fail(TUTTI_INVALID,
                              "all_reduce of many tensors: number %d has %lld "
                              "elements",
                              i, (long long)pieces[i].count);
        if (pieces[i].count > 0 && !pieces[i].data)
            return tutti_fail(TUTTI_INVALID, "all_reduce of many tensors: number %d is NULL", i);
    }
    TUTTI_TRY(tutti__pieces_apart(pieces, count, tutti_dtype_size(dtype)));
    return tutti__comm_check_seconds(".timeout", call->timeout);
}

tutti_status tutti_comm_all_reduce_many(tutti_comm *comm, const tutti_comm_piece *pieces,
                                        int piece_count, tutti_dtype dtype,
                                        tutti_reduction reduction, const tutti_comm_bucket *bucket,
                                        const tutti_comm_call *given)
{
    TUTTI_REQUIRE(comm);
    if (piece_count < 0)
        return tutti_fail(TUTTI_INVALID, "all_reduce of %d tensors", piece_count);
    if (piece_count > 0)
        TUTTI_REQUIRE(pieces);
    if (bucket && (bucket->bucket_bytes < 0 || bucket->bucket_count < 0))
        return tutti_fail(TUTTI_INVALID, "buckets of %lld bytes and %d tensors; 0: the default",
                          (long long)bucket->bucket_bytes, (int)bucket->bucket_count);
    tutti_comm_call call;
    TUTTI_TRY(tutti__call_full("all_reduce of many tensors", given, &call));
    TUTTI_TRY(bucket_check(pieces, piece_count, dtype, &call));
    size_t list = (size_t)(piece_count > 0 ? piece_count : 0) * sizeof *pieces;
    many *m = malloc(sizeof *m + list);
    if (!m)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a list of %d tensors", piece_count);
    *m = (many){.job = {bucket_run},
                .piece_count = piece_count,
                .most = bucket && bucket->bucket_count > 0 ? bucket->bucket_count : BUCKET_COUNT,
                .bytes = bucket && bucket->bucket_bytes > 0 ? bucket->bucket_bytes : BUCKET_BYTES,
                .deadline_ns = tutti__comm_deadline(comm, &call),
                .dtype = dtype,
                .reduction = reduction,
                .call = call};
    if (list)
        memcpy(m->pieces, pieces, list);
    m->call.request = NULL;
    /* The list's label must outlive the caller. */
    m->call.label = call.label ? tutti__comm_label("", call.label) : NULL;
    if (call.request)
        return tutti__worker_job(comm, &m->job, call.request);
    tutti_status status = TUTTI_OK;
    if (comm->worker)
        status = tutti__worker_drain(comm);
    if (status == TUTTI_OK)
        status = bucket_run(comm, &m->job);
    free(m);
    return status;
}
