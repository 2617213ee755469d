/* axis_group.h: the replicas of a job as they reach each other: devices of one process, processes
 * of one or many machines, or both. */
#ifndef TUTTI_PARALLEL_COLLECTIVES_AXIS_GROUP_H
#define TUTTI_PARALLEL_COLLECTIVES_AXIS_GROUP_H

#include <pthread.h>

#include "base/container.h"
#include "state/state.h"
#include "tutti/comm.h"

typedef struct tutti_axis_group {
    int size;              /* replicas in the job */
    int first, local;      /* those of this process: [first, first + local) */
    char (*devices)[64];   /* of the local ones */
    tutti_comm *world;     /* processes; NULL: there is one */
    tutti_comm **inner;    /* [local], between the devices of this process; NULL: there is one */
    const char *algorithm; /* of all_reduce, NULL: by cost */
    struct {
        char channel[32];
        tutti_request *request;
    } pending[512];           /* started, not yet waited for; of the processes' group */
    _Atomic int64_t bytes;    /* given to collectives by the first local replica */
    tutti_comm_cost *cost;    /* between the devices of this process; NULL: not measured */
    bool traced;              /* processes join their traces in the end */
    struct tutti_error *over; /* [local]: why a replica's code has no more to exchange */
    struct tutti_axis_group_diary
        *diaries;                    /* [local], of meetings: account.c; NULL: none are kept */
    pthread_mutex_t runs_lock;       /* of the next two */
    int runs;                        /* that use `inner` */
    bool cancelled;                  /* `inner` has ended */
    bool meeting;                    /* a run whose devices meet is under way */
    pthread_cond_t met;              /* it is over */
    TUTTI_VEC(tutti_state *) states; /* that runs over the axis group commit to; under the lock */
    pthread_mutex_t surviving;       /* of the next one; held while versions are compared */
    bool survived;                   /* they were */
    TUTTI_VEC(uint64_t) agreed; /* schedules that the processes have compared; under the lock */
} tutti_axis_group;

/* `world` may be NULL; it is taken over, also on failure. */
tutti_status tutti__axis_group_create(tutti_comm *world, int local, const char *const *devices,
                                      const char *algorithm, tutti_axis_group **ret);
/* Ends the processes' group as well. NULL is fine. */
tutti_status tutti__axis_group_close(tutti_axis_group *axis_group);

/* ---- axis_group.c ---- */
void tutti__axis_group_runs_init(tutti_axis_group *axis_group);
/* Around a run, where there are several devices (`inner`). Runs whose devices meet go one after the
 * other: what they exchange belongs to one of them. DEADLINE when another has not ended by then. */
tutti_status tutti__axis_group_enter(tutti_axis_group *axis_group, bool meets, int64_t deadline_ns);
/* A device of a run has failed: whoever waits for it does not any more. */
void tutti__axis_group_cancel(tutti_axis_group *axis_group, const char *why);
void tutti__axis_group_leave(tutti_axis_group *axis_group, bool meets);
/* Before a run whose schedule of collectives is `texts`: all processes are about to run the same.
 * They compare a schedule when it is new to them, which is at one time where all run the same
 * steps; INVALID names the first collective that differs. One that runs a known schedule while
 * another compares a new one, or runs another, fails in its first collective. */
tutti_status tutti__axis_group_agree(tutti_axis_group *axis_group, int64_t count,
                                     const char *const *texts, int64_t deadline_ns);
/* A run that other processes take part in has failed in this one, with the thread's last error. */
void tutti__axis_group_fail(tutti_axis_group *axis_group, tutti_status status);

/* ---- survivors.c ---- */
/* A state that runs over the axis group commit to, made in the same order by all processes; and
 * before it goes: one that others have to fetch a version from is there for them until then. */
tutti_status tutti__axis_group_add_state(tutti_axis_group *axis_group, tutti_state *state);
void tutti__axis_group_remove_state(tutti_axis_group *axis_group, tutti_state *state);
/* After a run that other processes take part in has failed with the thread's last error, and there
 * is a verdict, or will be: the processes that are left compare the versions of their states, once,
 * and those that missed a commit fetch its values from one that has them. The error then says who
 * holds which version. Waits for the others, a limited time; without a verdict for nobody. */
tutti_status tutti__axis_group_survive(tutti_axis_group *axis_group, tutti_status status);

/* ---- trace.c ---- */
/* Where some process is traced (TUTTI_TRACE), all are: clocks are compared, and when the axis group
 * closes rank 0 writes one trace of all. Collective; nothing for one process. */
tutti_status tutti__axis_group_trace_open(tutti_axis_group *axis_group);
/* Collective while the axis group is whole; after a failure each process writes TUTTI_TRACE.rankN.
 */
void tutti__axis_group_trace_close(tutti_axis_group *axis_group);

/* The local replica on a device, or -1. */
int tutti__axis_group_find(const tutti_axis_group *axis_group, const char *device);

typedef struct tutti_axis_group_call {
    const char *name; /* for messages */
    double timeout;   /* seconds */
    tutti_dtype wire; /* of f32: TUTTI_BF16, TUTTI_F16; else ignored */
    int shards;       /* > 0: the piece holds the replica's nodes of the tree over so many shards,
                         each of `count` elements; the first one becomes the sum */
} tutti_axis_group_call;

/* Called by all replicas in the same order, each on a thread of its own. Values are reduced in
 * place. */
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
/* From replica `root` to all, in place. */
tutti_status tutti__axis_group_broadcast(tutti_axis_group *axis_group, int local, void *data,
                                         int64_t count, tutti_dtype dtype, int root,
                                         const tutti_axis_group_call *call);

#endif
