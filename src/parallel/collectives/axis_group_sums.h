/* axis_group_sums.h: sums over shards of several devices in several processes. */
#ifndef TUTTI_PARALLEL_COLLECTIVES_AXIS_GROUP_SUMS_H
#define TUTTI_PARALLEL_COLLECTIVES_AXIS_GROUP_SUMS_H

#include "parallel/collectives/axis_group.h"

/* As tutti__axis_group_all_reduce with options->shards, for a piece of nodes. */
tutti_status tutti__axis_group_fold_shards(tutti_axis_group *axis_group, int local,
                                           const tutti_comm_piece *piece, tutti_dtype dtype,
                                           tutti_reduction reduction,
                                           const tutti_comm_call *options);

#endif
