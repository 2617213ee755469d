/* limit.h: programs within a limit of memory, by computing forward values again. */
#ifndef TUTTI_EXEC_PLAN_LIMIT_H
#define TUTTI_EXEC_PLAN_LIMIT_H

#include "program/target.h"

enum { TUTTI_LIMIT_NOTE = 240 };

/* Compiles a partition whose passes have run, but for remat: as it is marked, if that takes at most
 * `limit` bytes; else with the parts of the forward pass computed again that cost the fewest FLOPs
 * and bring it below. *ret_graph (retained) is what was compiled; ret_note says in a line what was
 * chosen, or "". TOO_LARGE says what is needed at least. */
tutti_status tutti__compile_within(tutti_device *device, const tutti_partition *partition,
                                   size_t limit, tutti_executable **ret, tutti_graph **ret_graph,
                                   char ret_note[TUTTI_LIMIT_NOTE]);

#endif
