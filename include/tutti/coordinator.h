/* coordinator.h: work that is given to workers one closure at a time.
 *
 *     static tutti_status step(tutti_closure *closure, void *user)
 *     {
 *         …tutti_closure_next(closure, "train", &batch), tutti_closure_pull, gradients,
 *         tutti_closure_push, tutti_closure_result(closure, loss)…
 *     }
 *
 *     tutti_coordinator *c = tutti_coordinator_open(job, .workers = 4, .journal = "run.journal");
 *     tutti_coordinator_variable(c, "w", first, .update = adam);
 *     tutti_coordinator_dataset(c, "train", own_part, NULL);
 *     tutti_coordinator_function(c, "step", step, NULL);
 *     if (tutti_coordinator_serve(c))
 *         return tutti_close(job);
 *     for (int64_t epoch = tutti_coordinator_position(c); epoch < 10; epoch++) {
 *         for (int i = 0; i < 100; i++)
 *             tutti_future_release(tutti_coordinator_schedule(c, "step"));
 *         tutti_coordinator_mark(c, epoch + 1);
 *     }
 *     return tutti_close(job);
 *
 * A closure is a function's name and tensors; code never travels, so all processes run the same
 * program text. Variables lie on parameter servers. A worker that is lost in the middle of a
 * closure is noticed, and the closure runs elsewhere; what it had pushed is not applied twice,
 * because pushes go by keys of the closure. So whatever happens, each closure counts exactly once.
 *
 * In one process, servers and workers are its threads. Calls with a coordinator need no checking:
 * what goes wrong is the job's error too. One thread at a time may use a coordinator; functions of
 * closures run on other threads, or in other processes. */
#ifndef TUTTI_COORDINATOR_H
#define TUTTI_COORDINATOR_H

#include "tutti/dataset.h"
#include "tutti/gradients.h"
#include "tutti/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_coordinator tutti_coordinator;
typedef struct tutti_closure tutti_closure; /* as its function sees it, on a worker */
typedef struct tutti_future tutti_future;   /* what will come of a closure */

typedef struct tutti_coordinator_options {
    size_t struct_size;
    int workers, servers;    /* threads and servers of this process; 2, 1 */
    const char *consistency; /* of variables: "async", "softsync:n"; others go by steps, which
                                closures have none of */
    const char *rate;        /* learning rate by age: "", "inverse" (1/tau), "distance" */
    const char *placement;   /* "round_robin", "least_loaded" */
    bool replicas;           /* a server's variables are also with the next one */
    int64_t server_limit;    /* bytes of each server; 0: none */
    const char *journal;     /* a file: a coordinator that is killed goes on from it. NULL: none */
    double timeout;          /* seconds that a call waits at most; 0: 300 */
    int attempts;            /* workers that a closure may be lost with before it fails; 0: 10 */
} tutti_coordinator_options;

/* It ends with the job. NULL after an error. With a journal, variables and numbers of closures are
 * what they were at its last mark. */
TUTTI_API tutti_coordinator *tutti_coordinator_open_with(tutti_job *job,
                                                         const tutti_coordinator_options *options);
#define tutti_coordinator_open(...)                                                                \
    tutti_coordinator_open_with(TUTTI_ONE_(tutti_coordinator_options, __VA_ARGS__, ))

/* ---- before the first closure; in all processes alike ---- */

/* Builds the update of a variable by a gradient, in a graph of its own: any optimizer.
 *     static tutti_sym adam(tutti_sym value, const tutti_grad *gradient, void *user)
 *     {
 *         return tutti_apply_gradients(tutti_adam(), 1, &value, gradient);
 *     }
 */
typedef tutti_sym tutti_update_fn(tutti_sym value, const tutti_grad *gradient, void *user);
/* The server of a shard of so many bytes, of servers 0 to count - 1. */
typedef int tutti_place_fn(const char *shard, int64_t bytes, int servers, void *user);

