/* draw.c: splitmix64. */
#include "draw.h"

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

draws draws_of(uint64_t seed, uint64_t what, uint64_t index)
{
    return (draws){mix(mix(mix(seed + 1) ^ (what + 1)) ^ (index + 1))};
}

uint64_t draw_word(draws *d)
{
    return mix(d->state += UINT64_C(0x9e3779b97f4a7c15));
}

int draw_below(draws *d, int limit)
{
    return limit <= 1 ? 0 : (int)(draw_word(d) % (uint64_t)limit);
}

double draw_between(draws *d, double low, double high)
{
    return low + (high - low) * (double)(draw_word(d) >> 11) * 0x1p-53;
}
