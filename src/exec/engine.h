/* engine.h: compiles what a run asks for and keeps it; runs it. Session and tape stand on this. */
#ifndef TUTTI_EXEC_ENGINE_H
#define TUTTI_EXEC_ENGINE_H

#include "exec/plan/limit.h"
#include "graph/graph.h"
#include "parallel/strategies/strategy.h"
#include "program/target.h"
#include "state/state.h"
#include "tutti/session.h"

typedef struct tutti_engine tutti_engine;

typedef struct tutti_engine_options {
    const char *device; /* for nodes without a wish */
    bool deterministic;
    int cache_limit;
    int64_t deadline_ns;       /* of a run, relative */
    size_t memory_limit;       /* of a run's values on each device, bytes; 0: none */
    bool keeps_all;            /* nothing is computed again for gradients */
    tutti_mesh *mesh;          /* or NULL; the engine takes it over, also when it fails */
    tutti_axis_groups *groups; /* of the mesh; the engine makes them */
    tutti_strategy *strategy;  /* NULL: one device; retained by the engine */
} tutti_engine_options;

/* Whether runs are spread by the strategy: a graph for a mesh of the user's runs as it is written.
 */
static inline bool tutti__engine_rewrites(const tutti_engine_options *options)
{
    return !options->mesh && tutti__strategy_rewrites(options->strategy);
}
/* In which devices meet; NULL: there are none. */
static inline tutti_axis_groups *tutti__engine_groups(const tutti_engine_options *options)
{
    return options->groups ? options->groups : options->strategy ? options->strategy->groups : NULL;
}

/* Seconds from a user, infinity and nonsense too; a century is for ever. */
static inline int64_t tutti__engine_ns(double seconds)
{
    if (!(seconds > 0))
        return 0;
    return seconds < 1e-9 ? 1 : seconds < 3e9 ? (int64_t)(seconds * 1e9) : INT64_MAX / 4;
}

/* From what a user gives; checks the mesh. */
tutti_status tutti__engine_options_of(const tutti_session_options *options,
                                      tutti_engine_options *ret);

tutti_status tutti__engine_create(const tutti_engine_options *options, tutti_engine **ret);
void tutti__engine_destroy(tutti_engine *engine); /* NULL is fine */
tutti_state *tutti__engine_state(tutti_engine *engine);
/* From now on runs are spread so. INVALID when another one spreads them already. */
tutti_status tutti__engine_set_strategy(tutti_engine *engine, tutti_strategy *strategy);
/* From now on runs are on one device again, the strategy's first. For a strategy of one process. */
tutti_status tutti__engine_gather(tutti_engine *engine);
/* From now on programs take at most so many bytes for their values; those that are there go. */
void tutti__engine_limit(tutti_engine *engine, size_t bytes);
const char *tutti__engine_device(const tutti_engine *engine);       /* of nodes without a wish */
tutti_strategy *tutti__engine_strategy(const tutti_engine *engine); /* or NULL */
/* Whether processes hold values of their own (.on_read) that the first one cannot save alone;
 * `slots`: also those of optimizers, as gradients that are gathered over several batches. */
bool tutti__engine_apart(const tutti_engine *engine, bool slots);
/* Puts these together, also those of the devices of one process (tutti__state_join): between two
 * steps, by all processes. */
tutti_status tutti__engine_join(tutti_engine *engine, bool slots);
/* Whether the first process cannot save all alone, because gradients are compressed and something
 * may have been left out, or variables are cut over processes; and fetching that, before it saves:
 * between two steps, by all processes. */
bool tutti__engine_gathers(const tutti_engine *engine);
tutti_status tutti__engine_gather_all(tutti_engine *engine);
/* A variable's value; of one that is cut over processes by all of them, between two steps. */
tutti_status tutti__engine_get(tutti_engine *engine, tutti_state_variable *variable,
                               tutti_tensor **ret);

/* tutti__snapshot_take, of variables on parameter servers as these have them. */
tutti_status tutti__engine_snapshot(tutti_engine *engine, tutti_snapshot *ret);

/* What one run asks for. */
typedef struct tutti_run_request {
    int feed_count, fetch_count, target_count;
    const tutti_edge *feeds;
    tutti_tensor *const *values; /* of the feeds; contiguous or not */
    const tutti_edge *fetches;
    tutti_node *const *targets;
    int64_t deadline;      /* absolute; 0: the engine's */
    int64_t batch;         /* rows of the whole batch, of which feeds marked so hold this process's;
                              0: they hold all */
    const int64_t *counts; /* rows of each process, as they agreed; NULL: cut evenly */
    int count_count;       /* of processes */
    uint64_t constants;    /* variables are constants: tutti__engine_constants; 0: they are read */
    bool rewritten_already;      /* the graph is what a strategy made */
    const char *device;          /* NULL: the engine's */
    struct tutti_plan *inside;   /* of the run inside which this one runs: its plan is kept there */
    const _Atomic bool *watched; /* of the run inside which this one runs, or NULL */
    tutti_ticket ticket;         /* of the run whose rest this is */
    bool met;                    /* other processes, in that run */
    struct tutti_server_run *servers; /* of the run whose rest this is */
    uint64_t key; /* of a trace: stands for the graph's contents; 0: the graph goes by serial and
                     version */
} tutti_run_request;

/* What stands for the present values of the variables, above 0: as long as it is the same, a
 * program that holds them as constants is right. */
uint64_t tutti__engine_constants(tutti_engine *engine);

/* Feeds hold as many rows as the processes agreed on last. */
void tutti__engine_own_rows(const tutti_engine *engine, tutti_run_request *ask);
/* Finds or compiles the program and runs it. ret_values: one new tensor per fetch. */
tutti_status tutti__engine_run(tutti_engine *engine, tutti_graph *graph,
                               const tutti_run_request *request, tutti_tensor **ret_values);

struct tutti_plan;
/* A plan that was compiled, before it runs for the first time. */
typedef struct tutti_made {
    struct tutti_plan *plan;
    tutti_run *run;
    tutti_tensor *const *values; /* of the run */
    tutti_graph *graph;
    const tutti_run_request *request; /* as it was asked for */
} tutti_made;
/* Told of every one of them: measurements, forecasts. */
typedef struct tutti_engine_watch {
    void (*made)(void *context, const tutti_made *made);
    void *context;
    bool imagines; /* other strategies than its own: a tape marks what they would cut */
} tutti_engine_watch;
void tutti__engine_set_watch(tutti_engine *engine, const tutti_engine_watch *watch);
bool tutti__engine_imagines(const tutti_engine *engine);

typedef struct tutti_engine_stats {
    uint64_t runs, compiles;
    size_t cached;
    double compile_seconds;
    size_t arena_bytes, arena_bound;
    double flops, recomputed_flops; /* of a program in which something is computed again; else 0 */
    char note[TUTTI_LIMIT_NOTE];    /* what was chosen for the limit of memory, or "" */
} tutti_engine_stats;
void tutti__engine_stats(tutti_engine *engine, tutti_engine_stats *ret);
/* Text of the program compiled last. */
void tutti__engine_print(tutti_engine *engine, tutti_text *text);

#endif
