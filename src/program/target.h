/* target.h: what a device is to the rest of the house, and what a target must give.
 * tables: tutti_target */
#ifndef TUTTI_PROGRAM_TARGET_H
#define TUTTI_PROGRAM_TARGET_H

#include "base/pool.h"
#include "graph/mesh.h"
#include "state/state.h"
#include "tensor/tensor.h"

typedef struct tutti_target tutti_target;
struct tutti_kernel;
struct tutti_kernel_query;
typedef struct tutti_executable tutti_executable;
typedef struct tutti_run tutti_run;

/* An open device. */
typedef struct tutti_device {
    const tutti_target *target;
    int index, part; /* part: of logical devices that share one; -1: it is none of those */
    char name[64];   /* "cpu:0", "gpu:0/1" */
    const tutti_memory *memory;
    tutti_pool *pool; /* threads for its kernels, or NULL */
    void *self;       /* the target's own */
} tutti_device;

/* Memory that others reach as well, for what is exchanged with them. */
typedef struct tutti_shared_memory {
    void *self;
    void *(*allocate)(void *self, size_t bytes); /* NULL when there is none left */
    void (*release)(void *self, void *memory);
} tutti_shared_memory;

/* One device's part of a job: a graph with known shapes whose parameters are the inputs, by index.
 */
typedef struct tutti_partition {
    tutti_graph *graph; /* retained by whoever keeps it */
    tutti_state *state; /* variables and queues of the graph live here */
    bool deterministic;
    const tutti_shared_memory *shared; /* or NULL; outlives the executable */
    bool shadows; /* on some device of the job something that can fail follows an update: no device
                     may write a variable, or wait for the commit of another, before all of that is
                     done */
} tutti_partition;

/* One instruction as a rehearsal timed it. */
typedef struct tutti_timed {
    const tutti_node *node; /* lives as long as the executable; NULL: a copy of bytes */
    double seconds;         /* the least of all rounds; when it was left out, what it takes beside
                               waiting, or 0 */
    bool skipped;           /* it meets others, waits for them or has effects: it did not run */
} tutti_timed;
typedef TUTTI_VEC(tutti_timed) tutti_timed_list;

/* Bytes that a run has in use, by purpose, as they are taken: padded. */
typedef struct tutti_usage {
    size_t weights, slots; /* variables: all that are no optimizer's, and the optimizer's */
    size_t arena;          /* values between instructions */
    size_t shared;         /* values that are exchanged: gradients */
    size_t data;           /* results; inputs are their owner's */
    size_t sent;           /* copies on their way to other devices of the process: the most that one
                              device sends, since what it waits for comes in between */
    size_t constants;
} tutti_usage;

typedef struct tutti_executable_table {
    /* Puts one run on the device's streams, and returns when nothing of it needs the host any more;
     * what it changes is in order for whatever touches the device's memory afterwards. inputs[i]:
     * value of parameter i, a contiguous host tensor; pending when its bytes stand in some device's
     * memory (tensor/pending.h), which may be this one's. results[i]: for every result of the graph
     * a new tensor, the caller's, written on success only: in host memory, or pending there, with
     * its bytes in the device's memory until somebody reads them. Several threads may enqueue one
     * executable at once. `run` ends with the call. */
    tutti_status (*enqueue)(tutti_executable *executable, tutti_run *run,
                            tutti_tensor *const *inputs, tutti_tensor **ret_results);
    void (*destroy)(tutti_executable *executable);
    /* (optional) bytes of memory one run takes beside variables. */
    size_t (*memory)(const tutti_executable *executable);
    /* (optional) all that a run has in use; added to *usage. */
    void (*usage)(const tutti_executable *executable, tutti_usage *usage);
    /* (optional) runs what changes nothing and meets nobody, in order and several times, on copies
     * of the variables, and gives the time of every instruction. `inputs` as for run. The list is
     * the caller's to free, also on failure. */
    tutti_status (*rehearse)(tutti_executable *executable, tutti_run *run,
                             tutti_tensor *const *inputs, tutti_timed_list *ret);
    /* (optional) what no plan for the same order of instructions could do without. */
    size_t (*memory_bound)(const tutti_executable *executable);
    /* (optional) readable text of the program, appended. */
    void (*print)(const tutti_executable *executable, tutti_text *text);
} tutti_executable_table;
struct tutti_executable {
    const tutti_executable_table *table;
    bool shadows; /* makes variables' new values from present ones before the commit: whoever runs
                      it claims the variables first (tutti__state_claim) */
};

