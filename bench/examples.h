/* examples.h: the examples whose own training step is measured, at the sizes that
 * docs/performance.md speaks of. */
#ifndef TUTTI_BENCH_EXAMPLES_H
#define TUTTI_BENCH_EXAMPLES_H

#include "bench/stand_in.h"

typedef struct tutti_bench_example {
    const char *name;
    int (*run)(int argc, char **argv);
    int64_t batch;
    const char *settings[2]; /* flags of the example */
    bool between;            /* other programs run between two steps: a world is asked, a second
                                network learns */
    bool fed_aside;          /* by threads of its own, whose memory comes and goes */
    int warm;                /* steps until all its programs have run; 0: a few */
} tutti_bench_example;

/* By name, or NULL with a complaint that lists them. */
const tutti_bench_example *tutti__bench_example(const char *name);
/* All of them: index from 0; NULL past the end. */
const tutti_bench_example *tutti__bench_example_at(size_t index);

/* Runs its main with its flags, --batch and --precision (NULL: its own), and argv[from] and those
 * behind it; every step is told to the stand-in. The exit code of main. */
int tutti__bench_example_run(const tutti_bench_example *example, const char *precision,
                             const tutti_stand_in *stand_in, int from, int argc, char **argv);

#endif