typedef struct tutti_server_variable_options {
    size_t struct_size;
    tutti_update_fn *update; /* NULL: v = v - rate * gradient */
    void *user;
    double learning_rate;    /* without .update; 0.01 */
    const char *partitioner; /* "fixed_size(4)", "min_size(bytes, n)", "max_size(bytes)",
                                "variable_axis_size(axis, bytes, n)", or "4,1": pieces along each
                                axis, of which one is more than 1. NULL: whole */
    /* A table whose rows exist where they were touched: `rows` of them, TUTTI_ANY for keys without
     * bound, cut into `pieces` by the key's hash. Of its first value only the type and the other
     * dimensions count: [1, 64] of f32 are rows of 64. */
    int64_t rows;
    int64_t pieces;
    const char *initial; /* of such rows: "constant:x", "normal:deviation", "uniform:limit" */
} tutti_server_variable_options;
TUTTI_API void tutti_coordinator_variable_with(tutti_coordinator *coordinator, const char *name,
                                               tutti_tensor *first,
                                               const tutti_server_variable_options *options);
#define tutti_coordinator_variable(coordinator, name, ...)                                         \
    tutti_coordinator_variable_with((coordinator), (name),                                         \
                                    TUTTI_ONE_(tutti_server_variable_options, __VA_ARGS__, ))
/* In place of .placement, for the variables that come after it. */
TUTTI_API void tutti_coordinator_place(tutti_coordinator *coordinator, tutti_place_fn *place,
                                       void *user);
/* What lies where: "ps 0: 12 shards, 5.2 MiB   ps 1: 11 shards, 5.1 MiB". */
TUTTI_API void tutti_coordinator_loads(const tutti_coordinator *coordinator, char *ret_text,
                                       size_t size);

/* What a closure runs. A failure fails the closure; TUTTI_CLOSED, which a
 * worker has without its servers, makes it run elsewhere. */
typedef tutti_status tutti_closure_fn(tutti_closure *closure, void *user);
/* Makes it known under a name, before the first closure. */
TUTTI_API void tutti_coordinator_function(tutti_coordinator *coordinator, const char *name,
                                          tutti_closure_fn *function, void *user);
/* A dataset of each worker's own: fn is called once for each, with its number, and makes a new
 * one each time. For an evaluation they are all alike. */
typedef tutti_dataset *tutti_closure_data_fn(tutti_job *job, int worker, int workers, void *user);
TUTTI_API void tutti_coordinator_dataset(tutti_coordinator *coordinator, const char *name,
                                         tutti_closure_data_fn *fn, void *user);

/* In a process that is a worker: runs closures until the coordinator ends, then true. In the
 * coordinator's own process at once false, and closures may be scheduled. */
TUTTI_API bool tutti_coordinator_serve(tutti_coordinator *coordinator);

/* ---- the coordinator's ---- */

