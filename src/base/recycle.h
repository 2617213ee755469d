/* recycle.h: blocks of memory that are asked for again and again, as by every step of a training:
 * the last ones that were given back are kept, so that a steady step asks nothing of the system's
 * allocator. Thread-safe; a child of the program has lists of its own. */
#ifndef TUTTI_BASE_RECYCLE_H
#define TUTTI_BASE_RECYCLE_H

#include <stddef.h>

/* At least `size` bytes, aligned to 64, contents undefined; NULL: there is no memory. */
void *tutti__recycle_take(size_t size);
/* A block of tutti__recycle_take with the same size, which is kept or freed. NULL is fine. */
void tutti__recycle_give(void *block, size_t size);
/* The same for whoever does not know the size any more: zeros, freed by tutti__recycle_free. */
void *tutti__recycle_zeros(size_t count, size_t size);
void tutti__recycle_free(void *zeros); /* NULL is fine */

#endif
