/* roster.h: membership as a pure state machine: messages, ends of links and clock ticks in,
 * messages out. It never looks at a clock, a socket or memory outside itself, so that a simulator
 * can run thousands of jobs a second (roster_test.c).
 *
 * Invariants
 * 1. Links are authenticated before the roster hears of them. Rank 0 has one to every other rank,
 *    every other rank has one to rank 0, and, when that is lost, one to its stand-in; a link is
 *    named by the rank at its other end.
 * 2. RUNNING begins on all ranks with the same epoch, job and table of peers, and only when all
 * have met.
 * 3. The first failure decides: rank 0 asks everybody where he is, chooses one culprit, and sends
 *    the same verdict to all. Ranks that have lost rank 0 tell the lowest rank that is left, which
 *    sends its verdict to all of them: always that rank 0 is the culprit, unless it has rank 0's
 *    own. Who can reach neither decides so for itself.
 * 4. A rank that was itself away (its clock leaped between two ticks) blames nobody for the time;
 *    rank 0 that was given up meanwhile says so of itself.
 * 5. After LEFT nothing is a failure.
 *
 * An open roster (roster_view.h) is kept in the same way, by whoever has it in keeping, with
 * another answer to a failure: the rank leaves the view, which gets the next number, and the others
 * go on.
 */
#ifndef TUTTI_CLUSTER_ROSTER_H
#define TUTTI_CLUSTER_ROSTER_H

#include "cluster/message.h"

typedef enum tutti_phase {
    TUTTI_PHASE_GATHERING,
    TUTTI_PHASE_RUNNING,
    TUTTI_PHASE_LEAVING, /* this rank has come to the shutdown barrier */
    TUTTI_PHASE_PARTING, /* rank 0: all have, and were told; their links end */
    TUTTI_PHASE_LEFT,
    TUTTI_PHASE_ASKING, /* something failed; evidence is collected. Open: its keeper is lost */
    TUTTI_PHASE_FAILED, /* the verdict is there */
} tutti_phase;

/* What became of a call at once. */
typedef enum tutti_calling {
    TUTTI_CALL_REFUSED,   /* nobody listens there any more: its process has ended */
    TUTTI_CALL_UNREACHED, /* it was not reached */
    TUTTI_CALL_BEGUN,
} tutti_calling;

/* What the roster needs of its surroundings. */
typedef struct tutti_roster_ways {
    void *context;
    void (*send)(void *context, int rank, const tutti_cluster_message *message);
    void (*drop)(void *context, int rank); /* ends a link; `closed` need not be called for it */
    void (*where)(void *context, tutti_wheres *ret_where); /* of this process */
    /* Operations entered since the last call, this process's clock; (optional) */
    size_t (*arrivals)(void *context, tutti_arrival *ret_arrivals, size_t limit);
    /* Adds who else is known to have come to an operation, and not to have; (optional) */
    void (*look)(void *context, uint64_t group, uint64_t sequence, tutti_ranks *come,
                 tutti_ranks *absent);
    /* The training step that is under way here and the last checkpoint, in words; (optional) */
    void (*training)(void *context, size_t size, char *ret_text);
    /* Begins to connect to `rank`, to ask it in rank 0's place (TUTTI_PURPOSE_STAND_IN) or, in an
     * open roster, to join; stand_in_connected, _heard and _reached, or closed, follow later;
     * (optional) */
    tutti_calling (*call)(void *context, int rank, uint32_t purpose);
} tutti_roster_ways;

typedef struct tutti_roster_options {
    int rank, size;
    uint32_t epoch;
    uint64_t job;                     /* rank 0 only */
    uint8_t token[TUTTI_TOKEN_BYTES]; /* the same: what only ranks that have met know */
    int64_t silence_ns; /* how long nothing may be heard; beats go out five times as often */
    bool supervised;    /* a launcher will say how a process ended: wait for it a little */
    bool open;          /* ranks come and go: roster_view.h */
} tutti_roster_options;

typedef struct tutti_roster_member {
    tutti_peer peer;
    bool linked, left, asked, reported, known; /* known: a member has its peer entry */
    bool beside;      /* without rank 0: a link stands between it and us, one of which asks */
    bool called;      /* it is we who called */
    bool ended;       /* a member knows that its process is no more, or takes no calls */
    bool passed_over; /* it is not asked in rank 0's place, nor waited for: it ended, or is mute */
    bool given_up;    /* rank 0: we have ended its link ourselves */
    uint64_t incarnation; /* open: the view in which it came; 0: it is not in the present one */
    uint64_t told;        /* open: that of `peer`, which may be of the next view */
    char gone[400];       /* open: how its last process ended that did; "": none, or it has left */
    int64_t heard_ns;
    int64_t silent_ns; /* how long it had been so when the launcher said that it exited */
    int accusation;    /* 1 for the first accused, 2 ...; 0 not accused */
    tutti_failure why;
    int64_t detail;
    char reason[TUTTI_REASON_BYTES];
    tutti_wheres where;            /* as last heard */
    int64_t beat_sent, beat_heard; /* of its last beat: its clock, ours */
    uint64_t round;                /* of its last exchange */
    tutti_blob given, result;      /* for the next exchange; of the last finished one */
    tutti_skew skew;
} tutti_roster_member;

