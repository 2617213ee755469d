/* cache.h: what the two kinds of cache share. */
#ifndef TUTTI_DATA_TRANSFORM_CACHE_H
#define TUTTI_DATA_TRANSFORM_CACHE_H

#include "data/dataset.h"

/* A cache in a file. */
tutti_dataset *tutti__cache_file(tutti_dataset *input, const char *path);

/* An element as bytes: u32 components, then for each u32 dtype, u32 rank, i64 dims, and its values
 * in row-major order (of a string: u64 size and bytes). Little-endian. */
tutti_status tutti__element_encode(const tutti_element *element, tutti_text *text);
/* Refuses whatever is not exactly an element. */
tutti_status tutti__element_decode(const char *name, const void *data, size_t size,
                                   tutti_element *ret);

#endif
