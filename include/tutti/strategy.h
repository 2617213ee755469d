/* strategy.h: how a training is distributed over devices and machines.
 *
 *     tutti_strategy *s = tutti_strategy_mirrored(.devices = "cpu:0,cpu:1");
 *     TUTTI_WITH_STRATEGY(s) {
 *         …model, compile, fit as ever…
 *     }
 *     tutti_strategy_close(s);
 *
 * Programs that do not name one take --strategy, --devices, --deterministic or TUTTI_STRATEGY, and
 * under tutti run, mpirun, srun or TF_CONFIG the job's workers. The program text is the same for
 * all. Batches are global: a strategy cuts them, and losses, gradients, metrics and random numbers
 * are those of the whole batch. */
#ifndef TUTTI_STRATEGY_H
#define TUTTI_STRATEGY_H

#include "tutti/cluster.h"
#include "tutti/comm.h"
#include "tutti/dataset.h"
#include "tutti/graph.h"
#include "tutti/job.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_strategy tutti_strategy;
typedef struct tutti_session tutti_session;

typedef struct tutti_strategy_options {
    size_t struct_size;
    const char *devices;   /* "cpu:0,cpu:1", "cpu:*" for all, "cpu:0=64MiB" with a limit of memory;
                              NULL: the strategy's own choice */
    const char *central;   /* central_storage: where variables live; NULL: the first device */
    const char *reduction; /* "ring", "tree", "hierarchical", "central", …, or by size as
                              tutti_comm_spec_check has it; NULL: by cost */
    bool deterministic;    /* the same bits for any number of workers up to `shards` */
    int shards;            /* parts that a batch is cut into when deterministic; 0: 8 */
    int64_t bucket_bytes;  /* gradients are joined up to this size; 0: by the cost model */
    int overlap;           /* communication beside the backward pass: 1 yes, -1 no, 0 by cost */
    tutti_dtype wire;      /* f32 gradients between replicas as TUTTI_BF16 or TUTTI_F16 */
    const char *compression;      /* of f32 gradients, with what is left out added the next time:
                                     "topk:0.01", "powersgd:2", as tutti_compressor_create has it */
    const tutti_cluster *cluster; /* multi_worker_mirrored; NULL: found from the environment */
    const char *engine;           /* between processes: "shm", "tcp", "mpi"; NULL: the best */
    double timeout;               /* seconds that a collective may wait; 0: 300 */
    double join_timeout;          /* seconds until all workers must have come; 0: 60 */
    tutti_shard_policy shard;     /* how processes share the data that a model is trained on */
    const char *sparse; /* gradients of rows (embeddings): "gather" the rows, sum them as a "dense"
                           table; NULL or "auto": whichever moves fewer bytes */
    int64_t memory_limit; /* bytes of each device whose name says no other; 0: none. A program whose
                             values and variables need more is refused before it runs */
    const char *mesh;   /* the job's devices in a grid with named axes, "host=2,data=4", process by
                           process; NULL: one axis, "batch" */
    const char *layout; /* which axes cut which dimensions, the outermost first: "batch:host*data";
                           NULL: all of them cut the batch. "weights:data" stores variables in
                           blocks along axes of the batch's */
    int zero; /* of variables in blocks: 1, 2: gathered once a step; 3: again for the backward pass,
                 and dropped in between; 0: 3 under fully_sharded, else 2 */
    int64_t replicate_below; /* variables of fewer elements are never stored in blocks; 0: 1024 */
    /* parameter_server: */
    const char *consistency; /* when gradients are applied and who may go on: "async" (also NULL),
                                "sync", "sync:backup=1", "ssp:3", "softsync:2" */
    const char *placement; /* of variables on servers: "round_robin" (also NULL), "least_loaded" */
    const char *nan;       /* a gradient that holds NaN: "refuse" (also NULL), "skip", "accept" */
    const char *staleness; /* the rate by a gradient's age: "inverse", or by the distance that the
                              variable went meanwhile: "distance"; NULL: the same for all */
    int replicas;          /* 1: every server's variables are on another one, too */
    int64_t server_limit;  /* bytes of memory that a server may use; 0: none */
    bool atomic;           /* all variables of a step are read and moved together */
    const char *record, *replay; /* file that gets the order of reads and pushes; that has it */
    /* pipeline: */
    int stages;           /* that the model is cut into; 0: as many as devices */
    int micro_batches;    /* that a batch is cut into; 0: 2 to a stage */
    const char *schedule; /* "naive", "gpipe", "1f1b", "interleaved", "zero_bubble"; NULL: 1f1b, or
                             interleaved where there are several stages to a device */
} tutti_strategy_options;

