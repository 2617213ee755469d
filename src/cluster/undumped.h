/* undumped.h: memory that is in no core file, for keys and for the library that computes with them.
 *
 * As malloc, realloc and free, from any thread, also in a child of fork. What is freed is wiped. */
#ifndef TUTTI_CLUSTER_UNDUMPED_H
#define TUTTI_CLUSTER_UNDUMPED_H

#include <stddef.h>

/* NULL: no memory, or none asked for. */
void *tutti__undumped_allocate(size_t size);
/* NULL: no memory, and the old block stays; of size 0: it is freed. */
void *tutti__undumped_resize(void *memory, size_t size);
void tutti__undumped_free(void *memory); /* NULL is fine */

#endif
