/* run.h: the ways to run a product, between which gemm.c chooses, and what they share. */
#ifndef TUTTI_DEVICE_CPU_GEMM_RUN_H
#define TUTTI_DEVICE_CPU_GEMM_RUN_H

#include "base/pool.h"
#include "device/cpu/count.h"
#include "device/cpu/gemm/gemm.h"

/* ---- row.c: products of one row, as answers to single questions are ---- */
/* Whether a product has one row, and B in lines that such a one takes as they stand. */
bool tutti__gemm_is_row(const tutti_gemm_plan *plan, const tutti_gemm *gemm);
void tutti__gemm_run_row(const tutti_gemm_plan *plan, tutti_pool *pool, const tutti_gemm *gemm);

/* ---- cut.c: products of the plan's engine ---- */
void tutti__gemm_run_cut(const tutti_gemm_plan *plan, tutti_pool *pool, const tutti_gemm *gemm);

/* ---- apart.c: products in which every thread packs what it needs itself ---- */
/* Whether it did; else nothing was done: sharing what is packed pays. */
bool tutti__gemm_run_apart(const tutti_gemm_plan *plan, tutti_pool *pool, const tutti_gemm *gemm,
                           void *workspace);
size_t tutti__gemm_apart_workspace(const tutti_gemm_plan *plan);

/* ---- gemm.c ---- */
/* How tiles take A: packed, or as it stands. */
typedef enum tutti_gemm_standing {
    TUTTI_GEMM_PACKED_ROWS,
    TUTTI_GEMM_ROWS, /* rows along k */
    TUTTI_GEMM_LINES /* rows side by side: A is given turned */
} tutti_gemm_standing;
tutti_gemm_standing tutti__gemm_standing(const tutti_gemm_plan *plan, const tutti_gemm *gemm);

/* What is done to finished sums: bias, activation, rounding. from[rows, n] becomes the part of C
 * that begins at (row, column). */
void tutti__gemm_finish(const tutti_gemm_tile *tile, const tutti_gemm *gemm, int64_t row,
                        int64_t rows, int64_t column, int64_t n, const float *from, int64_t ld);

#endif
