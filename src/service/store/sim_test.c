/* sim_test.c: the protocol under a simulator of network and time. TUTTI_TEST_SEED=17 replays one
 * seed, TUTTI_TEST_SEEDS=100000 runs so many. */
#include <stdio.h>
#include <stdlib.h>

#include "service/store/testing_sim.h"

static uint64_t number_of(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    return text && text[0] ? strtoull(text, NULL, 10) : fallback;
}

/* As many as a few seconds allow. */
#if TUTTI_TEST_SANITIZED || !defined(__OPTIMIZE__)
enum { SEEDS = 1500 };
#else
enum { SEEDS = 10000 };
#endif

static void run_seeds(uint64_t from, uint64_t share)
{
    uint64_t seeds = number_of("TUTTI_TEST_SEEDS", SEEDS);
    if (getenv("TUTTI_TEST_SEED")) {
        if (from == 0)
            store_sim_run(number_of("TUTTI_TEST_SEED", 0));
        return;
    }
    for (uint64_t seed = from; seed < seeds; seed += share)
        store_sim_run(seed);
}

TUTTI_TEST(store_sim_first_half_of_seeds)
{
    run_seeds(0, 2);
}

TUTTI_TEST(store_sim_second_half_of_seeds)
{
    run_seeds(1, 2);
}
