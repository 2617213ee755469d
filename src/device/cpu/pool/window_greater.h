/* window_greater.h: maxima of windows, VEC_LANES channels side by side. */
#ifndef TUTTI_DEVICE_CPU_POOL_WINDOW_GREATER_H
#define TUTTI_DEVICE_CPU_POOL_WINDOW_GREATER_H

#include "device/cpu/vector.h"

/* The greater of two; a NaN is greater than all. */
VEC_INLINE vec window_greater(vec a, vec b)
{
#if defined(__aarch64__)
    return vmaxq_f32(a, b);
#else
    a = vec_select(vec_gt(b, a), b, a);
    return vec_select(vec_ne(b, b), b, a);
#endif
}

#endif
