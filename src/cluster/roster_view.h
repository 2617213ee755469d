/* roster_view.h: open rosters: ranks come and go while the job runs, under a numbered view.
 *
 * One member keeps the roster: it lets ranks join, watches them, and tells all others each view:
 * its number and who is in it. A rank whose link ends, which is silent for too long, or which
 * leaves, is not in the next view; nobody else is ended. A process joins with a new incarnation,
 * the number of its first view, and waits for nobody.
 *
 * The first keeper is rank 0. When the keeper is lost, whoever has lost it calls it again; if it is
 * not there the lowest rank of the view that is left becomes the keeper, with the others that come
 * to it or that it reaches. That takes more than half of the view, not counting those whose process
 * is known to have ended (their ports refuse a call), so that two halves of a cut network do not go
 * on apart: of two equal halves the keeper's goes on. Who is with the smaller part keeps its view,
 * marked as `cut`, and looks for a keeper again, for as long as its program wants; one that was
 * left out of the view meanwhile joins again. A new keeper's views begin with the next thousand.
 *
 * A link that breaks counts as the end of its process, and a view is the keeper's word, which
 * others do not have to agree to first. So one fault at a time leaves one job, whatever it is;
 * where ranks come or links break while the network is cut, and then the keeper dies, two halves
 * may go on. */
#ifndef TUTTI_CLUSTER_ROSTER_VIEW_H
#define TUTTI_CLUSTER_ROSTER_VIEW_H

#include "cluster/roster.h"

static inline bool tutti__roster_view_has(const tutti_roster *roster, int rank)
{
    return roster->members[rank].incarnation != 0;
}

/* This process is the first: it keeps the roster, in which it is alone. */
void tutti__roster_view_found(tutti_roster *roster, int64_t now_ns);
/* The link to `keeper`, which was reached at `reached`, stands; START and VIEW follow. */
void tutti__roster_view_linked(tutti_roster *roster, int64_t now_ns, int keeper,
                               const char *reached);
/* Where the keeper is, for who asks here: "rank address:port"; "" while there is none, and "new" of
 * a process that has not joined yet: an earlier one of its rank has ended. */
void tutti__roster_view_keeper_text(const tutti_roster *roster, char *ret_text, size_t size);
bool tutti__roster_view_keeper_read(const char *text, int size, int *ret_rank, char *ret_address,
                                    size_t room, int *ret_port);

/* Keeper: a process has proved itself. Before it is let in an older one of its rank goes. */
tutti_refusal tutti__roster_view_may_join(const tutti_roster *roster, int rank);
void tutti__roster_view_make_room(tutti_roster *roster, int64_t now_ns, int rank);
void tutti__roster_view_admit(tutti_roster *roster, int rank);
/* Whether `rank`, in that incarnation, may open a channel: NONE; EARLY where it may be of a view
 * that is still on its way to us; UNMET where it is not in the view any more. */
tutti_refusal tutti__roster_view_may_open(const tutti_roster *roster, int rank,
                                          uint64_t incarnation);

/* Calls of this process, and of others to it, when the keeper is lost. */
void tutti__roster_view_connected(tutti_roster *roster, int rank);
void tutti__roster_view_heard(tutti_roster *roster, int rank);
void tutti__roster_view_reached(tutti_roster *roster, int64_t now_ns, int rank);
void tutti__roster_view_refused(tutti_roster *roster, int64_t now_ns, int rank, const char *keeper);
/* Nobody listens there any more: its process has ended. */
void tutti__roster_view_ended(tutti_roster *roster, int rank);
tutti_refusal tutti__roster_view_may_follow(const tutti_roster *roster, int rank);
void tutti__roster_view_followed(tutti_roster *roster, int64_t now_ns, int rank);

void tutti__roster_view_receive(tutti_roster *roster, int64_t now_ns, int from,
                                const tutti_cluster_message *message);
void tutti__roster_view_closed(tutti_roster *roster, int64_t now_ns, int rank, const char *reason);
/* What the launcher, or this process itself, says of a rank. */
void tutti__roster_view_hear_of(tutti_roster *roster, int64_t now_ns, int rank, tutti_failure why,
                                int64_t detail, const char *reason);
void tutti__roster_view_leave(tutti_roster *roster, int64_t now_ns);
void tutti__roster_view_tick(tutti_roster *roster, int64_t now_ns);
int64_t tutti__roster_view_next(const tutti_roster *roster);

/* roster_election.c: for roster_view.c only. */
void tutti__election_begin(tutti_roster *roster, int64_t now_ns);
void tutti__election_miss(tutti_roster *roster, int64_t now_ns, int rank);
void tutti__election_report(tutti_roster *roster, int64_t now_ns, int from,
                            const tutti_cluster_message *view);
void tutti__election_tick(tutti_roster *roster, int64_t now_ns);
int64_t tutti__election_next(const tutti_roster *roster);
/* Everything that it has begun ends: there is a keeper. */
void tutti__election_end(tutti_roster *roster);
/* For roster_election.c: takes over who is in a view; tells it; ends the link to a rank. */
void tutti__roster_view_take(tutti_roster *roster, const tutti_cluster_message *view);
tutti_cluster_message tutti__roster_view_message(const tutti_roster *roster);
void tutti__roster_view_lose(tutti_roster *roster, int rank, tutti_failure why, int64_t detail,
                             const char *reason);
void tutti__roster_view_tell(tutti_roster *roster);
void tutti__roster_view_tell_of(tutti_roster *roster, int to, int about);
int tutti__roster_view_count(const tutti_roster *roster);

#endif
