/* worker.h: variables as a worker sees them: cut into shards, placed on slots, pulled together and
 * pushed apart. Calls block until they are answered; how, says whoever drives the client.
 *
 * All workers make the same variables in the same order: so all know where everything lies. */
#ifndef TUTTI_SERVICE_STORE_WORKER_H
#define TUTTI_SERVICE_STORE_WORKER_H

#include "service/store/client.h"
#include "service/store/partition.h"

/* What drives a client. `wait` returns when *done, or fails (its deadline). Between enter and leave
 * nobody else touches the client. */
typedef struct tutti_store_drive {
    void *context;
    void (*enter)(void *context);
    void (*leave)(void *context);
    tutti_status (*wait)(void *context, const bool *done); /* called between them */
    int64_t (*now)(void *context);
} tutti_store_drive;

/* The update rule of a shard of this type, serialised; *ret_data is from malloc, may stay NULL. */
typedef tutti_status tutti_store_build_rule(void *context, const tutti_type *shard, void **ret_data,
                                            size_t *ret_size);

typedef struct tutti_store_variable_spec {
    const char *name;
    tutti_type type;         /* dims[0] TUTTI_ANY: keys without bound */
    const char *partitioner; /* "" or NULL: whole */
    const char *consistency, *nan, *rate, *rule, *initial; /* NULL: "async", "", "", "graph", "" */
    int64_t pieces;                /* of keys without bound: shards, by the hash of a key */
    tutti_store_build_rule *build; /* (optional) */
    void *context;
} tutti_store_variable_spec;

typedef struct tutti_store_worker tutti_store_worker;

/* Borrows the client and the placement, which it may not share with another worker. */
tutti_status tutti__store_worker_open(tutti_store_client *client, const tutti_store_drive *drive,
                                      tutti_store_placement *placement,
                                      tutti_store_worker **ret_worker);
void tutti__store_worker_close(tutti_store_worker *worker); /* NULL is fine */

/* Makes a variable on its servers, with this value where no other worker came first; NULL: what its
 * rule begins with. Its number among the worker's variables. */
tutti_status tutti__store_worker_variable(tutti_store_worker *worker,
                                          const tutti_store_variable_spec *spec,
                                          tutti_tensor *value, int *ret_variable);
int tutti__store_worker_shards(const tutti_store_worker *worker, int variable);

/* Values of several variables, when their policies let this worker read. `atomic`: what all of them
 * were between two atomic pushes. */
tutti_status tutti__store_worker_pull(tutti_store_worker *worker, int count, const int *variables,
                                      bool atomic, tutti_tensor **ret_values);
/* This step's gradients; a NULL one moves nothing. `atomic`: applied on all servers or on none.
 * *ret_late (optional): shards that dropped theirs, since their step was over. */
tutti_status tutti__store_worker_push(tutti_store_worker *worker, int count, const int *variables,
                                      tutti_tensor *const *gradients, bool atomic, int *ret_late);
/* What a variable has on its servers, by name: "value", its slots, its counters. */
typedef struct tutti_store_named {
    char *name;
    tutti_tensor *tensor;
} tutti_store_named;
typedef tutti_status tutti_store_named_fn(void *context, const char *name, tutti_tensor *tensor);
/* All of it, when the policy lets this worker read; and values for some of it, whatever others have
 * made of them. Of a variable in shards what is cut as it is goes as a whole. */
tutti_status tutti__store_worker_get(tutti_store_worker *worker, int variable,
                                     tutti_store_named_fn *each, void *context);
tutti_status tutti__store_worker_put(tutti_store_worker *worker, int variable, int count,
                                     const tutti_store_named *names);
/* A gradient of a step, with what it is to be applied. */
typedef struct tutti_store_push {
    int variable;
    tutti_tensor *gradient; /* NULL: nothing moves */
    tutti_tensor *rows; /* i64 [n]: the gradient is of these rows, equal ones are summed; or NULL */
    double rate;        /* of learning; 1 where the rule has its own */
} tutti_store_push;
/* The same, but without waiting for the answers, unless they are atomic: reads that follow are
 * behind them, and what fails is said by the next call. */
tutti_status tutti__store_worker_push_each(tutti_store_worker *worker, int count,
                                           const tutti_store_push *pushes, bool atomic);
/* Until all of these are answered. */
tutti_status tutti__store_worker_settle(tutti_store_worker *worker);
/* How many shards dropped such a push, since its step was over. */
int tutti__store_worker_late(const tutti_store_worker *worker);
/* The same of rows of one variable: `rows` is i64 [n], values and gradient [n, ...]. Equal rows in
 * a push are summed. */
tutti_status tutti__store_worker_pull_rows(tutti_store_worker *worker, int variable,
                                           tutti_tensor *rows, tutti_tensor **ret_values);
tutti_status tutti__store_worker_push_rows(tutti_store_worker *worker, int variable,
                                           tutti_tensor *rows, tutti_tensor *gradient);
/* Between these, pushes go by the keys of a closure, from first_key on, one for each call, in place
 * of this worker's step; more calls than keys are INVALID. */
void tutti__store_worker_begin_closure(tutti_store_worker *worker, uint64_t first_key,
                                       uint64_t keys);
void tutti__store_worker_end_closure(tutti_store_worker *worker);
/* The same push under the key of a closure, in place of this worker's step. */
tutti_status tutti__store_worker_push_closure(tutti_store_worker *worker, uint64_t closure,
                                              int count, const int *variables,
                                              tutti_tensor *const *gradients);

#endif
