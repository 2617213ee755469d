/* draw.h: random numbers of the tester, a function of the seed on every machine. */
#ifndef TESTS_RANDOM_DRAW_H
#define TESTS_RANDOM_DRAW_H

#include <stdint.h>

typedef struct draws {
    uint64_t state;
} draws;

/* A stream of its own for each (seed, what, index). */
draws draws_of(uint64_t seed, uint64_t what, uint64_t index);
uint64_t draw_word(draws *d);
int draw_below(draws *d, int limit); /* 0 to limit - 1 */
double draw_between(draws *d, double low, double high);

#endif
