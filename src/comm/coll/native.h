/* native.h: whole collectives of the library behind an engine. */
#ifndef TUTTI_COMM_COLL_NATIVE_H
#define TUTTI_COMM_COLL_NATIVE_H

#include "comm/coll/coll.h"

typedef struct tutti_native {
    /* Why the library cannot do the call, in words that go on "… is not possible: "; NULL: it can.
     * The same on all ranks: it looks at the call only, and is asked before anybody begins. */
    const char *(*lacks)(const tutti_collective *collective);
    /* Runs the call over all ranks of the fabric. */
    tutti_status (*run)(void *state, tutti_collective *collective);
} tutti_native;

#endif
