/* extremes.h: the larger and the smaller of two numbers as IEEE 754-2019 has them (maximum,
 * minimum): NaN when one is NaN, and 0 is larger than -0. Without branches, so that compilers make
 * vectors of them. */
#ifndef TUTTI_BASE_EXTREMES_H
#define TUTTI_BASE_EXTREMES_H

#include <stdint.h>
#include <string.h>

/* Asked in both orders; what comes differs in the sign of zero only. `most`: the sign that counts
 * is 0's. */
static inline double tutti__extreme(double a, double b, double one, double other, int most)
{
    int64_t bits, other_bits;
    memcpy(&bits, &one, sizeof bits);
    memcpy(&other_bits, &other, sizeof bits);
    bits = most ? bits & other_bits : bits | other_bits;
    memcpy(&one, &bits, sizeof bits);
    return __builtin_isunordered(a, b) ? a + b : one;
}

static inline double tutti__maximum(double a, double b)
{
    return tutti__extreme(a, b, a > b ? a : b, b > a ? b : a, 1);
}

static inline double tutti__minimum(double a, double b)
{
    return tutti__extreme(a, b, a < b ? a : b, b < a ? b : a, 0);
}

#endif
