/* engine.h: matrix products of other people's libraries, each loaded when first used.
 * tables: tutti_gemm_engine */
#ifndef TUTTI_DEVICE_CPU_GEMM_ENGINE_H
#define TUTTI_DEVICE_CPU_GEMM_ENGINE_H

#include "base/status.h"

/* C[m,n] = or += A[m,k] B[k,n], row-major f32. trans_a: A is stored [k,m]; trans_b: B as [n,k]. */
typedef struct tutti_gemm {
    bool trans_a, trans_b, add;
    int64_t m, n, k;
    const float *a, *b;
    float *c;
    int64_t lda, ldb, ldc; /* elements from one stored row to the next */
} tutti_gemm;

typedef struct tutti_gemm_engine {
    const char *name;
    const char *package; /* Debian's, for the message when it is missing */
    bool row_invariant;  /* a row of C does not depend on how many rows stand beside it */

    /* Loads the library and tells it the CPU. Called once; not at the same time as any other. */
    tutti_status (*load)(void);
    /* (optional) Its version, the core type it was told and the one it runs, once it is loaded. */
    void (*describe)(char *ret_text, size_t size);
    /* Runs on the calling thread only; many threads may call at once. m, n, k > 0. */
    void (*multiply)(const tutti_gemm *gemm);
} tutti_gemm_engine;

/* The engine for large products; *ret_engine is NULL for the plain tiles. `square`: all three sides
 * are long; narrow products leave libraries no room, so small networks never load one. Fails when
 * the engine that TUTTI_GEMM names is unknown or not there. */
tutti_status tutti__gemm_engine(bool square, const tutti_gemm_engine **ret_engine);

/* By name, loaded. The message of a failure names the package. */
tutti_status tutti__gemm_engine_load(const char *name, const tutti_gemm_engine **ret_engine);

#endif
