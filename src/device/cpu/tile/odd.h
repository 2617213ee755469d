/* odd.h: from 64 bits to 16 in two steps, with one rounding. */
#ifndef TUTTI_DEVICE_CPU_TILE_ODD_H
#define TUTTI_DEVICE_CPU_TILE_ODD_H

#include <stdint.h>
#include <string.h>

/* x as a float whose last bit is 1 where it is not exact: that is never the middle between two
 * numbers of 16 bits, so rounding it to one of them gives what rounding x would. */
static inline float tutti__odd_float(double x)
{
    float near = (float)x;
    uint32_t bits;
    if (near == x || x != x)
        return near;
    memcpy(&bits, &near, sizeof bits);
    bits -= __builtin_fabs(near) > __builtin_fabs(x); /* towards zero */
    bits |= 1;
    memcpy(&near, &bits, sizeof near);
    return near;
}

#endif
