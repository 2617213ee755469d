/* engine.h: matrix products of other people's libraries, each loaded when first used.
 * tables: tutti_gemm_engine */
#ifndef TUTTI_DEVICE_CPU_GEMM_ENGINE_H
#define TUTTI_DEVICE_CPU_GEMM_ENGINE_H

#include "base/status.h"

/* C[m,n] = or += A[m,k] B[k,n], row-major f32. trans_a: A is stored [k,m]; trans_b: B as [n,k]. */
typedef struct tutti_gemm {
    bool trans_a, trans_b, add;
    int64_t m, n, k;
    union {
        const float *a;
        const uint16_t *a16; /* a_bf16: bf16; the same for b and c. Never with an engine. */
    };
    union {
        const float *b;
        const uint16_t *b16;
    };
    union {
        float *c;
        uint16_t *c16; /* rounded once from sums of f32; never with `add` */
    };
    int64_t lda, ldb, ldc; /* elements from one stored row to the next */
    /* For a plan that is `packed`: B as tutti__gemm_pack made it, or for one row
     * tutti__gemm_pack_row; b is not looked at. */
    const float *packed_b;
    bool a_bf16, b_bf16, c_bf16;

    /* What tutti__gemm_run does to a finished C, and nobody else: C = relu(C + bias), the bias one
     * row of n f32 or bf16, or NULL. */
    const void *bias;
    bool bias_bf16, relu;
} tutti_gemm;

typedef struct tutti_gemm_engine {
    const char *name;
    const char *package; /* Debian's, for the message when it is missing */

    /* (optional) Whether on this CPU a row of C does not depend on how many rows stand beside it:
     * then a product may be cut into as many pieces as there are threads. */
    bool (*row_invariant)(void);
    /* Loads the library and tells it the CPU. Called once; not at the same time as any other. */
    tutti_status (*load)(void);
    /* (optional) Its version, the core type it was told and the one it runs, once it is loaded. */
    void (*describe)(char *ret_text, size_t size);
    /* Runs on the calling thread only; many threads may call at once. m, n, k > 0. */
    void (*multiply)(const tutti_gemm *gemm);
} tutti_gemm_engine;

/* The engine for large products; *ret_engine is NULL for the plain tiles. `automatic`:
 * "auto" may give one; narrow products leave libraries no room, so small networks never load one.
 * Fails when the engine that TUTTI_GEMM names is unknown or not there. */
tutti_status tutti__gemm_engine(bool automatic, const tutti_gemm_engine **ret_engine);

/* Whether "auto" stands, so that tiles may compete with the engine. */
bool tutti__gemm_engine_auto(void);

/* By name, loaded. The message of a failure names the package. */
tutti_status tutti__gemm_engine_load(const char *name, const tutti_gemm_engine **ret_engine);

#endif
