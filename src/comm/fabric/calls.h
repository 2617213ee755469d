/* calls.h: which collectives ranks are in, in memory that they share: those of a group that one
 * process has made, or of one machine. The others look there when one is late, or has ended. A rank
 * writes only its own, in every collective. */
#ifndef TUTTI_COMM_FABRIC_CALLS_H
#define TUTTI_COMM_FABRIC_CALLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { TUTTI_CALL_GROUPS = 8 }; /* that are known at once of a rank; of two in one place the last */

/* The collective that a rank has entered last in a group: the group's context, and the number's
 * lower half; and what the last even, and odd, one is (number.h). */
typedef struct tutti_calls_of_group {
    _Atomic uint64_t entered, call[2];
} tutti_calls_of_group;

/* Of one rank, in lines of its own. */
typedef struct tutti_calls {
    _Alignas(128) tutti_calls_of_group in[TUTTI_CALL_GROUPS];
} tutti_calls;

/* Of all that one process has made; what `of` points to is shared with those that are forked then.
 */
typedef struct tutti_all_calls {
    atomic_int users; /* of this process */
    int size;
    tutti_calls *of; /* [size] */
} tutti_all_calls;

/* With one user; fails where there is no memory. */
tutti_status tutti__calls_create(int size, tutti_all_calls **ret_calls);
tutti_all_calls *tutti__calls_share(tutti_all_calls *calls); /* with one more user */
void tutti__calls_drop(tutti_all_calls *calls);              /* NULL is fine */

static inline uint64_t tutti__calls_place(uint32_t context, uint64_t sequence)
{
    return (uint64_t)context << 32 | (uint32_t)sequence;
}
static inline tutti_calls_of_group *tutti__calls_in(tutti_calls *of_rank, uint64_t place)
{
    uint32_t mixed = (uint32_t)(place >> 32) * UINT32_C(0x9e3779b1);
    return &of_rank->in[mixed >> 29];
}
/* The rank enters collective number `sequence` of the group with that context, which is `call`. */
static inline void tutti__calls_note(tutti_calls *of_rank, uint32_t context, uint64_t sequence,
                                     uint64_t call)
{
    uint64_t place = tutti__calls_place(context, sequence);
    tutti_calls_of_group *group = tutti__calls_in(of_rank, place);
    atomic_store_explicit(&group->call[sequence & 1], call, memory_order_release);
    atomic_store_explicit(&group->entered, place, memory_order_release);
}
/* Whether the rank has entered it, or a later one of that group; of too many groups the last that
 * it entered something of are known. */
typedef enum tutti_coming {
    TUTTI_MAY_HAVE_COME,
    TUTTI_HAS_NOT_COME,
    TUTTI_HAS_COME,
} tutti_coming;
tutti_coming tutti__calls_look(tutti_calls *of_rank, uint64_t place);
/* Whether it has entered it and no later one; then what it is. */
bool tutti__calls_is_in(tutti_calls *of_rank, uint64_t place, uint64_t *ret_call);

#endif
