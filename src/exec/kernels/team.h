/* team.h: collectives between the replicas of a strategy: nodes whose mesh axis is the batch's. */
#ifndef TUTTI_EXEC_KERNELS_TEAM_H
#define TUTTI_EXEC_KERNELS_TEAM_H

#include "dist/team.h"
#include "exec/kernels/host.h"

/* The team that a node of the batch's axis meets; NULL: it meets along an axis of the session's
 * mesh. */
tutti_team *tutti__call_team(const tutti_kernel_call *call);

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

/* What the team is told of a call; counts the time until tutti__team_done. */
typedef struct tutti_team_meeting {
    tutti_team *team;
    int local; /* the replica */
    tutti_team_call call;
    int64_t start;
} tutti_team_meeting;
tutti_status tutti__team_begin(const tutti_kernel_call *call, tutti_team_meeting *ret);
tutti_status tutti__team_done(const tutti_kernel_call *call, tutti_team_meeting *meeting,
                              tutti_status status, int64_t bytes);

#endif
