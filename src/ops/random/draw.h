/* draw.h: how a random operator's element is drawn. Fast kernels include this too, so that they
 * give the reference's bits.
 *
 * The key is (mix(seed, salt), counter): the user's seed, a hash of the node's name, the step. The
 * index is the element's flat row-major index in the whole tensor. A node that draws a piece of a
 * tensor says so with attributes "global_dims" and "start". */
#ifndef TUTTI_OPS_RANDOM_DRAW_H
#define TUTTI_OPS_RANDOM_DRAW_H

#include <math.h>

#include "base/container.h"
#include "base/random.h"
#include "tutti/op.h"

typedef struct tutti_draw {
    tutti_random_key key;
    int rank;
    const int64_t *dims;                /* of the output */
    const int64_t *global_dims, *start; /* NULL: the output is the whole tensor */
} tutti_draw;

/* From a call whose input 0 is the counter. */
tutti_draw tutti__draw_of(const tutti_kernel_call *call, const tutti_view *output);

/* The index in the whole tensor of the output's element i. */
uint64_t tutti__draw_index(const tutti_draw *draw, int64_t i);

/* In [0, 1): a multiple of 2^-bits, exact in the type. Types of 53 bits take two words. */
static inline double tutti__draw_unit(tutti_random_key key, uint64_t index, tutti_dtype dtype)
{
    if (dtype == TUTTI_F64) {
        uint64_t high = tutti__random_u32(key, 2 * index),
                 low = tutti__random_u32(key, 2 * index + 1);
        return (double)((high << 32 | low) >> 11) * 0x1p-53;
    }
    int bits = dtype == TUTTI_F16 ? 11 : dtype == TUTTI_BF16 ? 8 : 24;
    return ldexp((double)(tutti__random_u32(key, index) >> (32 - bits)), -bits);
}

/* Standard normal within [-2, 2]: attempt after attempt, each with a key of its own. */
static inline double tutti__draw_truncated(tutti_random_key key, uint64_t index)
{
    for (uint64_t attempt = 0; attempt < 64; attempt++) {
        tutti_random_key own = {tutti__hash_mix(key.seed, attempt), key.stream};
        double z = tutti__random_normal(own, index);
        if (fabs(z) <= 2)
            return z;
    }
    return 0; /* with probability 2^-285 */
}

#endif
