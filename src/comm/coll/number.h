/* number.h: what must be the same on all ranks of a collective, as one number that can be read
 * back: ranks that share memory leave theirs where the others look when they have come. */
#ifndef TUTTI_COMM_COLL_NUMBER_H
#define TUTTI_COMM_COLL_NUMBER_H

#include "comm/coll/coll.h"

uint64_t tutti__call_number(const tutti_collective *collective);
/* All calls of a group as one number, the last of them with a form that callers may ask for: ranks
 * that have once called differently stay apart for good. */
uint64_t tutti__call_history(uint64_t before, uint64_t number, uint32_t form);
/* The tag of a call's messages: which collective of the group it is, and a hash of the number, or
 * of the history, so that ranks that share no memory see it too when another is, or was, in
 * something else. */
uint32_t tutti__call_tag(uint64_t number, uint64_t sequence);
/* "all_reduce (sum) of 100 x f32"; returns `ret_text`. */
const char *tutti__call_words(uint64_t number, char *ret_text, size_t size);
/* Fails with what rank `one` of the fabric is in, and what `two`. */
tutti_status tutti__calls_differ(const tutti_fabric *fabric, int one, uint64_t ones, int two,
                                 uint64_t twos);

#endif
