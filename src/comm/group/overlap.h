/* overlap.h: whether what a call gives and what it gets lie apart. */
#ifndef TUTTI_COMM_GROUP_OVERLAP_H
#define TUTTI_COMM_GROUP_OVERLAP_H

#include "comm/coll/coll.h"

/* Refuses memory of which one part would be written while another rank, or this one, still has to
 * read it. In place, as tutti/comm.h says it, is fine. */
tutti_status tutti__call_apart(const tutti_collective *collective);
/* Refuses pieces of one call of which two share memory: what would stand there depended on which
 * of them go together. `element` bytes each. */
tutti_status tutti__pieces_apart(const tutti_comm_piece *pieces, int count, size_t element);

#endif
