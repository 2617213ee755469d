/* large.h: large blocks of host memory that were given back lately, kept for the next who wants as
 * many bytes. A step that fetches a large result then finds the memory of the one before it, mapped
 * and warm. */
#ifndef TUTTI_TENSOR_LARGE_H
#define TUTTI_TENSOR_LARGE_H

#include <stdbool.h>
#include <stddef.h>

/* A kept block of exactly `size` bytes, or NULL. Contents are undefined. */
void *tutti__large_take(size_t size);
/* Keeps a block; false when it is too small or there is no room: the caller frees it. */
bool tutti__large_keep(void *data, size_t size);
/* Frees what is kept where so many bytes more, beside it, are beyond the limit. */
void tutti__large_make_room(size_t size);

#endif
