/* extremes.h: rows of doubles, the larger or the smaller of each two. */
#ifndef TUTTI_DEVICE_CPU_EXTREMES_H
#define TUTTI_DEVICE_CPU_EXTREMES_H

#include "base/extremes.h"
#include "device/cpu/tile/loops.h"

/* to = max(a, b), or min(a, b); `to` may be either. */
VEC_INLINE void extremes_f64(bool most, double *to, const double *a, const double *b, int64_t count)
{
    int64_t i = 0;
#if VEC_NEON
    for (; i + 4 <= count; i += 4) {
        float64x2x2_t x = vld1q_f64_x2(a + i), y = vld1q_f64_x2(b + i);
        for (int k = 0; k < 2; k++)
            x.val[k] = most ? vmaxq_f64(x.val[k], y.val[k]) : vminq_f64(x.val[k], y.val[k]);
        vst1q_f64_x2(to + i, x);
    }
#endif
    TILE_FOR(; i < count; i++)
    to[i] = most ? tutti__maximum(a[i], b[i]) : tutti__minimum(a[i], b[i]);
}

#endif
