/* bucket.c: many small tensors in one operation. */
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "comm/comm.h"

enum { BUCKET_BYTES = 4 << 20, BUCKET_COUNT = 1000 };

/* Pieces [first, last) one behind the other, reduced, and back. */
static tutti_status reduce_bucket(tutti_comm *comm, const tutti_comm_piece *pieces, int first,
                                  int last, char *memory, tutti_dtype dtype,
                                  tutti_reduction reduction, const tutti_comm_call *call)
{
    size_t element = tutti_dtype_size(dtype);
    int64_t total = 0;
    if (last - first == 1)
        return tutti_comm_all_reduce(comm, pieces[first].data, pieces[first].data,
                                     pieces[first].count, dtype, reduction, call);
    for (int i = first; i < last; i++) {
        memcpy(memory + (size_t)total * element, pieces[i].data, (size_t)pieces[i].count * element);
        total += pieces[i].count;
    }
    TUTTI_TRY(tutti_comm_all_reduce(comm, memory, memory, total, dtype, reduction, call));
    total = 0;
    for (int i = first; i < last; i++) {
        memcpy(pieces[i].data, memory + (size_t)total * element, (size_t)pieces[i].count * element);
        total += pieces[i].count;
    }
    return TUTTI_OK;
}

/* How many pieces from `first` on go together. */
static int bucket_end(const tutti_comm_piece *pieces, int count, int first, int64_t most_elements,
                      int most_pieces)
{
    int64_t total = pieces[first].count;
    int last = first + 1;
    while (last < count && last - first < most_pieces &&
           pieces[last].count <= most_elements - total)
        total += pieces[last++].count;
    return last;
}

/* At least so many bytes that all ranks of the machine can reach. */
static tutti_status bucket_memory(tutti_comm *comm, int64_t bytes)
{
    if (comm->bucket_bytes >= (size_t)bytes)
        return TUTTI_OK;
    tutti_comm_free(comm, comm->bucket);
    comm->bucket = NULL;
    comm->bucket_bytes = 0;
    TUTTI_TRY(tutti_comm_allocate(comm, bytes, &comm->bucket));
    comm->bucket_bytes = (size_t)bytes;
    return TUTTI_OK;
}

tutti_status tutti_comm_all_reduce_many(tutti_comm *comm, const tutti_comm_piece *pieces,
                                        int piece_count, tutti_dtype dtype,
                                        tutti_reduction reduction, const tutti_comm_bucket *bucket,
                                        const tutti_comm_call *call)
{
    int64_t bytes = bucket && bucket->bucket_bytes > 0 ? bucket->bucket_bytes : BUCKET_BYTES;
    int most = bucket && bucket->bucket_count > 0 ? bucket->bucket_count : BUCKET_COUNT;
    int64_t element = (int64_t)tutti_dtype_size(dtype);
    if ((call && (call->request || call->shards)) || element == 0)
        return tutti_fail(TUTTI_INVALID,
                          "all_reduce of many tensors: it cannot be asynchronous or "
                          "sharded; type is %s",
                          tutti_dtype_name(dtype));
    for (int i = 0; i < piece_count; i++)
        if (pieces[i].count < 0)
            return tutti_fail(TUTTI_INVALID,
                              "all_reduce of many tensors: number %d has %lld "
                              "elements",
                              i, (long long)pieces[i].count);
    TUTTI_TRY(bucket_memory(comm, bytes));
    tutti_status status = TUTTI_OK;
    for (int first = 0; status == TUTTI_OK && first < piece_count;) {
        int last = bucket_end(pieces, piece_count, first, bytes / element, most);
        status = reduce_bucket(comm, pieces, first, last, comm->bucket, dtype, reduction, call);
        first = last;
    }
    return status;
}
