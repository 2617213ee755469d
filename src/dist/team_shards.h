/* team_shards.h: sums over shards of several devices in several processes. */
#ifndef TUTTI_DIST_TEAM_SHARDS_H
#define TUTTI_DIST_TEAM_SHARDS_H

#include "dist/team.h"

/* As tutti__team_all_reduce with options->shards, for a piece of nodes. */
tutti_status tutti__team_fold_shards(tutti_team *team, int local, const tutti_comm_piece *piece,
                                     tutti_dtype dtype, const tutti_comm_call *options);

#endif
