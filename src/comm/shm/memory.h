/* memory.h: where the memory that processes of one machine map comes from. */
#ifndef TUTTI_COMM_SHM_MEMORY_H
#define TUTTI_COMM_SHM_MEMORY_H

#include "comm/fabric/fabric.h"

/* A segment for `size` ranks in a file without a name, formatted. */
tutti_status tutti__shm_nameless(size_t bytes, int size, int *ret_file, void **ret_memory);
/* Maps what another has made. */
tutti_status tutti__shm_map(int file, size_t bytes, void **ret_memory);
/* The same memory for `count` ranks of this machine, of which `first` is the lowest. Collective
 * over all ranks of the membership, also those that are alone on their machines (NULL and -1).
 * TUTTI_UNSUPPORTED, on all ranks: there is no way here to share memory. */
tutti_status tutti__shm_meet(tutti_fabric *fabric, int first, size_t bytes, int count,
                             int64_t deadline_ns, int *ret_file, void **ret_memory);

#endif
