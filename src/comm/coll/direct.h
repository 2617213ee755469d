/* direct.h: what the direct algorithm's files share. */
#ifndef TUTTI_COMM_COLL_DIRECT_H
#define TUTTI_COMM_COLL_DIRECT_H

#include "comm/coll/coll.h"

/* Memory as ranks tell each other: 0 where others cannot reach it. */
uint64_t tutti__direct_address(const tutti_area *area, const void *data, size_t bytes);
void *tutti__direct_pointer(const tutti_area *area, uint64_t address);

/* Of messages that do not fit into slots. */
tutti_status tutti__direct_all_reduce(tutti_collective *collective);

/* Time to copy within the machine while all ranks do. */
double tutti__cost_copy(const tutti_cost_query *query, double bytes);

#endif
