// resize.cu: images made larger or smaller along one axis, and the gradient of that: the taps of
// ops/network/resize.h, computed where they are needed.
//
// Options: TYPE: of what is read; OUT: of what is written; NEAREST, BACKWARD: 0 or 1.
#include "common.cuh"

enum { HALF_PIXEL, PYTORCH, SYMMETRIC, CORNERS, ASYMMETRIC, CROP };
enum { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL };
struct axis {
    i64 in, out, outer, inner, reach;
    double scale, start, end, cubic, squeeze, outside;
    int coordinates, nearest, linear, exclude;
};

__device__ __forceinline__ double coordinate(const axis &a, i64 o)
{
    const double at = (double)o, in = (double)a.in, width = a.scale * in, half = (at + 0.5) / a.scale - 0.5;
    switch (a.coordinates) {
    case CORNERS:
        return width == 1 ? 0 : at * (in - 1) / (width - 1);
    case ASYMMETRIC:
        return at / a.scale;
    case SYMMETRIC:
        return in / 2 * (1 - (double)a.out / width) + half;
    case PYTORCH:
        return width == 1 ? -0.5 : half;
    case CROP: {
        const double part = (a.end - a.start) * (in - 1);
        return a.start * (in - 1) + (width == 1 ? part / 2 : at * part / (width - 1));
    }
    default:
        return half;
    }
}
__device__ __forceinline__ double weight_at(const axis &a, double d)
{
    const double x = fabs(d), k = a.cubic;
    if (a.linear)
        return x < 1 ? 1 - x : 0;
    if (x <= 1)
        return ((k + 2) * x - (k + 3)) * x * x + 1;
    return x < 2 ? ((k * x - 5 * k) * x + 8 * k) * x - 4 * k : 0;
}
__device__ __forceinline__ i64 clamped(i64 i, i64 count) { return i < 0 ? 0 : i >= count ? count - 1 : i; }
__device__ __forceinline__ i64 nearest_to(const axis &a, double c)
{
    const double base = ceil(c) - 1, ratio = c - base;
    const bool next = a.nearest == PREFER_FLOOR  ? ratio > 0.5
                      : a.nearest == PREFER_CEIL ? ratio >= 0.5
                      : a.nearest == FLOOR       ? ratio == 1
                                                 : true;
    return clamped((i64)base + next, a.in);
}
// Where output o stands, its first tap, and what its weights are divided by; false: outside.
__device__ __forceinline__ bool taps_of(const axis &a, i64 o, double *c, i64 *base, double *sum)
{
    const double limit = 4 * (double)a.in + 8;
    *c = coordinate(a, o);
    if (a.coordinates == CROP && !(*c >= 0 && *c <= (double)(a.in - 1)))
        return false;
    *c = *c > limit ? limit : *c < -limit ? -limit : *c;
    *base = (i64)ceil(*c) - 1;
    *sum = 1;
    if (NEAREST || (!a.exclude && a.squeeze == 1))
        return true;
    *sum = 0;
    for (i64 i = *base - a.reach + 1; i <= *base + a.reach; i++)
        if (!a.exclude || (i >= 0 && i < a.in))
            *sum += weight_at(a, a.squeeze * ((double)i - *c));
    return true;
}

extern "C" __global__ void __launch_bounds__(256) resize_axis(const T *x, const axis a, i64 count, OUT *y)
{
    const i64 lines = BACKWARD ? a.in : a.out, from = BACKWARD ? a.out : a.in;
    EACH_ELEMENT(at, count)
    {
        const i64 k = at % a.inner, own = at / a.inner % lines, outer = at / a.inner / lines;
        const T *line = x + outer * from * a.inner + k;
        double c, sum, all = 0;
        i64 base;
        if (!BACKWARD) {
            if (!taps_of(a, own, &c, &base, &sum)) {
                y[at] = narrow<OUT>(a.outside);
                continue;
            }
            if (NEAREST) {
                y[at] = narrow<OUT>(widen(line[nearest_to(a, c) * a.inner]));
                continue;
            }
            for (i64 i = base - a.reach + 1; i <= base + a.reach; i++) {
                const double w = weight_at(a, a.squeeze * ((double)i - c));
                if (w != 0 && (!a.exclude || (i >= 0 && i < a.in)))
                    all += w * (double)widen(line[clamped(i, a.in) * a.inner]);
            }
            y[at] = narrow<OUT>(all / sum);
            continue;
        }
        for (i64 o = 0; o < a.out; o++) {
            double total = 0;
            c = coordinate(a, o);
            if (own > 0 && own < a.in - 1 && !(fabs(c - (double)own) <= (double)a.reach + 2))
                continue;
            if (!taps_of(a, o, &c, &base, &sum))
                continue;
            if (NEAREST)
                total = nearest_to(a, c) == own;
            for (i64 i = base - a.reach + 1; i <= base + a.reach && !NEAREST; i++)
                if (clamped(i, a.in) == own && (!a.exclude || i == own))
                    total += weight_at(a, a.squeeze * ((double)i - c));
            if (total != 0)
                all += total / sum * (double)widen(line[o * a.inner]);
        }
        y[at] = narrow<OUT>(all);
    }
}