typedef struct tutti_schedule_closure_options {
    size_t struct_size;
    struct {
        int count;
        tutti_tensor *const *list;
    } arguments; /* TUTTI_TENSORS(x, y) */
    int pushes;  /* that the closure makes at most; 1 */
} tutti_schedule_closure_options;
#define TUTTI_TENSORS(...)                                                                         \
    {                                                                                              \
        (int)(sizeof((tutti_tensor *[]){__VA_ARGS__}) / sizeof(tutti_tensor *)),                   \
            (tutti_tensor *[])                                                                     \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
/* Some worker will run the function; returns at once. The future is the caller's to release, at
 * any time. NULL after an error, and once another closure has failed, until join has said so. */
TUTTI_API tutti_future *
tutti_coordinator_schedule_with(tutti_coordinator *coordinator, const char *function,
                                const tutti_schedule_closure_options *options);
#define tutti_coordinator_schedule(coordinator, ...)                                               \
    tutti_coordinator_schedule_with((coordinator),                                                 \
                                    TUTTI_ONE_(tutti_schedule_closure_options, __VA_ARGS__, ))
/* Waits until all closures are done. The first failure of one of them, when those that had not
 * begun are cancelled; it is the job's, too. */
TUTTI_API tutti_status tutti_coordinator_join(tutti_coordinator *coordinator);
/* Whether all are done; waits for nothing. */
TUTTI_API bool tutti_coordinator_done(tutti_coordinator *coordinator);
/* Waits for one closure: its results, which are the caller's to release, or its failure. */
TUTTI_API tutti_status tutti_coordinator_fetch(tutti_coordinator *coordinator, tutti_future *future,
                                               int count, tutti_tensor **ret_results);
TUTTI_API void tutti_future_release(tutti_future *future); /* NULL is fine */

/* Runs the function on elements 0 to total - 1, `each` at a time (tutti_closure_range), and adds up
 * the tensors that it gives as results, element by element: every example counts once, whatever
 * happens to workers. The sums are the caller's. */
TUTTI_API tutti_status tutti_coordinator_evaluate(tutti_coordinator *coordinator,
                                                  const char *function, int64_t total, int64_t each,
                                                  int count, tutti_tensor **ret_sums);
/* The value of a variable now; of a table some of its rows (i64 [n]). */
TUTTI_API tutti_status tutti_coordinator_get(tutti_coordinator *coordinator, const char *variable,
                                             tutti_tensor **ret_value);
TUTTI_API tutti_status tutti_coordinator_get_rows(tutti_coordinator *coordinator,
                                                  const char *variable, tutti_tensor *rows,
                                                  tutti_tensor **ret_values);

/* Waits for all closures, then writes into the journal that the program is at `position`: a
 * coordinator that is killed later goes on there. Between marks it repeats its calls, and closures
 * that were done are not run again where their servers lived on. */
TUTTI_API tutti_status tutti_coordinator_mark(tutti_coordinator *coordinator, int64_t position);
/* Of the last mark; 0: none. */
TUTTI_API int64_t tutti_coordinator_position(const tutti_coordinator *coordinator);

typedef struct tutti_coordinator_report {
    uint64_t closures, retried; /* retried: since their worker was lost */
    uint64_t gradients;         /* that servers have applied */
    double staleness;           /* their mean, in versions */
    uint64_t largest;
} tutti_coordinator_report;
/* How it goes. */
TUTTI_API void tutti_coordinator_tell(tutti_coordinator *coordinator,
                                      tutti_coordinator_report *ret_report);

/* ---- in a closure's function ---- */

TUTTI_API int tutti_closure_worker(const tutti_closure *closure);      /* 0 to workers - 1 */
TUTTI_API int tutti_closure_workers(const tutti_closure *closure);     /* how many there are */
TUTTI_API uint64_t tutti_closure_number(const tutti_closure *closure); /* equal on every retry */
/* An argument, which is the closure's; NULL when there is none. */
TUTTI_API tutti_tensor *tutti_closure_argument(const tutti_closure *closure, int index);
/* One more result: a copy. */
TUTTI_API tutti_status tutti_closure_result(tutti_closure *closure, tutti_tensor *result);
/* The next element of this worker's dataset, epoch after epoch; the caller's to release. */
TUTTI_API tutti_status tutti_closure_next(tutti_closure *closure, const char *dataset,
                                          tutti_element *ret_element);
/* Of an evaluation: which elements to take; and the next one of them, without components at the
 * end. */
TUTTI_API tutti_status tutti_closure_range(const tutti_closure *closure, int64_t *ret_first,
                                           int64_t *ret_count);
TUTTI_API tutti_status tutti_closure_range_next(tutti_closure *closure, const char *dataset,
                                                tutti_element *ret_element);
/* Values of variables now, the caller's to release; and gradients of them, in one push. */
TUTTI_API tutti_status tutti_closure_pull(tutti_closure *closure, int count,
                                          const char *const *variables, tutti_tensor **ret_values);
TUTTI_API tutti_status tutti_closure_push(tutti_closure *closure, int count,
                                          const char *const *variables,
                                          tutti_tensor *const *gradients);
/* Rows of a table: `rows` is i64 [n], values and gradient [n, …]; gradients of equal rows add up.
 */
TUTTI_API tutti_status tutti_closure_pull_rows(tutti_closure *closure, const char *variable,
                                               tutti_tensor *rows, tutti_tensor **ret_values);
TUTTI_API tutti_status tutti_closure_push_rows(tutti_closure *closure, const char *variable,
                                               tutti_tensor *rows, tutti_tensor *gradient);

#ifdef __cplusplus
}
#endif
#endif
