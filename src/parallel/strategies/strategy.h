/* strategy.h: what a strategy is. One file each, ending in one descriptor.
 * tables: tutti_strategy_kind */
#ifndef TUTTI_PARALLEL_STRATEGIES_STRATEGY_H
#define TUTTI_PARALLEL_STRATEGIES_STRATEGY_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/status.h"
#include "data/dataset.h"
#include "parallel/collectives/axis_groups.h"
#include "parallel/pipeline/pipeline.h"
#include "parallel/spmd/spmd.h"
#include "parallel/strategies/servers.h"
#include "program/target.h"
#include "tutti/strategy.h"

typedef struct tutti_strategy_kind {
    const char *name;    /* "mirrored" */
    const char *doc;     /* one line */
    const char *devices; /* where none are named: "cpu:*"; NULL: TUTTI_DEVICE's */
    bool several;        /* devices in one process */
    bool processes;      /* workers of a cluster */
    bool central;        /* variables live on one device */
    bool sharded;        /* variables are stored in blocks along axes that cut the batch */
    const char *axis;    /* of the mesh, where none is given; NULL: "batch" */
    const char
        *rules;   /* "hidden:model; …", for a mesh with that axis, which does not cut the batch */
    bool servers; /* variables live on servers of their own (servers.h) */
    bool pipeline; /* devices have stages of the model, not replicas */
} tutti_strategy_kind;

struct tutti_strategy {
    const tutti_strategy_kind *kind;
    _Atomic int references;
    tutti_strategy_options options; /* strings are the strategy's own */
    tutti_error error;              /* why it cannot be used */
    tutti_cluster *cluster;         /* owned, or NULL */
    tutti_axis_groups *groups;
    tutti_axis_group *axis_group; /* of all replicas; one of these */
    tutti_mesh *mesh;             /* of all devices of the job */
    tutti_layout layout;          /* what its axes cut */
    char (*devices)[64];          /* of this process */
    const char **device_names;
    const char **fronts;     /* of a pipeline of several processes: the first device of each */
    tutti_pipeline pipeline; /* of kinds that are */
    int64_t *limits;         /* bytes of memory of each device; 0: none */
    int local;
    char central[64]; /* where variables live, of central storage */
    tutti_shared_memory memory;
    tutti_share shares[TUTTI_SHARD_OFF + 1]; /* by policy: what this process reads of a dataset */
    int64_t *counts;                         /* rows that each process has in the step at hand, */
    int64_t counted;                         /* and all have; as they agreed last */
    tutti_arena strings;
    const tutti_servers_kind *servers_kind; /* of variables on servers; NULL: there are none */
    void *servers;
    tutti_map server_variables; /* name → number + 1; guarded by servers_lock */
    pthread_mutex_t servers_lock;
    _Atomic int server_states;       /* engines so far: each has names of its own on the servers */
    bool served;                     /* this process was a server, and is done */
    int server_workers, server_rank; /* workers of the job, and which one this is */
};

/* ---- strategy.c ---- */
/* Of that name, with a copy of the options, and nothing opened. */
tutti_strategy *tutti__strategy_new(const char *name, const tutti_strategy_options *options);
/* Where none were given, those of TUTTI_SHARDS; refuses what cannot be. */
tutti_status tutti__strategy_take_shards(tutti_strategy *s);
/* How a job with a batch of so many rows is spread. */
tutti_spmd tutti__strategy_spmd(const tutti_strategy *strategy, int64_t batch);
/* Whether layout rules and constraints can cut more than the batch. */
static inline bool tutti__strategy_has_mesh(const tutti_strategy *strategy)
{
    return strategy->options.mesh != NULL;
}
/* The same where processes have as many rows as they agreed on last. */
tutti_spmd tutti__strategy_spmd_own(const tutti_strategy *strategy, const int64_t *counts,
                                    int64_t batch);
/* Whether the job's graph is rewritten at all: not for one replica, unless deterministic. */
bool tutti__strategy_rewrites(const tutti_strategy *strategy);
/* Who its processes are, or NULL. */
const tutti_cluster *tutti__strategy_cluster(const tutti_strategy *strategy);
/* Processes that are set to sum in different ways are found out, on all of them; when it is made,
 * with the name of what travels between them (NULL: as it is). */