/* By name: "one_device", "mirrored", "multi_worker_mirrored", "central_storage",
 * "parameter_server", "pipeline", "fully_sharded", "tensor", or "auto", which takes
 * parameter_server where the environment says that there are servers, multi_worker_mirrored where
 * the environment says that there are workers, mirrored where several devices are named, else
 * one_device. Never NULL but for want of memory: a strategy that cannot be made carries its error,
 * which becomes the error of the job that uses it. */
TUTTI_API tutti_strategy *tutti_strategy_create(const char *name,
                                                const tutti_strategy_options *options);
#define tutti_strategy_one_device(...)                                                             \
    tutti_strategy_create("one_device", TUTTI_OPTIONS(tutti_strategy_options, __VA_ARGS__))
#define tutti_strategy_mirrored(...)                                                               \
    tutti_strategy_create("mirrored", TUTTI_OPTIONS(tutti_strategy_options, __VA_ARGS__))
#define tutti_strategy_multi_worker_mirrored(...)                                                  \
    tutti_strategy_create("multi_worker_mirrored",                                                 \
                          TUTTI_OPTIONS(tutti_strategy_options, __VA_ARGS__))
#define tutti_strategy_central_storage(...)                                                        \
    tutti_strategy_create("central_storage", TUTTI_OPTIONS(tutti_strategy_options, __VA_ARGS__))
#define tutti_strategy_parameter_server(...)                                                       \
    tutti_strategy_create("parameter_server", TUTTI_OPTIONS(tutti_strategy_options, __VA_ARGS__))
/* Stages of a model on devices of their own (TUTTI_WITH_STAGE, .stage of a layer), through which
 * the micro-batches of a batch follow each other. What is learnt is what one device would learn
 * that adds up the gradients of these micro-batches. */
#define tutti_strategy_pipeline(...)                                                               \
    tutti_strategy_create("pipeline", TUTTI_OPTIONS(tutti_strategy_options, __VA_ARGS__))
/* Ends it after the models that use it. Workers wait for each other, so that nobody sees an error
 * after success. NULL is fine. */
TUTTI_API tutti_status tutti_strategy_close(tutti_strategy *strategy);

/* TUTTI_OK, or why it cannot be used. */
TUTTI_API tutti_status tutti_strategy_check(const tutti_strategy *strategy);
TUTTI_API const char *tutti_strategy_name(const tutti_strategy *strategy);
TUTTI_API int tutti_strategy_replicas(const tutti_strategy *strategy); /* in the whole job */
TUTTI_API int tutti_strategy_workers(const tutti_strategy *strategy);  /* processes */
TUTTI_API int tutti_strategy_rank(const tutti_strategy *strategy);     /* of this process */
TUTTI_API int tutti_strategy_local(const tutti_strategy *strategy); /* replicas of this process */
TUTTI_API const char *tutti_strategy_device(const tutti_strategy *strategy, int local);

/* Within the block the strategy is in force for this thread: models that are made, built, compiled
 * or trained there use it, also behind the block. A model keeps the first one that spreads it. */
TUTTI_API void tutti_strategy_enter(tutti_strategy *strategy);
TUTTI_API void tutti_strategy_leave(void);
#define TUTTI_WITH_STRATEGY(strategy)                                                              \
    for (int tutti_within_ = (tutti_strategy_enter(strategy), 1); tutti_within_;                   \
         tutti_within_ = 0, tutti_strategy_leave())
/* The one in force, or NULL. */
TUTTI_API tutti_strategy *tutti_strategy_current(void);

/* The strategy of a job: its flags' and the environment's, made on first use, closed with the job.
 * Within TUTTI_WITH_STRATEGY that one. */
TUTTI_API tutti_strategy *tutti_job_strategy(tutti_job *job);
/* What scripts multiply their batch and learning rate by. */
TUTTI_API int tutti_num_replicas(tutti_job *job);

/* ---- loops by hand ----
 * On the tape and in sessions a loop is written for the whole batch, as for one device: values from
 * tutti_eager_feed are cut, and gradients and means are those of the batch. For code that does
 * something of its own on each replica: */
typedef struct tutti_replica {
    tutti_strategy *strategy;
    int index, count; /* of all replicas of the job */
    int local;        /* of this process */
    const char *device;
} tutti_replica;
typedef tutti_status tutti_replica_fn(const tutti_replica *replica, void *context);
/* Calls fn once for each replica of this process, all at the same time, each on a thread of its
 * own. Every process of the job has to call it. Returns the first failure of any replica, in every
 * process: others that wait for the one that failed are told there, and the strategy can be used
 * again. */
