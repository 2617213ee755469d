/* peak.h: what this machine can do at best, measured. */
#ifndef TUTTI_BENCH_PEAK_H
#define TUTTI_BENCH_PEAK_H

#include "cli/bench.h"

typedef struct tutti_peak {
    double flops;      /* f32, a second: multiply-adds on registers or of a product, all threads */
    double bf16_flops; /* bf16 products into f32; `flops` where the CPU has none */
    double bytes;      /* a second, read and written by a copy of more than the caches hold */
} tutti_peak;

/* Measures on `threads` threads, some tens of milliseconds, and keeps the better of what *peak
 * holds (zero at first) and what was found: clocks change, and others take their share. */
void tutti__peak_raise(tutti_peak *peak, int threads);

/* Of a product of this type. */
static inline double tutti__peak_of(const tutti_peak *peak, tutti_dtype dtype)
{
    return dtype == TUTTI_BF16 ? peak->bf16_flops : peak->flops;
}

#endif
