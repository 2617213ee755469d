/* worker_inside.h: what the files of a worker share: worker.c has requests, worker_variables.c
 * makes variables, worker_pull.c and worker_push.c read and move them. */
#ifndef TUTTI_SERVICE_STORE_WORKER_INSIDE_H
#define TUTTI_SERVICE_STORE_WORKER_INSIDE_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/store/worker.h"

/* A shard as this worker last heard of it. */
typedef struct worker_piece {
    uint32_t id, slot;
    uint64_t clock, version;
} worker_piece;

typedef struct worker_variable {
    char *name;
    tutti_type type;
    tutti_store_partition partition;
    bool hashed; /* keys without bound: a piece by the key's hash */
    TUTTI_VEC(worker_piece) pieces;
} worker_variable;

struct tutti_store_worker {
    tutti_store_client *client;
    tutti_store_drive drive;
    tutti_store_placement *placement;
    TUTTI_VEC(worker_variable *) variables;
    uint32_t shards;
    uint64_t txns, puts;
    uint64_t closure, closure_end; /* the next key of a closure; none where they are equal */
    bool in_closure;
    int open;          /* requests that nobody waits for */
    bool settled;      /* there are none of these */
    int late;          /* shards that dropped a push that nobody waited for */
    tutti_error error; /* the first failure of one of these, */
    bool *waiting;     /* which ends the call that waits */
};

/* One call: requests under way, and the first refusal. */
typedef struct worker_batch {
    tutti_store_worker *worker;
    int open, late;
    bool done, again; /* again: what was to be read is no longer kept */
    tutti_error error;
    uint64_t number; /* of the last atomic push, with `streams` */
    uint64_t *streams;
    size_t stream_count;
} worker_batch;

/* One request, from malloc, freed when it is answered. */
typedef struct worker_request {
    worker_batch *batch; /* NULL: nobody waits for it */
    tutti_store_worker *worker;
    worker_variable *variable;
    worker_piece *piece;
    uint64_t step;       /* the message's */
    bool counts;         /* a push by this worker's step */
    tutti_tensor *holds; /* what the message points into */
    uint8_t *rows;       /* the same */
    tutti_tensor *into;  /* of a pull: borrowed */
    int64_t begin;       /* where along the axis */
    int64_t *places;     /* of rows: each one's place in `into`, or NULL */
    size_t place_count;
    struct named_list *names; /* of a GET: where it goes */
} worker_request;

/* Sends a request, which takes `made` over in every case. `b` NULL: nobody waits for it. */
tutti_status tutti__store_worker_ask(tutti_store_worker *w, worker_batch *b, worker_request made,
                                     tutti_store_message *message);
/* What a GET was answered. */
tutti_status tutti__store_worker_take_got(worker_request *r, const tutti_store_message *answer);
/* Calls of the client between these two; what failed unheard before is said now. */
tutti_status tutti__store_worker_begin(worker_batch *b, tutti_store_worker *w);
/* Waits for what was asked. When that fails, answers that are still to come find nobody. */
tutti_status tutti__store_worker_wait(worker_batch *b, tutti_status asked);
tutti_status tutti__store_worker_end(worker_batch *b, tutti_status status);

void tutti__store_worker_variable_free(worker_variable *v); /* NULL is fine */
size_t tutti__store_worker_row_bytes(const tutti_type *type);
/* A contiguous part of a tensor, for shard i. */
tutti_status tutti__store_worker_cut(const worker_variable *v, tutti_tensor *whole, size_t i,
                                     tutti_tensor **ret);
tutti_packed_data tutti__store_worker_elements(const tutti_tensor *tensor);
/* The rows of shard i: their numbers there, and their places in the call. */
tutti_status tutti__store_worker_rows_of(const worker_variable *v, size_t i, tutti_tensor *rows,
                                         worker_request *r);
/* `gradient` may be NULL. */
tutti_status tutti__store_worker_check_rows(const worker_variable *v, tutti_tensor *rows,
                                            tutti_tensor *gradient);

#endif
