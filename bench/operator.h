/* operator.h: one operator's time inside a session, by the trace: neither feeds nor the memory of
 * results are in it. */
#ifndef TUTTI_BENCH_OPERATOR_H
#define TUTTI_BENCH_OPERATOR_H

#include "cli/bench.h"

/* Seconds that a run spends in kernels to make `y` of a graph, the least of `repeats` runs for each
 * kernel. One element of y is fetched, so that the rest of it stays in the run's memory. */
double tutti__operator_seconds(tutti_graph *graph, tutti_sym y, int feed_count,
                               const tutti_feed *feeds, int repeats);

#endif
