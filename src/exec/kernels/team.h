/* team.h: collectives between the replicas of a strategy: nodes whose mesh axis is the batch's. */
#ifndef TUTTI_EXEC_KERNELS_TEAM_H
#define TUTTI_EXEC_KERNELS_TEAM_H

#include "dist/team.h"
#include "exec/kernels/host.h"

/* The team that a node of the batch's axis meets; NULL: it meets along an axis of the session's
 * mesh. */
tutti_team *tutti__call_team(const tutti_call *call);

/* Inputs to outputs, reduced as attribute "op" says. */
tutti_status tutti__call_reduce(const tutti_call *call);

/* What the team is told of a call; counts the time until tutti__team_done. */
typedef struct tutti_team_meeting {
    tutti_team *team;
    int local; /* the replica */
    tutti_team_call call;
    int64_t start;
} tutti_team_meeting;
tutti_status tutti__team_begin(const tutti_call *call, tutti_team_meeting *ret);
tutti_status tutti__team_done(const tutti_call *call, tutti_team_meeting *meeting,
                              tutti_status status, int64_t bytes);

#endif
