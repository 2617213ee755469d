/* coordinator.h: what the files of the coordinator share. */
#ifndef TUTTI_SERVICE_COORDINATOR_COORDINATOR_H
#define TUTTI_SERVICE_COORDINATOR_COORDINATOR_H

#include <pthread.h>

#include "service/coordinator/dispatcher.h"
#include "service/coordinator/executor.h"
#include "service/coordinator/tensor_list.h"
#include "service/store/local.h"
#include "service/store/processes.h"
#include "tutti/coordinator.h"

typedef struct tutti_closure_function {
    char *name;
    tutti_closure_fn *fn;
    void *user;
} tutti_closure_function;

typedef struct tutti_closure_dataset {
    char *name;
    tutti_dataset **of;      /* [here] */
    tutti_iterator **at;     /* the epoch that each is in */
    tutti_iterator **ranges; /* of the closure that it runs */
    uint64_t *epochs;
} tutti_closure_dataset;

/* A variable as it was declared: made anew by a worker that comes back. */
typedef struct tutti_closure_variable {
    tutti_store_variable_spec spec;
    tutti_server_variable_options options;
    char *texts[3]; /* name, partitioner, initial: what the spec points to */
    tutti_tensor *first;
} tutti_closure_variable;

/* A worker of this process. */
typedef struct tutti_coordinator_worker {
    tutti_coordinator *coordinator;
    int number; /* among all workers */
    int index;  /* among those of this process */
    tutti_store_client *client;
    tutti_store_worker *store;
    tutti_store_placement placement;
    tutti_executor executor;
    bool wake; /* something to do; under the drive's lock */
    bool started;
    pthread_t thread;
} tutti_coordinator_worker;

/* What this process is. */
typedef enum tutti_coordinator_role {
    TUTTI_COORDINATOR_ALONE, /* everything */
    TUTTI_COORDINATOR_CHIEF, /* rank 0 of a job: it gives closures to the other workers */
    TUTTI_COORDINATOR_WORKER,
    TUTTI_COORDINATOR_SERVED, /* it was a server, and is done */
} tutti_coordinator_role;

struct tutti_coordinator {
    tutti_job *job;
    tutti_coordinator_role role;
    int here; /* workers of this process */
    tutti_cluster *cluster;
    tutti_store_processes *processes; /* of a job; else `local` */
    int64_t left_ns; /* a worker's: since when the coordinator is gone; 0: it is not */
    tutti_coordinator_options options;
    char *texts[4]; /* what options point to */
    tutti_store_local *local;
    tutti_store_drive drive;
    tutti_store_client *client;    /* of the coordinator itself */
    tutti_coordinator_worker self; /* reads variables; runs nothing */
    tutti_coordinator_worker *workers;
    tutti_dispatcher dispatcher;
    tutti_journal journal;
    tutti_error broken; /* journal or memory; under the lock */
    bool begun, ends;
    bool arrived;     /* what `awaited` asks for; under the lock */
    uint64_t awaited; /* a closure; 0: all of them */
    int finishing;    /* FINISH under way */
    uint64_t finishing_key, closures;
    tutti_place_fn *place;
    void *place_user;
    TUTTI_VEC(tutti_closure_function) functions;
    TUTTI_VEC(tutti_closure_dataset) datasets;
    TUTTI_VEC(tutti_closure_variable *) variables;
};

struct tutti_closure {
    tutti_coordinator_worker *worker;
    const tutti_closure_run *run;
    int argument_count;
    tutti_tensor *arguments[TUTTI_CLOSURE_TENSORS];
    tutti_text results;
    bool dies; /* tests: the worker is lost when the function returns */
};

/* Its number, or -1 and NOT_FOUND, which lists what there is. */
int tutti__coordinator_variable(const tutti_coordinator *coordinator, const char *name);
/* Makes all variables on a worker that begins. */
tutti_status tutti__coordinator_make_variables(tutti_coordinator *coordinator,
                                               tutti_coordinator_worker *worker);
void tutti__coordinator_free_variables(tutti_coordinator *coordinator);

tutti_status tutti__coordinator_start_worker(tutti_coordinator_worker *worker);
void tutti__coordinator_stop_worker(tutti_coordinator_worker *worker);
tutti_status tutti__coordinator_join_store(tutti_coordinator *coordinator,
                                           tutti_coordinator_worker *worker,
                                           tutti_store_client *client);
void tutti__coordinator_leave_store(tutti_coordinator_worker *worker);

/* A worker's process: runs closures until the coordinator ends. */
tutti_status tutti__coordinator_work(tutti_coordinator_worker *worker);

/* For tests: the worker dies when the closure's function returns, and another takes its place. */
void tutti__closure_dies(tutti_closure *closure);

#endif
