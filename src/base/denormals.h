/* denormals.h: numbers too small for their exponent (below 1.2e-38 in f32) count as zero while
 * kernels run. An x86 CPU takes a hundred cycles and more for each of them, and training makes
 * many: the means of an optimizer fade towards zero wherever a gradient has become zero. */
#ifndef TUTTI_BASE_DENORMALS_H
#define TUTTI_BASE_DENORMALS_H

#include <stdint.h>

/* What decides it, for the calling thread. */
static inline uint64_t tutti__denormals_get(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_stmxcsr();
#elif defined(__aarch64__)
    uint64_t word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    return word;
#else
    return 0;
#endif
}

static inline void tutti__denormals_set(uint64_t word)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr((unsigned)word);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" ::"r"(word));
#else
    (void)word;
#endif
}

/* From here on they count as zero on this thread; what it was before, for tutti__denormals_set. */
static inline uint64_t tutti__denormals_to_zero(void)
{
    uint64_t before = tutti__denormals_get();
#if defined(__x86_64__)
    enum { RESULTS = 0x8000, OPERANDS = 0x0040 };
    tutti__denormals_set(before | RESULTS | OPERANDS);
#elif defined(__aarch64__)
    tutti__denormals_set(before | UINT64_C(1) << 24);
#endif
    return before;
}

#endif
