/* library.h: loading a matrix library that guesses the CPU by itself, wrongly.
 *
 * Such libraries read their orders from the environment when they start. A variable is set only for
 * the moment of loading, and only when the user has not set it, then taken back. */
#ifndef TUTTI_DEVICE_CPU_GEMM_LIBRARY_H
#define TUTTI_DEVICE_CPU_GEMM_LIBRARY_H

#include "device/cpu/gemm/engine.h"

typedef struct tutti_library_variable {
    const char *name, *value;
} tutti_library_variable;

/* Opens the first of `files` (NULL-terminated) that can be opened, and runs `start(handle)`
 * (optional), with the variables set. The message of a failure names the package. */
tutti_status tutti__library_open(const char *const *files, const char *package, int variable_count,
                                 const tutti_library_variable *variables,
                                 tutti_status (*start)(void *handle), void **ret_handle);

/* CBLAS, as every BLAS of a distribution offers it. */
typedef void tutti_cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k,
                               float alpha, const float *a, int lda, const float *b, int ldb,
                               float beta, float *c, int ldc);
void tutti__cblas_multiply(tutti_cblas_sgemm *sgemm, const tutti_gemm *gemm);

/* With AVX-512 oneDNN's and OpenBLAS's products are row-invariant; OpenBLAS's for AVX2 are not. */
bool tutti__library_keeps_rows(void);

#endif
