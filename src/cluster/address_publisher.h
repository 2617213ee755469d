/* address_publisher.h: where rank 0 is, in a text that it gives the others by a way that is not
 * ours: mpirun says which rank a process is, and MPI can carry a few bytes between machines, but no
 * variable tells where rank 0 runs. */
#ifndef TUTTI_CLUSTER_ADDRESS_PUBLISHER_H
#define TUTTI_CLUSTER_ADDRESS_PUBLISHER_H

#include <stddef.h>

#include "base/status.h"

enum { TUTTI_ADDRESS_TEXT_BYTES = 1024 };

/* Rank 0: a port that is free here, this machine, its name and its addresses. */
tutti_status tutti__address_publisher_write(char ret_text[TUTTI_ADDRESS_TEXT_BYTES]);
/* "host:port" by which this machine reaches rank 0, of what the text offers: an address of a
 * network that both are in; else the name, where that means another machine here; else its first
 * address. */
tutti_status tutti__address_publisher_read(const char *text, char *ret_meeting, size_t size);

#endif
