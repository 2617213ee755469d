/* bench.h: a benchmark of `tutti bench`. One file each in bench/, ending in one descriptor.
 * tables: tutti_bench */
#ifndef TUTTI_CLI_BENCH_H
#define TUTTI_CLI_BENCH_H

#include "base/world.h"
#include "cli/command.h"

typedef struct tutti_bench {
    const char *name;
    const char *summary;
    const char *usage;                            /* (optional) its own help text */
    int (*run)(int argc, char **argv, bool json); /* exit code */
} tutti_bench;

/* One line of results. In JSON: {"bench":…, "work":…, "value":…, "unit":…, "limit":…, "cpu":…}. A
 * limit is what issue or documentation promises (0: none); `higher` says which side is good. */
typedef struct tutti_result {
    const char *bench, *work;
    double value;
    const char *unit;
    double limit;
    bool higher;
} tutti_result;
void tutti__report(bool json, const tutti_result *result);

/* Seconds of the fastest of `repeats` calls of work(context), each call doing it `times` times. */
double tutti__best_seconds(int repeats, int times, void (*work)(void *context), void *context);

/* Where the value in the middle of these stands; of an even number the higher of the two. */
int64_t tutti__bench_middle(const double *values, int64_t count);

static inline double tutti__seconds(void)
{
    return (double)tutti__now_ns() * 1e-9;
}

/* Threads of the session's CPU device, for what is measured beside it. */
int tutti__bench_threads(void);

/* The CPU's name and those threads, for every report. */
const char *tutti__bench_cpu(void);

/* Whether the CPU has 512-bit vectors: some limits go by that. */
bool tutti__bench_wide_vectors(void);

/* Whether no argument is left that the benchmark does not know; complains of one. */
bool tutti__bench_knows_all(int argc, char **argv);

/* Prints the last error and ends the process; benchmarks have nobody to return to. */
void tutti__bench_must(tutti_status status);

/* Nothing random in a benchmark but this: a tensor of small numbers. */
tutti_tensor *tutti__bench_tensor(tutti_dtype dtype, int rank, const int64_t *dims, uint64_t seed);

#endif
