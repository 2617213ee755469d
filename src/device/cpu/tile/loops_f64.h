/* loops_f64.h: tile loops whose doubles are done by vectors too, with a third expression beside the
 * two of loops.h:
 *
 *     TILE_VECTORS_1(exponential, vec_exp(x), dvec_exp(x), exp(x))
 */
#ifndef TUTTI_DEVICE_CPU_TILE_LOOPS_F64_H
#define TUTTI_DEVICE_CPU_TILE_LOOPS_F64_H

#include "device/cpu/tile/loops.h"
#include "device/cpu/tile/math_f64.h"

/* A function of vectors of doubles where multiply-adds are fused, of single ones elsewhere. */
#if VEC_FUSED
#define TILE_DOUBLES_1(name, vectors, doubles)                                                     \
    VEC_INLINE dvec name##_of_f64(dvec x, const dvec p[2])                                         \
    {                                                                                              \
        (void)p;                                                                                   \
        return (vectors);                                                                          \
    }                                                                                              \
    static void name##_loop_f64(const tutti_tile_args *t)                                          \
    {                                                                                              \
        const double *from = t->x[0];                                                              \
        double *to = t->y;                                                                         \
        const dvec p[2] = {D(t->params[0]), D(t->params[1])};                                      \
        const int64_t count = t->count;                                                            \
        int64_t i = 0;                                                                             \
        for (; i + 2 * DVEC_LANES <= count; i += 2 * DVEC_LANES) {                                 \
            const dvec a = name##_of_f64(dvec_load(from + i), p);                                  \
            const dvec b = name##_of_f64(dvec_load(from + i + DVEC_LANES), p);                     \
            dvec_store(to + i, a);                                                                 \
            dvec_store(to + i + DVEC_LANES, b);                                                    \
        }                                                                                          \
        for (int64_t part; i < count; i += part) {                                                 \
            part = count - i < DVEC_LANES ? count - i : DVEC_LANES;                                \
            dvec_store_part(to + i, name##_of_f64(dvec_load_part(from + i, part), p), part);       \
        }                                                                                          \
    }
#define TILE_DOUBLES_2(name, vectors, doubles)                                                     \
    VEC_INLINE dvec name##_of_f64(dvec a, dvec b)                                                  \
    {                                                                                              \
        return (vectors);                                                                          \
    }                                                                                              \
    static void name##_loop_f64(const tutti_tile_args *t)                                          \
    {                                                                                              \
        const double *a = t->x[0], *b = t->x[1];                                                   \
        double *to = t->y;                                                                         \
        const int64_t count = t->count;                                                            \
        int64_t i = 0;                                                                             \
        for (; i + DVEC_LANES <= count; i += DVEC_LANES)                                           \
            dvec_store(to + i, name##_of_f64(dvec_load(a + i), dvec_load(b + i)));                 \
        if (i < count)                                                                             \
            dvec_store_part(                                                                       \
                to + i,                                                                            \
                name##_of_f64(dvec_load_part(a + i, count - i), dvec_load_part(b + i, count - i)), \
                count - i);                                                                        \
    }
#else
#define TILE_DOUBLES_1(name, vectors, doubles) TILE_SCALARS_1(name##_loop_f64, double, doubles)
#define TILE_DOUBLES_2(name, vectors, doubles) TILE_SCALARS_2(name##_loop_f64, double, doubles)
#endif

/* Floats and doubles. */
#define TILE_VECTORS_1(name, vectors, wide_vectors, doubles)                                       \
    TILE_FLOATS_1(name, vectors) TILE_DOUBLES_1(name, wide_vectors, doubles)
#define TILE_VECTORS_2(name, vectors, wide_vectors, doubles)                                       \
    TILE_FLOATS_2(name, vectors) TILE_DOUBLES_2(name, wide_vectors, doubles)

#endif
