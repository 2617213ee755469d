/* pack.h: places for values in one stretch of memory. Values that collide, because both are wanted
 * at some moment, may not share bytes. */
#ifndef TUTTI_PROGRAM_PACK_H
#define TUTTI_PROGRAM_PACK_H

#include "base/status.h"

typedef struct tutti_packed {
    int32_t value;       /* the caller's number of it */
    int32_t first, last; /* moments at which it is wanted, both included; INT32_MAX: to the end */
    size_t size;         /* bytes, a multiple of the alignment, more than 0 */
    size_t offset;       /* to be found */
    size_t crowd; /* the most that is wanted at once while it is; 0, tutti__pack_bound writes it,
                     but where there are too many values for the orders that ask for it */
    int32_t gone; /* values first wanted at this moment or later collide with it no more; 0: any
                     may */
} tutti_packed;

/* The sizes of all values add up to PTRDIFF_MAX / 2 at most, so that no end of a value wraps. */
typedef struct tutti_pack {
    size_t count;
    tutti_packed *values;
    bool (*collide)(const void *context, const tutti_packed *a, const tutti_packed *b);
    const void *context;
    bool in_turn; /* values collide only if they are wanted at the same moment */
} tutti_pack;

/* The most bytes that are wanted at one of `moments` moments. Values of disjoint lifetimes may
 * collide all the same (streams), so this is a bound from below. */
tutti_status tutti__pack_bound(const tutti_pack *pack, size_t moments, size_t *ret_bytes);

/* Finds offsets; *ret_bytes is where the last value ends. Several orders of placing are tried until
 * one takes `bound` bytes, and the best is kept. */
tutti_status tutti__pack(const tutti_pack *pack, size_t bound, size_t *ret_bytes);

#endif
