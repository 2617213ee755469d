/* native.h: whole collectives of the library behind an engine. */
#ifndef TUTTI_COMM_NATIVE_H
#define TUTTI_COMM_NATIVE_H

#include "comm/coll.h"

typedef struct tutti_native {
    /* Runs the call over all ranks of the fabric; TUTTI_UNSUPPORTED for types it does not know. */
    tutti_status (*run)(void *state, tutti_collective *collective);
} tutti_native;

#endif
