/* axis_group.h: devices of a job that exchange values: those along some axes of a mesh, or all
 * replicas of a strategy. They may be devices of one process, one device of each of several
 * processes, or both, in any arrangement. */
#ifndef TUTTI_PARALLEL_COLLECTIVES_AXIS_GROUP_H
#define TUTTI_PARALLEL_COLLECTIVES_AXIS_GROUP_H

#include <pthread.h>

#include "base/container.h"
#include "state/state.h"
#include "tutti/comm.h"

enum { TUTTI_AXES_TEXT = 112 };

/* Where a rank of a group lives: a process, by its number among those of the group, and which of
 * that process's devices in the group it is. */
typedef struct tutti_axis_rank {
    int process, place;
} tutti_axis_rank;

typedef struct tutti_axis_group {
    struct tutti_axis_group *next; /* in the list of the job's */
    char axes[TUTTI_AXES_TEXT]; /* "data*model": ranks are in the order of the first, then the next
                                 */
    int begin;                  /* the place of rank 0 in the mesh */
    int size;                   /* ranks in the job */
    int first, local;           /* the first rank of this process, and how many it has */
    int *ranks;                 /* [local], ascending */
    char (*devices)[64];        /* of the local ones */
    int processes, process;     /* that have ranks here, by their first ones; which this one is */
    int *members;               /* [processes]: ranks of the job's processes */
    tutti_axis_rank *places;    /* [size] */
    int *counts;                /* [processes]: ranks that each has */
    int most;                   /* of these */
    bool in_order;              /* ranks of a process follow one another */
    bool even;                  /* and all processes have as many */
    tutti_comm *world;  /* between the processes; NULL: there is one, or not connected yet */
    bool borrowed;      /* `world` is the job's */
    tutti_comm **inner; /* [local], between the devices of this process; NULL: there is one */
    void *room;         /* of the first local rank: stays from call to call */
    size_t room_bytes;
    const char *algorithm; /* of all_reduce, NULL: by cost */
    bool deterministic;    /* sums of floats run over one tree of ranks */
    struct {
        char channel[32];
        tutti_request *request;
    } pending[512];           /* started, not yet waited for; of the processes' group */
    _Atomic int64_t bytes;    /* given to collectives by the first local rank */
    tutti_comm_cost *cost;    /* between the devices of this process; NULL: not measured */
    bool traced;              /* processes join their traces in the end */
    struct tutti_error *over; /* [local]: why a replica's code has no more to exchange */
    struct tutti_axis_group_diary
        *diaries;               /* [local], of meetings: account.c; NULL: none are kept */
    pthread_mutex_t lock;       /* of the next one */
    TUTTI_VEC(uint64_t) agreed; /* schedules that the processes have compared */
} tutti_axis_group;

/* Of `size` ranks, of which rank r is device homes[r].place of the job's process homes[r].process
 * (its rank in the job). `process` is this one; `devices`: its own, by place. Meets nobody. */
tutti_status tutti__axis_group_create(const char *axes, int size, const tutti_axis_rank *homes,
                                      int process, const char *const *devices,
                                      const char *algorithm, tutti_axis_group **ret);
/* Where several processes have ranks in it, these meet; `job`: all processes. Nothing when it was
 * done before. */
tutti_status tutti__axis_group_connect(tutti_axis_group *axis_group, tutti_comm *job,
                                       int64_t deadline_ns);
/* Before the job's processes part. NULL is fine. */
void tutti__axis_group_close(tutti_axis_group *axis_group);
/* The devices of this process meet anew, after a failure. Without memory for that the old group
 * stays and says why it ended. */
void tutti__axis_group_renew(tutti_axis_group *axis_group);
/* Before a run whose schedule of collectives along the group's axes is `texts`: all its processes
 * are about to run the same. They compare a schedule when it is new to them, which is at one time
 * where all run the same steps; INVALID names the first collective that differs. One that runs a
 * known schedule while another compares a new one, or runs another, fails in its first collective.
 */
