/* servers.h: what a strategy with parameter servers asks of them. Whoever has servers gives one
 * table, which stands in a room above this one.
 * tables: tutti_servers_kind
 *
 * A process of the job is a worker, which makes variables there, pulls values and pushes gradients;
 * or it is a server, and does nothing else until the workers have left. */
#ifndef TUTTI_PARALLEL_STRATEGIES_SERVERS_H
#define TUTTI_PARALLEL_STRATEGIES_SERVERS_H

#include "tutti/cluster.h"
#include "tutti/tensor.h"

enum { TUTTI_SERVERS_BLOCK = 16 };

typedef struct tutti_servers_options {
    const tutti_cluster *cluster; /* NULL: this process alone serves and works */
    const char *consistency;      /* "async", "sync", "sync:backup=1", "ssp:3", "softsync:2" */
    const char *placement;        /* "round_robin", "least_loaded" */
    const char *nan, *rate;       /* of pushes that are no numbers; by staleness */
    int replicas;                 /* 0 or 1 */
    int64_t limit;                /* bytes of each server; 0: none */
    bool atomic;                  /* pulls and pushes of several variables */
    const char *record, *replay;  /* files of the order of arrivals; "": none */
    int64_t deadline_ns, join_ns; /* of a call, relative; until all have met */
} tutti_servers_options;

/* A variable as it is made: whoever comes first makes it. */
typedef struct tutti_servers_variable {
    const char *name;
    tutti_type type;
    tutti_tensor *value; /* with which it begins */
    const void *rule;    /* a serialised graph that updates it (service/store/update_graph.h) */
    size_t rule_size;
    const char *partitioner; /* "" : whole */
    const char *rows; /* of a table: what a row begins with ("normal:0.1"); its rule is for a block
                         of TUTTI_SERVERS_BLOCK rows, and value is NULL. "": no table */
} tutti_servers_variable;

typedef struct tutti_servers_push {
    int variable;
    tutti_tensor *gradient; /* NULL: nothing moves */
    tutti_tensor *rows;     /* their indices, i64 [n], where the gradient is rows; or NULL */
    double rate;            /* of learning; 1 where the rule has its own */
} tutti_servers_push;

typedef tutti_status tutti_servers_named_fn(void *context, const char *name, tutti_tensor *tensor);

typedef struct tutti_servers_kind {
    const char *name;
    /* Meets the others. A server returns with *ret_served when all is over. */
    tutti_status (*open)(const tutti_servers_options *options, void **ret_servers,
                         bool *ret_served);
    /* Leaves: the others go on. `well`: this worker has come to its end. */
    tutti_status (*close)(void *servers, bool well);
    tutti_status (*variable)(void *servers, const tutti_servers_variable *variable,
                             int *ret_variable);
    /* Values, new tensors, when the consistency lets this worker read. */
    tutti_status (*pull)(void *servers, int count, const int *variables, tutti_tensor **ret_values);
    /* Some rows of one: `rows` is i64 [n]. */
    tutti_status (*pull_rows)(void *servers, int variable, tutti_tensor *rows,
                              tutti_tensor **ret_values);
    /* This step's gradients. It may return before they have arrived; what becomes of them is
     * reported by a later call. */
    tutti_status (*push)(void *servers, int count, const tutti_servers_push *pushes);
    /* A variable's "value", its slots and counters by their names, when this worker may read; and a
     * new tensor for one of them. */
    tutti_status (*get)(void *servers, int variable, tutti_servers_named_fn *each, void *context);
    tutti_status (*put)(void *servers, int variable, const char *name, tutti_tensor *tensor);
} tutti_servers_kind;

#endif
