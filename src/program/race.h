/* race.h: which of several kernels runs a node fastest: they run in turn, so that others on the
 * machine disturb all of them alike, on inputs of the node's types. */
#ifndef TUTTI_PROGRAM_RACE_H
#define TUTTI_PROGRAM_RACE_H

#include "program/kernel.h"
#include "program/target.h"

enum { TUTTI_RACE_RIVALS = 8 };

/* The fastest of at most TUTTI_RACE_RIVALS, and its least time; NULL when none could be run. */
const tutti_kernel *tutti__race(const tutti_device *device, const tutti_kernel_query *query,
                                const tutti_kernel *const *rivals, int count, int64_t *ret_ns);

#endif
