/* worker.h: processes that run recipes, so that a crash or a hang is a finding like others, and
 * settings of the environment can differ. */
#ifndef TESTS_RANDOM_WORKER_H
#define TESTS_RANDOM_WORKER_H

#include <sys/types.h>

#include "ways.h"

typedef struct run_worker {
    const char *name;
    const char *settings[8]; /* name, value, name, value */
    bool same_bits;          /* as the first worker's */
    pid_t pid;
    int to, from;
} run_worker;

/* Starts it where it does not run yet, has it run the recipe, and takes what comes back. */
void worker_run(run_worker *w, const run_way *way, random_recipe recipe, results *ret);
void worker_stop(run_worker *w);

#endif
