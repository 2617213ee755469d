/* planes_sum.h: the gradient of the kernel over planes: for every tap and filter a register of
 * partial sums over the spots. */
#ifndef TUTTI_DEVICE_CPU_CONV_PLANES_SUM_H
#define TUTTI_DEVICE_CPU_CONV_PLANES_SUM_H

#include "device/cpu/conv/planes.h"

enum { PLANE_TAPS = 3 };

/* Floats of the gradient's planes and of the partial sums. */
static inline int64_t planes_grad_floats(const planes *p)
{
    return p->filters * p->rows * p->wide * VEC_LANES;
}

static inline int64_t planes_sum_floats(const planes *p, int64_t taps)
{
    return taps * p->filters * VEC_LANES;
}

/* Rows of a gradient [row][pixel][filter] into planes [filter][row][spot]; zeros fill them up. */
static void planes_take_grad(const planes *p, const tutti_conv_walk *walk, const float *grad,
                             int64_t rows, float *to)
{
    const int64_t line = p->wide * VEC_LANES, width = walk->out[1], filters = walk->filters;
    memset(to, 0, (size_t)planes_grad_floats(p) * sizeof *to);
    for (int64_t row = 0; row < rows; row++, grad += width * filters)
        for (int64_t f = 0; f < filters; f++)
            for (int64_t i = 0; i < width; i++)
                to[(f * p->rows + row) * line + i] = grad[i * filters + f];
}

/* sums[tap][filter] += over the spots of some rows x[spot + tap] grad[filter][spot]. */
VEC_INLINE void sum_spots(int taps, int filters, const planes *p, const float *const *x,
                          const float *grad, int64_t rows, float *sums)
{
    const int64_t line = p->wide * VEC_LANES, plane = p->rows * line;
    vec acc[PLANE_TAPS][PLANE_FILTERS];
    VEC_UNROLL for (int t = 0; t < taps; t++) VEC_UNROLL for (int f = 0; f < filters; f++)
        acc[t][f] = vec_load(sums + (t * filters + f) * VEC_LANES);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t at = 0; at < line; at += VEC_LANES) {
            vec g[PLANE_FILTERS];
            VEC_UNROLL for (int f = 0; f < filters; f++) g[f] =
                vec_load(grad + f * plane + row * line + at);
            VEC_UNROLL for (int t = 0; t < taps; t++)
            {
                vec in = vec_load(x[t] + row * p->row + at);
                VEC_UNROLL for (int f = 0; f < filters; f++) acc[t][f] =
                    vec_fma(in, g[f], acc[t][f]);
            }
        }
    VEC_UNROLL for (int t = 0; t < taps; t++) VEC_UNROLL for (int f = 0; f < filters; f++)
        vec_store(sums + (t * filters + f) * VEC_LANES, acc[t][f]);
}

typedef void sum_spots_function(const planes *p, const float *const *x, const float *grad,
                                int64_t rows, float *sums);
#define SUM_SPOTS(name, taps, filters)                                                             \
    static void name(const planes *p, const float *const *x, const float *grad, int64_t rows,      \
                     float *sums)                                                                  \
    {                                                                                              \
        sum_spots(taps, filters, p, x, grad, rows, sums);                                          \
    }
SUM_SPOTS(sum_three_of_four, PLANE_TAPS, 4)
SUM_SPOTS(sum_three_of_six, PLANE_TAPS, 6)
SUM_SPOTS(sum_three_of_eight, PLANE_TAPS, PLANE_FILTERS)
SUM_SPOTS(sum_one_of_four, 1, 4)
SUM_SPOTS(sum_one_of_six, 1, 6)
SUM_SPOTS(sum_one_of_eight, 1, PLANE_FILTERS)
#undef SUM_SPOTS

/* All taps over some rows: `x` planes, `grad` planes, offsets[tap] as x lay before it was taken
 * apart. */
static void planes_sum(const planes *p, const tutti_conv_walk *walk, const float *x,
                       const float *grad, int64_t rows, const int64_t *offsets, int64_t taps,
                       float *sums)
{
    sum_spots_function *three = p->filters == 4   ? sum_three_of_four
                                : p->filters == 6 ? sum_three_of_six
                                                  : sum_three_of_eight;
    sum_spots_function *one = p->filters == 4   ? sum_one_of_four
                              : p->filters == 6 ? sum_one_of_six
                                                : sum_one_of_eight;
    for (int64_t tap = 0; tap < taps;) {
        int64_t count = taps - tap >= PLANE_TAPS ? PLANE_TAPS : 1;
        const float *from[PLANE_TAPS];
        for (int64_t t = 0; t < count; t++)
            from[t] = x + offsets[tap + t] % walk->channels * p->plane +
                      offsets[tap + t] / walk->channels;
        (count == PLANE_TAPS ? three : one)(p, from, grad, rows,
                                            sums + tap * p->filters * VEC_LANES);
        tap += count;
    }
}

/* to[tap * width + filter] = the sum of a register's lanes, halves added to halves. */
static void planes_total(const planes *p, int64_t taps, int64_t width, float *sums, float *to)
{
    for (int64_t tap = 0; tap < taps; tap++)
        for (int64_t f = 0; f < p->filters; f++) {
            float *lanes = sums + (tap * p->filters + f) * VEC_LANES;
            for (int64_t half = VEC_LANES / 2; half > 0; half /= 2)
                for (int64_t i = 0; i < half; i++)
                    lanes[i] += lanes[i + half];
            to[tap * width + f] = lanes[0];
        }
}

#endif
