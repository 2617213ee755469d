/* number.h: what must be the same on all ranks of a collective, as one number that can be read
 * back: ranks that share memory leave theirs where the others look when they have come. */
#ifndef TUTTI_COMM_NUMBER_H
#define TUTTI_COMM_NUMBER_H

#include "comm/coll.h"

uint64_t tutti__call_number(const tutti_collective *collective);
/* The tag of the call's messages: which collective of the group it is, and a hash of the number, so
 * that ranks that share no memory see it too when another is in something else. */
uint32_t tutti__call_tag(const tutti_collective *collective, uint64_t sequence);
/* "all_reduce (sum) of 100 x f32"; returns `ret_text`. */
const char *tutti__call_words(uint64_t number, char *ret_text, size_t size);

#endif
