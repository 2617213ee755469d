/* session.h: running a graph: feeds in, fetches out, targets for their effect.
 *
 *     tutti_session *s;
 *     tutti_session_open(&s, graph);
 *     tutti_run(s, .target = tutti_initialize_variables(graph));
 *     tutti_run(s, .feed = TUTTI_FEED({x, batch}), .fetch = TUTTI_FETCH({loss, &value}),
 *               .target = step);
 *
 * A run prunes the graph to what is asked for, compiles it for the shapes that are fed, and keeps
 * the result: the next run with the same shapes starts at once. Several threads may run one
 * session. */
#ifndef TUTTI_SESSION_H
#define TUTTI_SESSION_H

#include "tutti/graph.h"
#include "tutti/strategy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_session_options {
    size_t struct_size;
    const char *device; /* where nodes go that have no wish; default the strategy's first device,
                           TUTTI_DEVICE, "cpu:0" */
    double deadline_seconds; /* of a run's blocking calls; default 300 */
    bool deterministic;      /* only kernels whose results do not depend on the batch's cut */
    int cache_limit;  /* compiled programs kept, and of each sub-graph 4 times as many; default 128
                       */
    const char *mesh; /* "data=2,model=4": devices in a grid with named axes, for collectives, which
                         name an axis; NULL: none */
    const char *mesh_devices; /* "cpu:0,cpu:1,…": as many as the sizes multiply to; the last axis
                                 moves first. With "/job:worker/task:1/cpu:0" they may be of several
                                 processes, those of the strategy; then each names its task, all
                                 processes open the session, with the same mesh, and each builds
                                 what stands on its own devices */
    tutti_strategy *strategy; /* how runs are spread; NULL: not at all, nor with a mesh, for which
                                 it says who the processes are. Must outlive the session */
    int64_t memory_limit; /* bytes that the values of a run with gradients may take on each device
                             beside variables; 0: any number. Forward values are computed again
                             where that is needed; TOO_LARGE says what is needed at least. A body of
                             while is a program of its own, compiled when it first runs, with the
                             same limit; on whole, which takes it as a part of its graph, it counts
                             with the rest */
} tutti_session_options;

/* The graph must outlive the session; it may grow while the session is open. */
TUTTI_API tutti_status tutti_session_open_with(tutti_graph *graph,
                                               const tutti_session_options *options,
                                               tutti_session **ret_session);
#define tutti_session_open(ret_session, ...)                                                       \
    tutti_session_open_with(TUTTI_ONE_(tutti_session_options, __VA_ARGS__, ), ret_session)
/* Waits for nobody: no run may be under way. NULL is fine. */
TUTTI_API void tutti_session_close(tutti_session *session);

/* How many runs have committed updates of variables: the version of what the session holds. In a
 * job of several processes those count in which the processes meet, so that all have the same
 * number between two runs. When a process is lost in the middle of a run, those that are left come
 * to one version before the run returns its error, which names it: all have committed, or none has.
 * 0 for NULL. */
TUTTI_API int64_t tutti_session_version(tutti_session *session);

typedef struct tutti_feed {
    tutti_sym sym;
    tutti_tensor *value; /* borrowed for the run */
} tutti_feed;
typedef struct tutti_fetch {
    tutti_sym sym;
    tutti_tensor **ret_value; /* a new tensor, the caller's to release */
} tutti_fetch;
typedef struct tutti_run_options {
    size_t struct_size;
    struct {
        int count;
        const tutti_feed *list;
    } feed;
    struct {
        int count;
        const tutti_fetch *list;
    } fetch;
    struct {
        int count;
        const tutti_sym *list;
    } targets;
    /* One more target. One that is left out, TUTTI_NO_SYM and a symbol that was never set are all
     * zero and ask for nothing; in `targets` they are refused, as poison is here too. */
    tutti_sym target;
    double deadline_seconds; /* 0: the session's */
    /* Under a strategy of several processes: rows of the whole batch, of which feeds marked by
     * tutti_split_batch hold the rows of this process (tutti_strategy_own_rows). 0: they hold all.
     */
    int64_t batch;
    /* Such feeds hold as many rows as this process said that it has (tutti_strategy_agree), or as
     * the element has that was taken last (tutti_distribute_from_function). */
    bool own_rows;
    /* The program takes variables as constants: weights are packed once, not in every run. It is
     * compiled again after any of them has changed. For answers of models that nobody trains, on
     * one device with the host's memory; elsewhere it changes nothing, and variables that lie on
     * another device than the session's are read there. */
    bool constants;
} tutti_run_options;

