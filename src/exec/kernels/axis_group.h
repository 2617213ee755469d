/* axis_group.h: collectives between devices of a job: along axes of the session's mesh, or between
 * the replicas of a strategy. */
#ifndef TUTTI_EXEC_KERNELS_AXIS_GROUP_H
#define TUTTI_EXEC_KERNELS_AXIS_GROUP_H

#include "exec/kernels/host.h"
#include "parallel/collectives/axis_groups.h"

/* Inputs to outputs, reduced as attribute "op" says. */
tutti_status tutti__call_reduce(const tutti_kernel_call *call);

/* A bucket is one message: its values one behind the other, each at a multiple of 64 bytes.
 * Programs on the CPU keep them so; for others it is put together here. */
typedef struct tutti_bucket {
    int count;
    const tutti_view *outputs;
    size_t bytes;
    char *memory;
    bool staged;
} tutti_bucket;
size_t tutti__bucket_bytes(const tutti_view *value); /* of its place in the bucket */
/* Of `inputs`, to be closed into `outputs`. */
tutti_status tutti__bucket_open(int count, const tutti_view *inputs, const tutti_view *outputs,
                                tutti_bucket *ret);
void tutti__bucket_close(tutti_bucket *bucket);

/* [outer][parts][bytes] as [parts][outer][bytes], and `back`. */
void tutti__turn_blocks(const void *from, void *to, size_t outer, size_t parts, size_t bytes,
                        bool back);
/* Elements before dimension "dim" (by that name) of a view; *ret_dim, and the bytes behind it. */
size_t tutti__blocks_of(const tutti_kernel_call *call, const char *name, const tutti_view *view,
                        int *ret_dim, size_t *ret_inner);
/* Input 0 to output 0, where they are not the same memory. */
void tutti__call_copy(const tutti_kernel_call *call);
/* Room for as much as goes in and comes out. */
size_t tutti__blocks_workspace(const tutti_kernel_query *query);

/* What the axis group is told of a call; counts the time until tutti__axis_group_done. */
typedef struct tutti_axis_group_meeting {
    tutti_axis_group *axis_group;
    int local; /* which of this process's devices there it is */
    int rank, size;
    tutti_axis_group_call call;
    int64_t start;
} tutti_axis_group_meeting;
tutti_status tutti__axis_group_begin(const tutti_kernel_call *call, tutti_axis_group_meeting *ret);
tutti_status tutti__axis_group_done(const tutti_kernel_call *call,
                                    tutti_axis_group_meeting *meeting, tutti_status status,
                                    int64_t bytes);

#endif
