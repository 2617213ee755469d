/* executor.h: a worker's side of closures as a state machine: RUN comes in, RAN goes out. The
 * outcome of a closure is kept until the coordinator says that it and all before it are done, so
 * that a RUN that is repeated gets the same RAN and runs nothing twice here.
 *
 * One thread at a time; who runs closures takes one, lets go, and comes back with its outcome. */
#ifndef TUTTI_SERVICE_COORDINATOR_EXECUTOR_H
#define TUTTI_SERVICE_COORDINATOR_EXECUTOR_H

#include "service/coordinator/journal.h"
#include "service/store/transport.h"

/* A closure as its worker has it. */
typedef struct tutti_closure_run {
    uint64_t number, first_key, keys;
    char function[TUTTI_STORE_WORD];
    uint8_t *arguments; /* from malloc */
    size_t argument_bytes;
    uint32_t given_by; /* incarnation of the coordinator */
} tutti_closure_run;

typedef struct tutti_closure_ran {
    uint64_t number;
    tutti_closure_outcome outcome;
} tutti_closure_ran;

typedef struct tutti_executor {
    uint32_t node, incarnation;
    tutti_store_transport transport;
    uint32_t coordinator, coordinator_incarnation; /* the latest */
    enum { TUTTI_EXECUTOR_FREE, TUTTI_EXECUTOR_GIVEN, TUTTI_EXECUTOR_RUNS } state;
    tutti_closure_run run; /* given, or running */
    TUTTI_VEC(tutti_closure_ran) kept;
} tutti_executor;

void tutti__executor_init(tutti_executor *executor, uint32_t node, uint32_t incarnation,
                          const tutti_store_transport *transport);
void tutti__executor_free(tutti_executor *executor);
/* A RUN; others are ignored. */
void tutti__executor_receive(tutti_executor *executor, const tutti_store_message *message);
/* The closure to run, once; NULL: none. It stays the executor's, unchanged until the outcome. */
const tutti_closure_run *tutti__executor_take(tutti_executor *executor);
/* Takes the outcome over, and sends it. */
void tutti__executor_finish(tutti_executor *executor, tutti_closure_outcome *outcome);

#endif
