/* account.h: where the time in collectives went, and for whom the replicas waited. */
#ifndef TUTTI_PARALLEL_COLLECTIVES_ACCOUNT_H
#define TUTTI_PARALLEL_COLLECTIVES_ACCOUNT_H

#include "parallel/collectives/axis_group.h"

/* Seconds are means over the replicas. In a meeting the one that came last stays the shortest: what
 * the others stayed longer, they waited for it. */
typedef struct tutti_axis_group_account {
    double inside;     /* in collectives */
    double waiting;    /* of that, for others to come */
    int slowest;       /* the replica that was waited for longest; -1: nobody met */
    double for_it;     /* of `waiting` */
    int64_t meetings;  /* looked at */
    int64_t came_last; /* of those, the slowest */
} tutti_axis_group_account;

/* From here on the account begins. Nothing may run meanwhile. */
void tutti__axis_group_account_begin(tutti_axis_group *axis_group);
/* A meeting of a local replica took so long. */
void tutti__axis_group_account_add(tutti_axis_group *axis_group, int local, int64_t ns);
/* Collective over the processes; nothing else may run meanwhile. */
tutti_status tutti__axis_group_account_end(tutti_axis_group *axis_group,
                                           tutti_axis_group_account *ret);

#endif
