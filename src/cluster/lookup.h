/* lookup.h: names to addresses, with a deadline. */
#ifndef TUTTI_CLUSTER_LOOKUP_H
#define TUTTI_CLUSTER_LOOKUP_H

#include "base/world.h"

enum { TUTTI_LOOKUP_MOST = 8 };

/* Like the world's resolve, but returns TUTTI_DEADLINE when the system's resolver takes longer than
 * that; it is then left behind to finish by itself. */
tutti_status tutti__lookup(const char *host, int port, int64_t deadline_ns,
                           tutti_address ret_addresses[TUTTI_LOOKUP_MOST], size_t *ret_count);

#endif
