/* count.h: numbers of elements, blocks and threads. */
#ifndef TUTTI_DEVICE_CPU_COUNT_H
#define TUTTI_DEVICE_CPU_COUNT_H

#include <stdint.h>

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline int64_t round_up(int64_t a, int64_t b)
{
    return divide_up(a, b) * b;
}

#endif
