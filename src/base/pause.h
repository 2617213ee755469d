/* pause.h: between two looks at what another thread will change soon. */
#ifndef TUTTI_BASE_PAUSE_H
#define TUTTI_BASE_PAUSE_H

/* Some tens of nanoseconds. On aarch64 `yield` is often a no-op; `isb` takes 13 ns on a Neoverse
 * V1. */
static inline void tutti__pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

#endif