struct tutti_target {
    const char *name; /* "cpu" */
    const char *doc;
    const char *kernels; /* whose kernels it runs ("cpu"), or NULL: it compiles whole graphs */
    int streams;         /* how many instruction streams run beside each other */
    size_t alignment;    /* of values in an arena, bytes */
    bool shares;         /* its values may lie in memory that other processes reach */
    bool parts;          /* one of its devices can be several logical ones: "gpu:0/1" */
    int (*count)(void);  /* devices that exist; -1: any number */
    tutti_status (*open)(tutti_device *device); /* index and name are set */
    void (*close)(tutti_device *device);
    /* (optional) Until all that was enqueued is done; the error of what failed since it was asked
     * last. NULL: nothing goes on when enqueue has returned. */
    tutti_status (*finish)(tutti_device *device);
    /* (optional) The most bytes that it may take from now on; 0: as many as there are. */
    void (*limit)(tutti_device *device, size_t bytes);
    bool (*supports)(const tutti_device *device, const tutti_node *node); /* (optional) NULL: all */
    /* (optional) The best of its kernels for a node, or NULL: when they are in no table here. */
    const struct tutti_kernel *(*pick)(const struct tutti_kernel_query *query);
    tutti_status (*compile)(tutti_device *device, const tutti_partition *partition,
                            tutti_executable **ret);
};

/* The best kernel of a device for a node, none measured, or NULL; and whether it has any for fused
 * nodes. Of a target that compiles whole partitions: NULL, false. */
const struct tutti_kernel *tutti__device_kernel(const tutti_device *device,
                                                const struct tutti_kernel_query *query);
bool tutti__device_fuses(const tutti_device *device);

/* Opens a device by name ("cpu:0", "/far:1", "gpu:0"), once per process; NOT_FOUND says which
 * exist. */
tutti_status tutti__device_open(const char *name, tutti_device **ret);

/* Until all that was enqueued on any device is done; the first error of what failed there since it
 * was asked last. */
tutti_status tutti__devices_finish(void);

/* Behind `supports` of devices with memory of their own: whether a node has nothing to do with
 * strings. */
bool tutti__without_strings(const tutti_device *device, const tutti_node *node);

/* What other programs do between two runs of one: bytes that they touch, seconds that they take. */
typedef struct tutti_between {
    size_t bytes;
    double seconds;
} tutti_between;

/* One run of a job, shared by the partitions that take part in it. */
struct tutti_run {
    uint64_t id;
    int64_t deadline;            /* monotonic ns */
    _Atomic bool cancelled;      /* set with the first error */
    const _Atomic bool *watched; /* what waiting kernels look at: `cancelled`, or in a run inside
                                    another one the flag of that one; NULL: nothing */
    tutti_state *state;
    tutti_ticket ticket;              /* of a run that draws from a counter */
    tutti_between between;            /* of a rehearsal */
    struct tutti_axis_groups *groups; /* in which devices of the job meet, or NULL */
    struct tutti_rendezvous *rendezvous;
    struct tutti_server_run *servers; /* of variables on parameter servers: values that were pulled,
                                         gradients to be pushed; or NULL */
    bool numbered;      /* its commit makes the next version of the state (tutti__state_count) */
    _Atomic int taking; /* partitions that have yet to take their values; the last one ends the
                           state's hold. 0: nothing is held */
    /* The commit point: every partition calls begin once its fallible work is done (status: how it
     * went) and, when that gave TUTTI_OK, end after its writes. begin returns an error when any
     * partition failed: then nobody writes. */
    tutti_status (*commit_begin)(tutti_run *run, tutti_status status);
    void (*commit_end)(tutti_run *run);
    /* Runs a sub-graph on the device of the caller. */
    tutti_status (*call_graph)(tutti_run *run, const tutti_device *device, tutti_graph *body,
                               int input_count, tutti_tensor *const *inputs,
                               tutti_tensor **ret_results);
    void *owner, *plan; /* of the runner's: whose run it is, and of which plan */
};

/* What call->context points to in every kernel of a program. Begins with what ops/call.h asks. */
#include "ops/call.h"
typedef struct tutti_context {
    tutti_call_host host;
    tutti_run *run;
    const tutti_device *device;
    tutti_tensor **dynamic; /* values whose size depends on data, by slot */
    struct {
        tutti_tensor **data;
        size_t count, capacity;
    } kept; /* whose bytes string values of this run point to */
    struct tutti_trace *trace;
} tutti_context;

#endif