TUTTI_API tutti_status tutti_replica_run(tutti_strategy *strategy, tutti_replica_fn *fn,
                                         void *context);
/* Within fn, called by all replicas alike: what does not fit together (another call, another type
 * or shape) is refused on all of them. The sum or mean (min, max, prod) over the replicas of
 * tensors of one shape: a new tensor, equal on all. */
TUTTI_API tutti_status tutti_replica_reduce(const tutti_replica *replica, tutti_tensor *value,
                                            tutti_reduction how, tutti_tensor **ret_value);
/* The replicas' tensors joined along dimension 0, in which they may differ. */
TUTTI_API tutti_status tutti_replica_gather(const tutti_replica *replica, tutti_tensor *value,
                                            tutti_tensor **ret_value);
/* The first replica's tensor on all. */
TUTTI_API tutti_status tutti_replica_broadcast(const tutti_replica *replica, tutti_tensor *value,
                                               tutti_tensor **ret_value);
/* The replica's own copy of a variable (a new tensor). */
TUTTI_API tutti_status tutti_replica_read(const tutti_replica *replica, tutti_session *session,
                                          tutti_sym variable, tutti_tensor **ret_value);
/* Gives a variable the value that this replica has for it; all replicas call it. Values are put
 * together as the variable's aggregation says (sum, mean, first), and all copies get the result; an
 * on_read variable keeps each replica's own. Without aggregation it is refused. Under central
 * storage, where there is one copy, and in deterministic mode an on_read variable is put together
 * at once. */
TUTTI_API tutti_status tutti_replica_assign(const tutti_replica *replica, tutti_session *session,
                                            tutti_sym variable, tutti_tensor *value);
/* Losses of the examples that a replica has, as its share of the mean over the whole batch: their
 * sum / `batch`. The sum over replicas of these is the mean; the mean of the replicas' means is not
 * where they have different numbers of examples. */
TUTTI_API tutti_sym tutti_compute_average_loss(tutti_sym losses, int64_t batch);
/* The values of a variable on the devices of this process: how many, and one of them (a copy). */
TUTTI_API int tutti_mirrored_count(tutti_session *session, tutti_sym variable);
TUTTI_API tutti_status tutti_mirrored_get(tutti_session *session, tutti_sym variable, int local,
                                          tutti_tensor **ret_value);

/* ---- input of each process's own ----
 * One input pipeline to a process, which gives the rows of all its replicas. */
typedef struct tutti_input_context {
    tutti_strategy *strategy;
    int pipelines; /* in the job: one to a process */
    int index;     /* of this one */
    int replicas;  /* in the job */
    int local;     /* of this process */
} tutti_input_context;
/* Rows that this process has of a whole batch of so many. */
TUTTI_API int64_t tutti_input_batch_size(const tutti_input_context *context, int64_t batch);
typedef tutti_dataset *tutti_input_fn(const tutti_input_context *context, void *user);
/* Calls fn once in each process; the dataset that it returns gives this process's rows, batched:
 *
 *     return tutti_batch(tutti_shard(all, context->pipelines, context->index),
 *                        tutti_input_batch_size(context, 64));
 *
 * The result is for tutti_fit and tutti_evaluate, or for loops by hand, in all processes in the
 * same way. In a step every process may have any number of rows; one that is at its end has none,
 * and the data ends when all are. Before each step they tell each other how many rows they have. No
 * transform stands behind it but prefetch, take, skip and named. NULL after an error, which is the
 * job's. The strategy must outlive the job's use of it. */
TUTTI_API tutti_dataset *tutti_distribute_from_function(tutti_strategy *strategy,
                                                        tutti_input_fn *fn, void *user);
/* For loops that make their rows themselves: this process has `rows` for the next step; *ret_batch:
 * all have, 0 at the end. Every process has to call it before each step, which is then run with
 * .own_rows (tutti_run) or under tutti_eager_own_rows. Elements of a dataset from
 * tutti_distribute_from_function were agreed on when they were taken. */
TUTTI_API tutti_status tutti_strategy_agree(tutti_strategy *strategy, int64_t rows,
                                            int64_t *ret_batch);

/* The rows of a batch of `batch` rows that a replica has. */
TUTTI_API void tutti_strategy_rows(const tutti_strategy *strategy, int64_t batch, int replica,
                                   int64_t *ret_first, int64_t *ret_rows);
/* Those that all replicas of this process have together: what it makes, where it feeds its own rows
 * or takes them out of its queues. */
TUTTI_API void tutti_strategy_own_rows(const tutti_strategy *strategy, int64_t batch,
                                       int64_t *ret_first, int64_t *ret_rows);

#ifdef __cplusplus
}
#endif
#endif
