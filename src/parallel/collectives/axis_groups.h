/* axis_groups.h: the groups of a job's devices: one for each set of axes of its mesh and each place
 * along the others. They are made when a program is first compiled that meets in them, which talks
 * to nobody, and connected when all processes are about to run it. */
#ifndef TUTTI_PARALLEL_COLLECTIVES_AXIS_GROUPS_H
#define TUTTI_PARALLEL_COLLECTIVES_AXIS_GROUPS_H

#include "graph/mesh.h"
#include "parallel/collectives/axis_group.h"

/* A device of the job: the rank of its process, and its name there ("cpu:0"). */
typedef struct tutti_job_device {
    int process;
    char name[64];
} tutti_job_device;

typedef struct tutti_axis_groups {
    const tutti_mesh *mesh;    /* of the axes; NULL: there is no group but those that were added */
    tutti_job_device *devices; /* of the mesh, by place */
    tutti_comm *world;         /* the job's processes, by rank; NULL: there is one */
    bool owns;                 /* `world` ends with the groups */
    int process;               /* this one's rank */
    const char *algorithm;     /* of all_reduce, NULL: by cost */
    bool deterministic;        /* sums of floats run over one tree of ranks */
    pthread_mutex_t lock;      /* of what follows */
    _Atomic(tutti_axis_group *) made; /* the last one first; read without the lock, too */
    int runs;                         /* that use `inner` */
    bool cancelled;                   /* `inner` has ended in all groups */
    bool meeting;                     /* a run whose devices meet is under way */
    bool spans;                       /* that one meets other processes */
    pthread_cond_t over;              /* it is over */
    pthread_mutex_t surviving;        /* of the next two; held while versions are compared */
    TUTTI_VEC(tutti_state *) states;  /* that runs over all processes commit to */
    bool survived;                    /* their versions were compared */
} tutti_axis_groups;

/* Both may be NULL; the mesh must outlive the groups, and so must `world`, unless `owns`: then it
 * is taken over, also on failure. `cluster`: who the ranks of `world` are. INVALID where the mesh
 * names tasks that are not there. Meets nobody. */
tutti_status tutti__axis_groups_create(const tutti_mesh *mesh, tutti_comm *world, bool owns,
                                       const tutti_cluster *cluster, tutti_axis_groups **ret);
/* All processes of the job have the same mesh, or INVALID on all with what differs. Nothing where
 * the mesh is of this process alone. */
tutti_status tutti__axis_groups_compare(tutti_axis_groups *groups);
/* From now on there are groups along the axes of this mesh too, which must outlive them: device i
 * is number i % local of process i / local. */
tutti_status tutti__axis_groups_span(tutti_axis_groups *groups, const tutti_mesh *mesh, int local,
                                     const char *const *devices);
/* The group of all replicas: `local` devices of each of `processes` processes, whose number here is
 * `process`, along an axis of that name. It meets by `world` itself. */
tutti_status tutti__axis_groups_add(tutti_axis_groups *groups, const char *axes, int processes,
                                    int process, int local, const char *const *devices,
                                    tutti_axis_group **ret);
/* Before the job's processes part: joins their traces and ends all groups. NULL is fine. */
tutti_status tutti__axis_groups_close(tutti_axis_groups *groups);

/* The group of a device of this process ("cpu:0") along axes ("data", "data*model"), which is made
 * where there is none yet, and its place among the local devices there. INVALID names the axis that
 * is missing. `groups` may be NULL. */
tutti_status tutti__axis_groups_find(tutti_axis_groups *groups, const char *axes,
                                     const char *device, tutti_axis_group **ret, int *ret_local);

/* Around a run in which several devices of this process take part. Runs whose devices meet go one
 * after the other: what they exchange belongs to one of them. DEADLINE when another has not ended
 * by then. `spans`: it meets other processes. */
tutti_status tutti__axis_groups_enter(tutti_axis_groups *groups, bool meets, bool spans,
                                      int64_t deadline_ns);
/* A device of a run has failed, so: whoever waits for it does not any more. */
void tutti__axis_groups_cancel(tutti_axis_groups *groups, const tutti_error *why);
void tutti__axis_groups_leave(tutti_axis_groups *groups, bool meets);
/* A run that other processes take part in has failed in this one, with the thread's last error. */
void tutti__axis_groups_fail(tutti_axis_groups *groups, tutti_status status);

/* ---- survivors.c ---- */
/* A state that runs over all processes commit to, made in the same order by them; and before it
 * goes: one that others have to fetch a version from is there for them until then. */
tutti_status tutti__axis_groups_add_state(tutti_axis_groups *groups, tutti_state *state);
void tutti__axis_groups_remove_state(tutti_axis_groups *groups, tutti_state *state);
/* After a run that other processes take part in has failed with the thread's last error, and there
 * is a verdict, or will be: the processes that are left compare the versions of their states, once,
 * and those that missed a commit fetch its values from one that has them. The error then says who
 * holds which version. Waits for the others, a limited time; without a verdict for nobody. */
tutti_status tutti__axis_groups_survive(tutti_axis_groups *groups, tutti_status status);

/* ---- transfers.c ---- */
/* The process that a device name means ("/job:worker/task:1/cpu:0"); this one where it names no
 * task, or none that the job has. */
int tutti__axis_groups_process(const tutti_axis_groups *groups, const char *device);
/* A value from a device of this process to one of another, and back; `channel` tells it from others
 * between the two. recv gives a new tensor. Block, until the timeout. */
tutti_status tutti__axis_groups_send(tutti_axis_groups *groups, int to, const char *channel,
                                     tutti_tensor *value, double timeout);
tutti_status tutti__axis_groups_recv(tutti_axis_groups *groups, int from, const char *channel,
                                     double timeout, tutti_tensor **ret);

#endif
