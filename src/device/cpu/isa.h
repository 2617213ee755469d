/* isa.h: the instruction set that tables other than the kernels' are looked up for. */
#ifndef TUTTI_DEVICE_CPU_ISA_H
#define TUTTI_DEVICE_CPU_ISA_H

#include <stddef.h>

#include "program/kernel.h"

/* The best set of tutti_isa_sources that this CPU has; each of their tables has an entry for it. */
static inline const char *tutti__best_isa(void)
{
#if defined(__x86_64__)
    static const char *const best_first[] = {"avx512", "avx2"};
#else
    static const char *const best_first[] = {"base"};
#endif
    for (size_t i = 0; i < sizeof best_first / sizeof best_first[0]; i++)
        if (tutti__isa_present(best_first[i]))
            return best_first[i];
    return "base";
}

#endif