tutti_status tutti__axis_group_agree(tutti_axis_group *axis_group, int64_t count,
                                     const char *const *texts, int64_t deadline_ns);

/* ---- trace.c ---- */
/* Where some process is traced (TUTTI_TRACE), all are: clocks are compared, and when the axis group
 * closes rank 0 writes one trace of all. Collective; nothing for one process. */
tutti_status tutti__axis_group_trace_open(tutti_axis_group *axis_group);
/* Collective while the axis group is whole; after a failure each process writes TUTTI_TRACE.rankN.
 */
void tutti__axis_group_trace_close(tutti_axis_group *axis_group);

/* The place among the local ranks of a device of this process, or -1. */
int tutti__axis_group_find(const tutti_axis_group *axis_group, const char *device);

typedef struct tutti_axis_group_call {
    const char *name; /* for messages */
    double timeout;   /* seconds */
    tutti_dtype wire; /* of f32: TUTTI_BF16, TUTTI_F16; else ignored */
    int shards;       /* > 0: the piece holds the replica's nodes of the tree over so many shards,
                         each of `count` elements; the first one becomes the sum */
} tutti_axis_group_call;

/* Called by all ranks in the same order, each on a thread of its own; `local` says which it is.
 * Values are reduced in place. */
tutti_status tutti__axis_group_all_reduce(tutti_axis_group *axis_group, int local, int count,
                                          const tutti_comm_piece *pieces, tutti_dtype dtype,
                                          tutti_reduction reduction,
                                          const tutti_axis_group_call *call);
/* One value by a compression; `name` tells it from others of the state, which remembers what is
 * left out of it. Where processes have several devices each, their values are added first, and what
 * a process leaves out of its sum is remembered once. */
tutti_status tutti__axis_group_compressed(tutti_axis_group *axis_group, int local,
                                          tutti_state *state, const char *name,
                                          const char *compression, const tutti_type *type,
                                          float *data, const tutti_axis_group_call *call);
/* Starts it and returns, where the replicas are processes; the memory must stay. Elsewhere, and
 * when too many are under way, it is done at once. */
tutti_status tutti__axis_group_start(tutti_axis_group *axis_group, int local, const char *channel,
                                     const tutti_comm_piece *piece, tutti_dtype dtype,
                                     tutti_reduction reduction, const tutti_axis_group_call *call);
/* Waits for it, until the deadline that it was started with; nothing when it was done at once. */
tutti_status tutti__axis_group_finish(tutti_axis_group *axis_group, const char *channel);
/* Blocks of `counts[r]` elements, one behind the other. */
tutti_status tutti__axis_group_all_gather(tutti_axis_group *axis_group, int local, const void *in,
                                          const int64_t *counts, void *out, tutti_dtype dtype,
                                          const tutti_axis_group_call *call);
/* From rank `root` to all, in place. */
tutti_status tutti__axis_group_broadcast(tutti_axis_group *axis_group, int local, void *data,
                                         int64_t count, tutti_dtype dtype, int root,
                                         const tutti_axis_group_call *call);

/* The reduction, on rank `root`, in place; what the others gave is used up. */
tutti_status tutti__axis_group_reduce(tutti_axis_group *axis_group, int local, void *data,
                                      int64_t count, tutti_dtype dtype, tutti_reduction reduction,
                                      int root, const tutti_axis_group_call *call);
/* `in` [size][count], `out` [count]: the own block of the reduction. */
tutti_status tutti__axis_group_reduce_scatter(tutti_axis_group *axis_group, int local,
                                              const void *in, void *out, int64_t count,
                                              tutti_dtype dtype, tutti_reduction reduction,
                                              const tutti_axis_group_call *call);
/* Block r of `in` [size][count] goes to rank r; block r of `out` came from rank r. */
tutti_status tutti__axis_group_all_to_all(tutti_axis_group *axis_group, int local, const void *in,
                                          void *out, int64_t count, tutti_dtype dtype,
                                          const tutti_axis_group_call *call);
tutti_status tutti__axis_group_barrier(tutti_axis_group *axis_group, int local,
                                       const tutti_axis_group_call *call);

#endif
