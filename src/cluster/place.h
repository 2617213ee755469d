/* place.h: where this process is: its machine, its host's name, how much it may open there. */
#ifndef TUTTI_CLUSTER_PLACE_H
#define TUTTI_CLUSTER_PLACE_H

#include "base/world.h"

/* Equal for processes that can share memory: the boot of the machine and its /dev/shm, which
 * containers may have for themselves. TUTTI_MACHINE=text makes it another one, for trials. */
uint64_t tutti__machine(void);
void tutti__host_name(char *ret_name, size_t size);
/* Makes sure that this process may open so many descriptors more, by raising its soft limit as far
 * as its hard limit allows. */
tutti_status tutti__allow_descriptors(int count);
/* The same where fewer may do: as many as the hard limit gives. */
void tutti__wish_descriptors(int count);
/* What strerror says of an error; that of used-up descriptors with what to do about it. */
void tutti__descriptors_text(int error, char *ret_text, size_t size);

#endif
