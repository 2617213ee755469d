/* dynamic.h: the pool of values whose size depends on data. Such values cannot stand in a planned
 * arena; they take blocks of this pool, which keeps blocks that were given back for the next run.
 */
#ifndef TUTTI_PROGRAM_DYNAMIC_H
#define TUTTI_PROGRAM_DYNAMIC_H

#include "tensor/tensor.h"

/* Host memory. All blocks together, those in use and those kept, are never more than
 * TUTTI_DYNAMIC_BYTES; an allocation that would exceed it fails with TUTTI_TOO_LARGE and says so.
 * Tensors in it may outlive the run that made them. Thread-safe. */
const tutti_memory *tutti__dynamic_memory(void);

/* Whether TUTTI_DYNAMIC_BYTES says anything. */
tutti_status tutti__dynamic_check_setting(void);

typedef struct tutti_dynamic_stats {
    size_t used, kept, bound; /* bytes; used and kept in whole blocks */
} tutti_dynamic_stats;
void tutti__dynamic_stats(tutti_dynamic_stats *ret);
/* Frees what is kept. */
void tutti__dynamic_drop(void);

#endif
