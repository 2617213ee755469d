/* timing.h: how long a piece of work takes all ranks of a group. */
#ifndef TUTTI_COMM_COST_TIMING_H
#define TUTTI_COMM_COST_TIMING_H

#include "comm/cost/probe.h"

/* Who measures, and how long that may take. */
typedef struct tutti_timing {
    tutti_probe probe;
    bool thorough;    /* a benchmark: the caches settle first, many rounds */
    int64_t until_ns; /* when to be done; rank 0's clock */
} tutti_timing;

/* Rank 0's word: how many rounds of `seconds` each there is time for, at most `most`. */
tutti_status tutti__timing_rounds(tutti_timing *timing, double seconds, int most, int *ret_rounds);

/* One call. `expected` seconds, 0 when nobody knows; then it is made at any price. Without time for
 * it *ret_seconds stays. */
tutti_status tutti__timing_once(tutti_timing *timing, tutti_probe_work *work, size_t bytes,
                                double expected, double *ret_seconds);
/* The best of several batches, as a program that calls often sees it. Before, *least is one call's
 * time, 0 where there was no time for one, and then it stays. */
tutti_status tutti__timing_often(tutti_timing *timing, tutti_probe_work *work, size_t bytes,
                                 double *least);

#endif