tutti_status tutti__strategy_consistent(const tutti_strategy *strategy, const char *wire);
/* Memory that the job's other processes on this machine reach, or NULL. */
const tutti_shared_memory *tutti__strategy_memory(const tutti_strategy *strategy);
tutti_strategy *tutti__strategy_retain(tutti_strategy *strategy);
/* The algorithm of sums that was asked for, by the name that it has between ranks of so many
 * machines; NULL: by cost. */
const char *tutti__strategy_algorithm(const tutti_strategy *strategy, int hosts);
/* INVALID where both an algorithm and a form on the wire that has its own were asked for; of
 * several processes. */
tutti_status tutti__strategy_check_wire(const tutti_strategy *strategy, int hosts);

/* Said to verdicts (cluster/membership.h): the training step that begins, from 1, and a checkpoint
 * that is written; nothing for one process. `strategy` may be NULL. */
void tutti__strategy_at_step(const tutti_strategy *strategy, int64_t step);
void tutti__strategy_saved(const tutti_strategy *strategy, int64_t step, const char *path);
/* tutti__axis_groups_survive, of a failure between two runs. `strategy` may be NULL. */
tutti_status tutti__strategy_survive(const tutti_strategy *strategy, tutti_status status);

/* ---- server_calls.c: variables on servers ---- */
/* Processes that meet in collectives, and replicas that do: workers of servers do not. */
int tutti__strategy_processes(const tutti_strategy *strategy);
int tutti__strategy_meeting_replicas(const tutti_strategy *strategy);
/* Opens the servers of the options. */
tutti_status tutti__strategy_open_servers(tutti_strategy *s);
tutti_status tutti__strategy_close_servers(tutti_strategy *s);
/* The number of a variable on the servers; -1: it was not made. Thread-safe. */
int tutti__strategy_server_variable(tutti_strategy *s, const char *name);
tutti_status tutti__strategy_make_server_variable(tutti_strategy *s,
                                                  const tutti_servers_variable *variable,
                                                  int *ret_number);
/* Rows of a variable, in the middle of a run. Thread-safe. */
tutti_status tutti__strategy_pull_rows(tutti_strategy *s, int number, tutti_tensor *rows,
                                       tutti_tensor **ret_values);
/* The rows that a worker of servers has of a batch. */
void tutti__strategy_server_rows(const tutti_strategy *s, int64_t batch, int64_t *ret_first,
                                 int64_t *ret_rows);
/* ---- pipeline.c ---- */
/* Whether one graph stands on the devices of several processes. */
bool tutti__strategy_spans(const tutti_strategy *strategy);
/* Before the devices are opened: as many as stages, where none are named. */
tutti_status tutti__strategy_stage_devices(tutti_strategy *s);
/* Then: stages, micro-batches and schedule, as they were asked for. */
tutti_status tutti__strategy_stages(tutti_strategy *s);

/* ---- input.c ---- */
/* What this process reads under a policy; NULL where there is one process. */
const tutti_share *tutti__strategy_share(tutti_strategy *strategy, tutti_shard_policy policy);
/* How the processes are to share the dataset. For an evaluation everything has to be seen once, so
 * that what cannot be shared as asked is shared by element. */
tutti_status tutti__strategy_shard(const tutti_strategy *strategy, const tutti_dataset *dataset,
                                   bool evaluates, tutti_shard_policy *ret);
/* "auto", "file", …; false: there is no such policy. */
bool tutti__strategy_policy(const char *name, tutti_shard_policy *ret);

/* ---- job.c ---- */
/* What the flags of a job ask of its strategy; a wrong word is the job's error. Texts are the
 * job's. */
tutti_strategy_options tutti__job_strategy_options(tutti_job *job);

/* ---- layout.c ---- */
/* The mesh of the job's devices and the layout over it, as the options say or with one axis that
 * cuts the batch; when all have met. */
tutti_status tutti__strategy_layout(tutti_strategy *s);

/* ---- devices.c ---- */
/* Those of the options or of the kind, opened. */
tutti_status tutti__strategy_devices(tutti_strategy *s);
/* "64MiB", "2G", "1000000"; false: it is no size. */
bool tutti__read_memory(const char *text, int64_t *ret);
/* Bytes that a device may take; 0: it is not limited. */
int64_t tutti__strategy_limit(const tutti_strategy *s, const char *device);
/* Where variables live: the device that was named, or the first one. */
tutti_status tutti__strategy_central(tutti_strategy *s);

#endif