typedef struct tutti_roster {
    tutti_roster_options options;
    tutti_roster_ways ways;
    tutti_phase phase;
    int keeper;    /* who has it in keeping: rank 0 of a closed one; open: -1 until one is known */
    uint64_t view; /* open: the number of the present view; 0: in none yet */
    bool cut;      /* open: it reaches too few of the others to keep a view, or to be in one */
    bool outside;  /* open: it is not in the others' view any more, and has to join again */
    bool leaves;   /* open: it has come to its end, and says so to whoever keeps the roster */
    bool recalls;  /* open: the keeper that it has lost is called again */
    int64_t retry_ns; /* open: when it looks for a keeper again; 0: it does not */
    char reached[64]; /* open: the address at which this process has reached the keeper */
    bool met;         /* rank 0: RUNNING has begun */
    bool deciding;    /* something failed somewhere: a verdict is there, or will be */
    uint64_t job;
    uint8_t token[TUTTI_TOKEN_BYTES]; /* from RUNNING on */
    int64_t ticked_ns, beat_ns;       /* last tick, or message; last beat sent */
    int64_t woke_ns;   /* when this process last went on after it had been away; 0: never */
    int64_t until_ns;  /* of ASKING and PARTING */
    int stand_in;      /* whom this rank asks without rank 0, perhaps itself; 0: nobody */
    bool connected;    /* that one's machine has taken our call */
    bool patient;      /* rank 0 asks, as another says: its verdict is on its way */
    int64_t gather_ns; /* when a stand-in calls those that have not come; 0: it does not */
    bool hurried;      /* one was mute already: the next ones have less time */
    int64_t appeal_ns; /* until when rank 0 has to react to what it was told, or send the verdict
                          that it asks for; 0: neither */
    tutti_cluster_message plea; /* the gravest of that, for a stand-in; type 0: none */
    int64_t answer_ns; /* until when it has to, then until when that one has to say something */
    int accusations;
    tutti_roster_member *members; /* [size] */
    tutti_verdict verdict;
    tutti_refusal refusal;      /* REFUSE came: why, in verdict.text */
    uint64_t round, gathered;   /* exchange begun; finished */
    int gathered_count;         /* entries of the present round that came */
    int64_t offset_ns, trip_ns; /* rank 0's clock minus ours, and the round trip that says so */
    struct tutti_skews *skews;  /* rank 0 */
} tutti_roster;

tutti_status tutti__roster_init(tutti_roster *roster, const tutti_roster_options *options,
                                const tutti_roster_ways *ways, int64_t now_ns);
void tutti__roster_free(tutti_roster *roster); /* a zeroed one is fine */

/* This process's own entry, before anything else. */
void tutti__roster_self(tutti_roster *roster, const tutti_peer *peer);
/* Rank 0: a process has proved itself and wants to be `rank`. NONE, or TAKEN, LATE or ENDING. The
 * admission must have been sent before, since the roster may speak at once. */
tutti_refusal tutti__roster_may_admit(const tutti_roster *roster, int rank);
void tutti__roster_admit(tutti_roster *roster, int64_t now_ns, int rank, const tutti_peer *peer);
/* Others: the link to rank 0 stands. */
void tutti__roster_linked(tutti_roster *roster, int64_t now_ns);
void tutti__roster_receive(tutti_roster *roster, int64_t now_ns, int from,
                           const tutti_cluster_message *message);
void tutti__roster_closed(tutti_roster *roster, int64_t now_ns, int rank, const char *reason);
/* Often, at the latest at tutti__roster_next. */
void tutti__roster_tick(tutti_roster *roster, int64_t now_ns);
int64_t tutti__roster_next(const tutti_roster *roster);

/* Others, when rank 0 is lost (roster_stand_in.c): the machine of the rank that was called has
 * taken the call; the rank has said something; it has let us in. */
void tutti__roster_stand_in_connected(tutti_roster *roster, int rank);
void tutti__roster_stand_in_heard(tutti_roster *roster, int rank);
void tutti__roster_stand_in_reached(tutti_roster *roster, int64_t now_ns, int rank);
/* It calls us itself: one link is enough. */
void tutti__roster_stand_in_taken(tutti_roster *roster, int rank);
/* Another rank has proved itself and asks this one: NONE, TAKEN or ENDING. Admission as above. */
tutti_refusal tutti__roster_may_stand_in(const tutti_roster *roster, int rank);
void tutti__roster_stand_in_for(tutti_roster *roster, int64_t now_ns, int rank);

