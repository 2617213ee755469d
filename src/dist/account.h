/* account.h: where the time in collectives went, and for whom the replicas waited. */
#ifndef TUTTI_DIST_ACCOUNT_H
#define TUTTI_DIST_ACCOUNT_H

#include "dist/team.h"

/* Seconds are means over the replicas. In a meeting the one that came last stays the shortest: what
 * the others stayed longer, they waited for it. */
typedef struct tutti_team_account {
    double inside;     /* in collectives */
    double waiting;    /* of that, for others to come */
    int slowest;       /* the replica that was waited for longest; -1: nobody met */
    double for_it;     /* of `waiting` */
    int64_t meetings;  /* looked at */
    int64_t came_last; /* of those, the slowest */
} tutti_team_account;

/* From here on the account begins. Nothing may run meanwhile. */
void tutti__team_account_begin(tutti_team *team);
/* A meeting of a local replica took so long. */
void tutti__team_account_add(tutti_team *team, int local, int64_t ns);
/* Collective over the processes; nothing else may run meanwhile. */
tutti_status tutti__team_account_end(tutti_team *team, tutti_team_account *ret);

#endif