#define TUTTI_FEED(...)                                                                            \
    {                                                                                              \
        sizeof((tutti_feed[]){__VA_ARGS__}) / sizeof(tutti_feed), (tutti_feed[])                   \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define TUTTI_FETCH(...)                                                                           \
    {                                                                                              \
        sizeof((tutti_fetch[]){__VA_ARGS__}) / sizeof(tutti_fetch), (tutti_fetch[])                \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define TUTTI_TARGETS(...)                                                                         \
    {                                                                                              \
        sizeof((tutti_sym[]){__VA_ARGS__}) / sizeof(tutti_sym), (tutti_sym[])                      \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

/* Runs once. On failure no variable has changed and nothing is fetched. On a device with memory of
 * its own it may return before the device is done: tutti_session_finish. */
TUTTI_API tutti_status tutti_run_with(tutti_session *session, const tutti_run_options *options);
#define tutti_run(...) tutti_run_with(TUTTI_ONE_(tutti_run_options, __VA_ARGS__, ))

/* Marks a placeholder: its dimension 0 is the batch, which a strategy cuts. Returns it.
 * tutti_split_batch(tutti_dequeue_many(queue, batch)): so are the tuples that are taken out, all
 * their components. In a job of several processes each has its own queue and takes its own rows out
 * of it (tutti_strategy_own_rows), so it is to put in just these; a step for which one of them is
 * closed with too few left ends with TUTTI_OUT_OF_RANGE on all. */
TUTTI_API tutti_sym tutti_split_batch(tutti_sym placeholder);
#define tutti_split_batch(...) TUTTI_AT(tutti_split_batch(__VA_ARGS__))

/* Until what was run is done. A run on a device with memory of its own may return before the device
 * is done with it: whoever reads a result, or a variable, waits then. For measuring time, and for
 * the error of what failed after its run had returned. Where values are in host memory nothing is
 * left to wait for. */
TUTTI_API tutti_status tutti_session_finish(tutti_session *session);

/* A variable's present value (a copy), and setting it, without a run: also one that has no value
 * yet. Getting such a one is TUTTI_UNINITIALIZED. tutti_initialize_variables, run later, sets it
 * anew. Of one that replicas have values of their own of (.on_read), getting puts those of this
 * process together; setting, by all processes, gives the value that is read then. */
TUTTI_API tutti_status tutti_session_get(tutti_session *session, tutti_sym variable,
                                         tutti_tensor **ret_value);
TUTTI_API tutti_status tutti_session_set(tutti_session *session, tutti_sym variable,
                                         tutti_tensor *value);

/* What the session did: for tests and benchmarks. */
typedef struct tutti_session_info {
    uint64_t runs;     /* calls of tutti_run; bodies of tutti_while and tutti_cond are no runs, */
    uint64_t compiles; /* but are compiled, as are parts that wait for shapes */
    size_t cached_programs;
    double last_compile_seconds;
    size_t arena_bytes; /* of the program compiled last */
    size_t arena_bound; /* the most bytes of it that are in use at once: what a perfect plan of the
                           same order of instructions would take */
} tutti_session_info;
TUTTI_API void tutti_session_describe(tutti_session *session, tutti_session_info *ret_info);
/* The instructions of the program compiled last, as text (from malloc). */
TUTTI_API tutti_status tutti_session_print(tutti_session *session, char **ret_text);

#ifdef __cplusplus
}
#endif
#endif
