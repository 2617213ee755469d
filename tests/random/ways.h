/* ways.h: the ways in which a recipe is run. */
#ifndef TESTS_RANDOM_WAYS_H
#define TESTS_RANDOM_WAYS_H

#include "builder.h"
#include "results.h"

enum { ROUNDS = 4 };
/* Round 0: what the loss is made of; 1: a step; 2: gradients and a step; 3: a batch of another
 * size.
 */

/* What is asked of a round. */
enum { MOST_WISHES = MOST_VALUES + MOST_WEIGHTS + 2 };
typedef struct wishes {
    int count;
    tutti_sym syms[MOST_WISHES];
    char names[MOST_WISHES][40];
} wishes;
void wish_all(wishes *w, const builder *b, int round);

typedef struct run_way {
    const char *name;
    void (*run)(const struct run_way *way, random_recipe recipe, results *ret);
    tutti_dtype dtype;
    const char *device;
    const char *strategy, *devices;
    const char *mesh, *layout; /* with it, values are split along "hidden" and "heads" at random */
    bool deterministic, serialized, scattered, constants;
    int64_t memory_limit;
    bool batched_only;
    bool stateless;      /* only recipes without state of their own */
    const char *bits_of; /* this way's bits, which ran before */
    bool named_only;     /* it needs what not every machine has: runs where --way names it */
} run_way;
extern const run_way ways[]; /* ends with one without a name */

void run_session(const run_way *way, random_recipe recipe, results *ret);
void run_tape(const run_way *way, random_recipe recipe, results *ret);
/* By reference kernels, node by node; inputs and weights are moved by up to `moved` of themselves.
 */
void run_reference(random_recipe recipe, tutti_dtype dtype, double moved, results *ret);

#endif
