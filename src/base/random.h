/* random.h: counter-based random numbers (Philox 4x32-10). A number is a function of (key, index),
 * so any piece of a tensor can be drawn anywhere and in any order. */
#ifndef TUTTI_BASE_RANDOM_H
#define TUTTI_BASE_RANDOM_H

#include <stdint.h>

typedef struct tutti_random_key {
    uint64_t seed;   /* the user's seed mixed with the operator's name */
    uint64_t stream; /* the step */
} tutti_random_key;

/* Four 32-bit words for one 64-bit counter value: counter = (index, stream), key = seed. */
void tutti__random_block(tutti_random_key key, uint64_t index, uint32_t ret_words[4]);

/* The i-th number of the stream. Word i % 4 of block i / 4. */
uint32_t tutti__random_u32(tutti_random_key key, uint64_t i);
/* In [0, 1), 24 bits, a multiple of 2^-24. */
float tutti__random_f32(tutti_random_key key, uint64_t i);
/* Standard normal by Box-Muller from words 2*(i/2) and 2*(i/2)+1. */
double tutti__random_normal(tutti_random_key key, uint64_t i);
/* Uniform in [0, bound) without modulo bias beyond 2^-32; bound >= 1. Uses 64 bits: words 2i, 2i+1.
 */
uint64_t tutti__random_below(tutti_random_key key, uint64_t i, uint64_t bound);

#endif
