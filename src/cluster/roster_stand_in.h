/* roster_stand_in.h: what the rest of the roster needs of roster_stand_in.c, on all ranks but rank
 * 0. */
#ifndef TUTTI_CLUSTER_ROSTER_STAND_IN_H
#define TUTTI_CLUSTER_ROSTER_STAND_IN_H

#include "cluster/roster.h"

/* Rank 0 is given up, and another asked in its place. */
void tutti__stand_in_seek(tutti_roster *roster, int64_t now_ns);
/* `rank` is not there, or not any more: if we asked it, we ask the next. */
void tutti__stand_in_miss(tutti_roster *roster, int64_t now_ns, int rank);
void tutti__stand_in_receive(tutti_roster *roster, int64_t now_ns, int from,
                             const tutti_cluster_message *message);
/* One that was called has not let us in yet; it is passed over at roster->answer_ns. */
bool tutti__stand_in_awaited(const tutti_roster *roster);
void tutti__stand_in_tick(tutti_roster *roster, int64_t now_ns);
/* Whether this rank stands in for rank 0, and all others that it waits for have reported. */
bool tutti__stand_in_complete(const tutti_roster *roster);
/* Adds to the verdict of a stand-in who has reported, or is known anyway, and had not come. */
void tutti__stand_in_complement(const tutti_roster *roster, tutti_verdict *verdict);
/* Rank 0 asks: those that have asked here wait for its verdict. */
void tutti__stand_in_poll(tutti_roster *roster);
/* A stand-in waits until roster->gather_ns for others to come by themselves. */
bool tutti__stand_in_gathers(const tutti_roster *roster);
/* The verdict is there: it goes to those that have asked here, and nobody else is asked. */
void tutti__stand_in_tell(tutti_roster *roster);

#endif
