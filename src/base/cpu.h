/* cpu.h: what this machine's CPU can do, read from the CPU itself. Libraries misjudge CPUs; code
 * here goes by features, never by a list of models. */
#ifndef TUTTI_BASE_CPU_H
#define TUTTI_BASE_CPU_H

#include "base/status.h"

typedef struct tutti_cpu {
    char model[64]; /* "Neoverse-V1", "Intel(R) Xeon(R) …"; "unknown" when the CPU does not say */

    /* x86_64. Set only when the operating system saves the registers too. */
    bool avx2;   /* with fma and f16c */
    bool avx512; /* f, bw, dq and vl */
    bool avx512_bf16, avx512_vnni, amx_bf16;

    /* aarch64 */
    bool neon, sve, bf16, dotprod, i8mm;
    int sve_bytes; /* of one vector; 0 without SVE */

    /* Data caches one core sees, in bytes; typical sizes where the system does not say. */
    int64_t l1_bytes, l2_bytes, l3_bytes;
} tutti_cpu;

/* Read once; the same pointer ever after. Thread-safe, does not fail. */
const tutti_cpu *tutti__cpu(void);

/* Processor time that the calling thread has used, ns: what others took from it is left out. */
int64_t tutti__thread_ns(void);

#endif
