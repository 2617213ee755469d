/* each.h: how a cell's step is written: a vector of units at a time. */
#ifndef TUTTI_DEVICE_CPU_RECURRENT_EACH_H
#define TUTTI_DEVICE_CPU_RECURRENT_EACH_H

#include "device/cpu/gemm/round.h"
#include "device/cpu/recurrent/cells.h"
#include "device/cpu/row/row.h"

/* Elements [i, i + VEC_LANES) of gate g. */
#define GATE(pointer, g) ROW_AT((pointer) + (g)*units)
/* x kernel + h recurrent + bias of gate g */
#define SUM(g) (GATE(s->a, g) + GATE(s->b, g) + GATE(s->bias, g))
#define EXTRA(g) (s->kept_grad == NULL ? S(0.0f) : GATE(s->kept_grad, g))

/* Runs BODY for each vector of units; PUT(pointer, value) stores. Whole vectors have a loop of
 * their own, in which row_rest is 0 for the compiler too. */
#define EACH_VECTOR(...)                                                                           \
    do {                                                                                           \
        int64_t row_i = 0;                                                                         \
        for (; row_i + VEC_LANES <= units; row_i += VEC_LANES) {                                   \
            const int64_t row_rest = 0;                                                            \
            __VA_ARGS__                                                                            \
        }                                                                                          \
        if (row_i < units) {                                                                       \
            const int64_t row_rest = units - row_i;                                                \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    } while (0)
#define PUT(pointer, value)                                                                        \
    (row_rest > 0 ? tile_store_rest((pointer) + row_i, value, row_rest)                            \
                  : vec_store((pointer) + row_i, value))

static void add(float *to, const float *from, int64_t count)
{
    ROW_MAP(to, count, ROW_AT(to) + ROW_AT(from));
}

static void round_row(int64_t count, const float *from, uint16_t *to)
{
    round_line(count, from, to);
}

#endif
