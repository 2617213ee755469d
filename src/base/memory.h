/* memory.h: how much memory this process can ever have.
 *
 * Many systems grant any size and kill the process when it touches what is not there, so a size
 * beyond everything the machine has must be refused before it is asked for. */
#ifndef TUTTI_BASE_MEMORY_H
#define TUTTI_BASE_MEMORY_H

#include "base/status.h"

/* Bytes of memory and swap, or the least limit of the control groups. Read once. */
int64_t tutti__memory_limit(void);

/* What the library has taken for tensors and arenas and not given back, in bytes: now, and the most
 * since the last tutti__memory_mark. Whoever takes such memory says so. */
void tutti__memory_count(int64_t bytes); /* negative: given back */
int64_t tutti__memory_now(void);
int64_t tutti__memory_most(void);
void tutti__memory_mark(void);
/* Whether so many bytes more are beyond the limit, with what the library has taken. */
bool tutti__memory_exceeds(size_t size);

/* NULL when there is no room. `size` is a multiple of `alignment`. */
void *tutti__aligned_alloc(size_t alignment, size_t size);

#endif
