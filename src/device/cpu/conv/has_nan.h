/* has_nan.h: whether one of some floats is NaN; for files compiled once for each instruction set.
 */
#ifndef TUTTI_DEVICE_CPU_CONV_HAS_NAN_H
#define TUTTI_DEVICE_CPU_CONV_HAS_NAN_H

#include <stdbool.h>

#include "device/cpu/vector.h"

static inline bool has_nan(const float *x, int64_t count)
{
    ivec found = {0}, more = {0};
    int64_t i = 0;
    for (; i + 2 * VEC_LANES <= count; i += 2 * VEC_LANES) {
        vec some = vec_load(x + i), others = vec_load(x + i + VEC_LANES);
        found |= (ivec)(some != some);
        more |= (ivec)(others != others);
    }
    found |= more;
    int32_t any = 0;
    for (int l = 0; l < VEC_LANES; l++)
        any |= found[l];
    for (; i < count; i++)
        any |= x[i] != x[i];
    return any != 0;
}

#endif