/* What this process says. */
void tutti__roster_suspect(tutti_roster *roster, int64_t now_ns, int rank, tutti_failure why,
                           int64_t detail, const char *reason);
/* The launcher says that `rank` has ended while ranks gather: it will not come, and every process
 * of that launcher hears the same. */
void tutti__roster_despair(tutti_roster *roster, int rank, tutti_failure why, int64_t detail);
void tutti__roster_leave(tutti_roster *roster, int64_t now_ns);
/* Rank 0 gives rendezvous up: everybody who is there gets the text. */
void tutti__roster_give_up(tutti_roster *roster, const char *text);
/* Begins the next exchange; it is finished when roster->gathered == roster->round. What rank r gave
 * is then members[r].result. */
void tutti__roster_exchange(tutti_roster *roster, int64_t now_ns, const void *data, size_t size);

/* For roster_*.c only; roster_stand_in.h and roster_view.h have more. */
tutti_cluster_message tutti__roster_peer_message(const tutti_roster *roster, int rank);
tutti_cluster_message tutti__roster_start_message(const tutti_roster *roster);
void tutti__roster_take_peer(tutti_roster *roster, const tutti_cluster_message *message);
/* PARTING: it is over when the others have ended their links. */
void tutti__roster_finish_parting(tutti_roster *roster, int64_t now_ns);
void tutti__roster_accuse(tutti_roster *roster, int64_t now_ns, int rank, tutti_failure why,
                          int64_t detail, const char *reason);
/* What rank 0 says of itself, before its link ends. */
void tutti__roster_hear_of_zero(tutti_roster *roster, const tutti_cluster_message *suspect);
/* As accuse, without asking anybody. */
void tutti__roster_charge(tutti_roster *roster, int64_t now_ns,
                          const tutti_cluster_message *suspect);
/* Another rank than 0 tells rank 0, and expects it to ask all, or to judge, soon. */
void tutti__roster_appeal(tutti_roster *roster, int64_t now_ns,
                          const tutti_cluster_message *suspect);
bool tutti__roster_appeals(const tutti_roster *roster); /* until appeal_ns */
void tutti__roster_decide(tutti_roster *roster, int64_t now_ns);
/* Fills in what the others were in when verdict->rank failed. */
void tutti__roster_find_operation(const tutti_roster *roster, tutti_verdict *verdict);
/* The first rank that has not come to the verdict's operation though it is in none: its program
 * does something else. -1: there is none. */
int tutti__roster_find_idle(const tutti_roster *roster, const tutti_verdict *verdict);
void tutti__roster_send_verdict(tutti_roster *roster, int rank);
void tutti__roster_take_verdict(tutti_roster *roster, const tutti_cluster_message *message);
bool tutti__roster_watching(const tutti_roster *roster); /* failures count in this phase */
bool tutti__roster_over(const tutti_roster *roster);     /* nothing is waited for any more */
void tutti__roster_send_beats(tutti_roster *roster, int64_t now_ns);
void tutti__roster_receive_beat(tutti_roster *roster, int64_t now_ns, int from,
                                const tutti_cluster_message *m);
void tutti__roster_forgive(tutti_roster *roster, int64_t now_ns);
/* So short a time ago that others may have given it up meanwhile. */
bool tutti__roster_was_away(const tutti_roster *roster, int64_t now_ns);
void tutti__roster_watch_silence(tutti_roster *roster, int64_t now_ns);
void tutti__roster_send(tutti_roster *roster, int rank, const tutti_cluster_message *message);
void tutti__roster_send_all(tutti_roster *roster, const tutti_cluster_message *message);
void tutti__skews_add(struct tutti_skews *skews, tutti_roster *roster, int rank,
                      const tutti_arrival *arrivals, size_t count);
tutti_status tutti__skews_create(int size, struct tutti_skews **ret_skews);
void tutti__skews_free(struct tutti_skews *skews);
/* The rank that holds the others up far more often than anybody else does, -1 for none: one pause,
 * however long, is chance. */
int tutti__skews_straggler(const tutti_roster *roster, int size);
/* Adds who else has come to the verdict's operation, and who has not, of those in its group. */
void tutti__verdict_add(tutti_verdict *verdict, int size, const tutti_ranks *come,
                        const tutti_ranks *absent);
/* Writes verdict->text from the rest of it. */
void tutti__verdict_write(tutti_verdict *verdict, int size, int writer);
/* How much of verdict->text says who failed and how; what follows says what waited for it. */
size_t tutti__verdict_failure_size(const tutti_verdict *verdict);
/* "waiting for it: ranks 0-1, in all_reduce number 42" */
void tutti__verdict_waiting(const tutti_verdict *verdict, int size, char *ret_text, size_t room);

#endif
