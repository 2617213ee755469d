/* check.h: a recipe in all ways, and the smallest recipe that still fails. */
#ifndef TESTS_RANDOM_CHECK_H
#define TESTS_RANDOM_CHECK_H

#include "worker.h"

typedef struct options {
    int seeds;
    bool quick;         /* a few ways for each seed, drawn from it */
    bool keep;          /* do not shrink */
    const char *way;    /* only this one */
    const char *worker; /* only with this one */
} options;

typedef struct finding {
    random_recipe recipe;
    const run_way *way;
    run_worker *worker;
    char words[600];
} finding;

/* Whether all is well; else what is not. */
bool check_recipe(const options *o, random_recipe recipe, finding *ret);
/* Leaves steps out as long as the same way of running still fails. */
void shrink(const options *o, finding *f);
void print_recipe(random_recipe recipe);
void check_stop(void);

#endif
