/* row.h: products of one row, as answers to single questions are; a part of gemm.c. */
#ifndef TUTTI_DEVICE_CPU_GEMM_ROW_H
#define TUTTI_DEVICE_CPU_GEMM_ROW_H

#include "base/pool.h"
#include "device/cpu/gemm/gemm.h"

/* Whether a product has one row, and B in lines that such a one takes as they stand. */
bool tutti__gemm_is_row(const tutti_gemm_plan *plan, const tutti_gemm *gemm);
void tutti__gemm_run_row(const tutti_gemm_plan *plan, tutti_pool *pool, const tutti_gemm *gemm);

#endif
