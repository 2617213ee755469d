/* planes_convolve.h: a convolution over planes: a tile is a few spots times all filters, whose
 * weights are scalars. Sums run over the taps in the order of direct.h and have the same bits. */
#ifndef TUTTI_DEVICE_CPU_CONV_PLANES_CONVOLVE_H
#define TUTTI_DEVICE_CPU_CONV_PLANES_CONVOLVE_H

#include "device/cpu/conv/planes.h"

/* Registers of sums of a tile. */
#if VEC_NEON || VEC_LANES == 16
enum { PLANE_SUMS = 18, PLANE_SPOTS = 4 };
#else
enum { PLANE_SUMS = 12, PLANE_SPOTS = 3 };
#endif

/* Runs of a window. */
typedef struct run_range {
    int64_t first, end;
} run_range;

/* sums[filter][spot] over the window, whose weights lie `line` apart. */
VEC_INLINE void window_of_spots(int filters, int spots, const tutti_conv_phase *phase,
                                run_range runs, int64_t channels, int64_t plane,
                                const float *const *x, const float *weights, int64_t line,
                                float (*sums)[PLANE_SPOTS][VEC_LANES])
{
    vec acc[PLANE_FILTERS][PLANE_SPOTS];
    VEC_UNROLL for (int f = 0; f < filters; f++) VEC_UNROLL for (int s = 0; s < spots; s++)
        acc[f][s] = vec_splat(0);
    weights += runs.first * phase->length * line;
    for (int64_t run = runs.first; run < runs.end; run++) {
        int64_t pixel = phase->offset[run] / channels, end = pixel + phase->length / channels;
        for (; pixel < end; pixel++)
            for (int64_t at = pixel; at < pixel + channels * plane; at += plane, weights += line) {
                vec in[PLANE_SPOTS];
                VEC_UNROLL for (int s = 0; s < spots; s++) in[s] = vec_load(x[s] + at);
                VEC_UNROLL for (int f = 0; f < filters; f++)
                {
                    vec scalar = vec_splat(weights[f]);
                    VEC_UNROLL for (int s = 0; s < spots; s++) acc[f][s] =
                        vec_fma(in[s], scalar, acc[f][s]);
                }
            }
    }
    VEC_UNROLL for (int f = 0; f < filters; f++) VEC_UNROLL for (int s = 0; s < spots; s++)
        vec_store(sums[f][s], acc[f][s]);
}

typedef void spots_function(const tutti_conv_phase *phase, run_range runs, int64_t channels,
                            int64_t plane, const float *const *x, const float *weights,
                            int64_t line, float (*sums)[PLANE_SPOTS][VEC_LANES]);
#define SPOTS(name, filters)                                                                       \
    static void name(const tutti_conv_phase *phase, run_range runs, int64_t channels,              \
                     int64_t plane, const float *const *x, const float *weights, int64_t line,     \
                     float(*sums)[PLANE_SPOTS][VEC_LANES])                                         \
    {                                                                                              \
        window_of_spots(filters, PLANE_SUMS / (filters), phase, runs, channels, plane, x, weights, \
                        line, sums);                                                               \
    }
SPOTS(spots_of_four, 4)
SPOTS(spots_of_six, 6)
SPOTS(spots_of_eight, PLANE_FILTERS)
#undef SPOTS

/* y[pixel][filter] = max(sums[filter][pixel] + bias[filter], low) */
VEC_INLINE void store_pixels(int64_t filters, int64_t pixels, int spot,
                             float (*sums)[PLANE_SPOTS][VEC_LANES], float *y)
{
    for (int64_t i = 0; i < pixels; i++)
        VEC_UNROLL for (int64_t f = 0; f < filters; f++) y[i * filters + f] = sums[f][spot][i];
}

typedef struct planes_work {
    const planes *planes;
    const tutti_conv_walk *walk;
    const float *from;    /* planes, beginning at the input of the first output */
    const float *weights; /* of tap t and filter f at [t * line + f], zeros past the filters */
    int64_t line;
    const float *bias; /* [filters]; NULL: none */
    float low;
    int64_t first; /* row of outputs */
} planes_work;

/* The runs that read anything but padding, for rows [top, bottom] of outputs. */
static inline run_range runs_inside(const planes_work *w, int64_t top, int64_t bottom)
{
    const tutti_conv_walk *walk = w->walk;
    const tutti_conv_phase *phase = walk->phase;
    const int64_t line = walk->in[1] * walk->channels, stride = w->planes->row / walk->in[1];
    run_range runs = {0, phase->runs};
    while (runs.first < runs.end &&
           bottom * stride + (phase->base + phase->offset[runs.first]) / line < walk->before[0])
        runs.first++;
    while (runs.first < runs.end &&
           top * stride + (phase->base + phase->offset[runs.end - 1]) / line >=
               walk->before[0] + walk->from[0])
        runs.end--;
    return runs;
}

/* Rows of outputs, one after the other to y. */
static void planes_convolve(const planes_work *w, int64_t rows, float *y)
{
    const planes *p = w->planes;
    const tutti_conv_walk *walk = w->walk;
    const int64_t filters = walk->filters, width = walk->out[1], spots = rows * p->wide;
    spots_function *window = p->filters == 4   ? spots_of_four
                             : p->filters == 6 ? spots_of_six
                                               : spots_of_eight;
    float sums[PLANE_FILTERS][PLANE_SPOTS][VEC_LANES];
    const int each = PLANE_SUMS / (int)p->filters;
    for (int64_t first = 0; first < spots; first += each) {
        int count = spots - first < each ? (int)(spots - first) : each;
        const float *x[PLANE_SPOTS];
        for (int s = 0; s < each; s++) {
            int64_t spot = first + (s < count ? s : 0);
            x[s] = w->from + spot / p->wide * p->row + spot % p->wide * VEC_LANES;
        }
        run_range runs =
            runs_inside(w, w->first + first / p->wide, w->first + (first + count - 1) / p->wide);
        window(walk->phase, runs, walk->channels, p->plane, x, w->weights, w->line, sums);
        for (int64_t f = 0; f < filters; f++)
            for (int s = 0; s < count; s++)
                vec_store(sums[f][s], vec_at_least(vec_load(sums[f][s]) +
                                                       vec_splat(w->bias == NULL ? 0 : w->bias[f]),
                                                   w->low));
        for (int s = 0; s < count; s++) {
            int64_t column = (first + s) % p->wide * VEC_LANES, left = width - column;
            left = left < VEC_LANES ? left : VEC_LANES;
            float *to = y + ((first + s) / p->wide * width + column) * filters;
            if (filters == 6)
                store_pixels(6, left, s, sums, to);
            else
                store_pixels(filters, left, s, sums, to);
        }
    }
}

#endif
