/* ranks.h: a group of ranks that does the same work: the job's own, or processes or threads of this
 * machine. */
#ifndef TUTTI_BENCH_RANKS_H
#define TUTTI_BENCH_RANKS_H

#include "tutti/comm.h"

typedef struct tutti_bench_ranks {
    int count; /* where there is no job: processes to fork, threads with the engine "local" */
    bool free; /* do not pin rank i to CPU i where there are enough */
    const tutti_comm_options *options;
    tutti_status (*work)(tutti_comm *comm, const void *context);
    const void *context;
} tutti_bench_ranks;

/* Runs the work on all ranks; rank 0 says what went wrong. Exit code. Forked processes do not
 * return. */
int tutti__bench_run_ranks(const tutti_bench_ranks *ranks);

/* Of a call that took from `start` to `end` here: from the first rank's start to the last one's
 * end, by the clock that ranks of one machine share: who came late and found its bytes there has
 * not seen what they cost. Between machines it is the slowest rank's own time. Collective. */
tutti_status tutti__bench_span(tutti_comm *comm, double start, double end, double *ret_seconds);

#endif
