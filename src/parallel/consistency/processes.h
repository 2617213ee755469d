/* processes.h: what the processes of a strategy tell each other beside the steps. All of them come
 * to each call, in one order; where there is one process only, nothing is sent.
 *
 * `label` says in messages what the processes were about to do. */
#ifndef TUTTI_PARALLEL_CONSISTENCY_PROCESSES_H
#define TUTTI_PARALLEL_CONSISTENCY_PROCESSES_H

#include "parallel/collectives/account.h"
#include "parallel/strategies/strategy.h"

/* Whether others have to be asked. */
bool tutti__processes_share(const tutti_strategy *strategy);
/* `values` become the reduction of those of all processes. */
tutti_status tutti__processes_reduce(const tutti_strategy *strategy, const char *label,
                                     tutti_dtype dtype, int64_t count, void *values,
                                     tutti_reduction reduction);
/* ret_all: `count` values of each process, in the order of ranks. */
tutti_status tutti__processes_gather(const tutti_strategy *strategy, const char *label,
                                     tutti_dtype dtype, int64_t count, const void *mine,
                                     void *ret_all);
/* `bytes` become those of process `from`. */
tutti_status tutti__processes_take(const tutti_strategy *strategy, const char *label, int from,
                                   int64_t size, void *bytes);
/* INVALID on all processes where one says something else, with the first line that differs. */
tutti_status tutti__processes_same(const tutti_strategy *strategy, int count,
                                   const char *const *lines);

/* What a process says before a step, and what is true of all once they were asked. */
typedef struct tutti_poll {
    bool stop;        /* the training is to end */
    bool interrupted; /* by a signal to any of them */
    double rate;      /* the learning rate, NAN: not known; copies of a weight that go different
                         ways are no model */
    int64_t step;     /* steps done */
} tutti_poll;
enum { TUTTI_STEPS_UNASKED = 16 }; /* between two times */
/* After the same step of all. A signal that any of them got is heard by all. */
tutti_status tutti__processes_poll(const tutti_strategy *strategy, tutti_poll *poll);

/* The checkpoint that a process found to go on from. */
typedef struct tutti_found {
    const char *place; /* where it looked: "at mnist.checkpoint.safetensors" */
    uint64_t identity; /* tutti__checkpoint_identity; 0: there was none */
    int64_t step;
} tutti_found;
/* INVALID on all processes where they did not all find the same: steps, slots and data of different
 * trainings would be mixed. Before anything is written. */
tutti_status tutti__found_consistent(const tutti_strategy *strategy, const tutti_found *found);

/* Where the time of replicas went, from the first to the second (collectives/account.h); sums of
 * all processes. false in *ret_known: nobody met. */
void tutti__processes_account_begin(const tutti_strategy *strategy);
tutti_status tutti__processes_account_end(const tutti_strategy *strategy, int count, double *sums,
                                          tutti_axis_group_account *ret, bool *ret_known);

#endif
