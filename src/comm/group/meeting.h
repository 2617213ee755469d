/* meeting.h: where ranks meet, when their starter has not said. */
#ifndef TUTTI_COMM_GROUP_MEETING_H
#define TUTTI_COMM_GROUP_MEETING_H

#include "cluster/cluster.h"

/* Collective where cluster->meeting is "": rank 0 says by MPI where it is, and the meeting is set,
 * the same for all groups of this process. `engine` is the one that is asked for, or NULL: where it
 * is not MPI, MPI is ended again, unless the program has started it. Otherwise does nothing. */
tutti_status tutti__comm_find_meeting(tutti_cluster *cluster, const char *engine,
                                      int64_t deadline_ns);

#endif
