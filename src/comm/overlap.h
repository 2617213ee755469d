/* overlap.h: whether what a call gives and what it gets lie apart. */
#ifndef TUTTI_COMM_OVERLAP_H
#define TUTTI_COMM_OVERLAP_H

#include "comm/coll.h"

/* Refuses memory of which one part would be written while another rank, or this one, still has to
 * read it. In place, as tutti/comm.h says it, is fine. */
tutti_status tutti__call_apart(const tutti_collective *collective);

#endif
