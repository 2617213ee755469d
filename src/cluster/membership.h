/* membership.h: the ranks of a job from rendezvous to the shutdown barrier.
 *
 *     tutti_membership *members;
 *     TUTTI_TRY(tutti__membership_join(cluster, tutti__now_ns() + 60 * SECOND, &members));
 *     ... members->rank, members->size, members->peers[r] ...
 *     TUTTI_TRY(tutti__membership_leave(members, deadline));   // or _abandon after a failure
 *
 * Rank 0 coordinates: every other rank holds one authenticated connection to it. A thread per
 * process, the heartbeat thread, sends heartbeats, accepts channels and collects what becomes the
 * verdict. Functions may be called by any thread unless they say otherwise; none blocks without a
 * deadline (absolute, tutti__now_ns). */
#ifndef TUTTI_CLUSTER_MEMBERSHIP_H
#define TUTTI_CLUSTER_MEMBERSHIP_H

#include <stdatomic.h>

#include "base/status.h"
#include "cluster/ranks.h"
#include "tutti/cluster.h"

enum { TUTTI_REASON_BYTES = 500 }; /* of what a rank has to say about a failure */

enum { TUTTI_EXCHANGE_BYTES = 2048 };

enum { TUTTI_JOB_BYTES = 256 }; /* of a scheduler's name for a job, with its NUL */

typedef struct tutti_peer {
    char host[256];   /* as it calls itself */
    char address[64]; /* numeric, as seen from here; IPv4 or IPv6 */
    int port;         /* where it accepts channels */
    int64_t pid;
    uint64_t machine; /* equal for ranks that can share memory: boot id and namespaces */
    tutti_role role;
    int index; /* within the role */
} tutti_peer;

/* Why a rank was given up. Numbers travel between ranks. */
typedef enum tutti_failure {
    TUTTI_FAILURE_NONE,
    TUTTI_FAILURE_CLOSED,    /* its connection ended */
    TUTTI_FAILURE_SIGNAL,    /* the launcher saw it end by signal `detail` */
    TUTTI_FAILURE_EXIT,      /* the launcher saw it exit with code `detail` */
    TUTTI_FAILURE_SILENT,    /* nothing heard for `detail` milliseconds */
    TUTTI_FAILURE_SUSPECTED, /* another rank gave it up, for the reason in the text */
    TUTTI_FAILURE_LAUNCHER,  /* the launcher is gone; rank is -1 */
    TUTTI_FAILURE_ABORTED,   /* it ended the job itself, for the reason in the text */
    TUTTI_FAILURE_BROKEN,    /* an operation failed there, with status `detail` and that text */
    TUTTI_FAILURE_COUNT,
} tutti_failure;

typedef struct tutti_verdict {
    int rank; /* -1: none in particular */
    tutti_failure why;
    int64_t detail;
    char host[256];
    int64_t pid;
    char reason[TUTTI_REASON_BYTES]; /* where `why` needs words */
    char operation[96];              /* what the others were in; "" when nothing was under way */
    uint64_t sequence;
    uint64_t group;      /* whose operation it was; 0: of all ranks */
    tutti_ranks members; /* of that group; none when they are not known */
    int arrived_count;   /* ranks that had entered it */
    tutti_ranks arrived;
    tutti_ranks absent; /* that are known not to have, where not everybody was asked */
    char training[300]; /* the step that was under way, the last checkpoint; "": not known */
    char text[1400];    /* all of it, for the user */
} tutti_verdict;

/* What the flight recorder knows of a rank's lateness against the first to arrive. */
enum { TUTTI_SKEW_WORTH_NS = 1000000, TUTTI_SKEW_SCALES = 14 };
typedef struct tutti_skew {
    uint64_t samples;
    uint64_t last_by[TUTTI_SKEW_SCALES]; /* times it came last by 2^i times what is worth a word */
    uint64_t held_by[TUTTI_SKEW_SCALES]; /* and another to an operation of a group of both */
    int64_t mean_ns, most_ns;
} tutti_skew;

typedef struct tutti_heartbeat tutti_heartbeat;
typedef struct tutti_membership {
    int rank, size;
    uint32_t epoch;          /* 0, then one more for each restart */
    uint64_t job;            /* random, equal on all ranks: for names of shared memory */
    const tutti_peer *peers; /* [size] */
    atomic_bool deciding;    /* read it through tutti__membership_deciding */
    atomic_bool failed;      /* read it through tutti__membership_failed */
    tutti_heartbeat *heartbeat;
} tutti_membership;

/* Rendezvous: returns when every rank has met, or with TUTTI_DEADLINE and a table of who is missing
 * and why. A job of one rank needs no network. What `cluster` points to must
 * outlive the membership. */
tutti_status tutti__membership_join(const tutti_cluster *cluster, int64_t deadline_ns,
                                    tutti_membership **ret_membership);
/* Shutdown barrier: success means that every rank has come here, and that nothing which any of them
 * does afterwards is seen as a failure. Ends the membership in every case; channels must be closed
 * before. */
tutti_status tutti__membership_leave(tutti_membership *membership, int64_t deadline_ns);
/* The same, but the membership is there until _abandon, and knows all that was recorded. */
tutti_status tutti__membership_part(tutti_membership *membership, int64_t deadline_ns);
/* Ends it without a word; the others see a closed connection. NULL is fine. */
void tutti__membership_abandon(tutti_membership *membership);

/* Cheap; true from the moment a verdict is there. */
static inline bool tutti__membership_failed(const tutti_membership *membership)
{
    return atomic_load_explicit(&membership->failed, memory_order_acquire);
}
/* Cheap; true from the moment something is known to have failed: a verdict is on its way, or there.
 */
static inline bool tutti__membership_deciding(const tutti_membership *membership)
{
    return atomic_load_explicit(&membership->deciding, memory_order_acquire);
}
/* Readable (POLLIN) from the moment a verdict is there; never read from it. -1 in a job of one
 * rank. */
int tutti__membership_fd(const tutti_membership *membership);
/* TUTTI_SILENCE_MS in ns; fails where it is no time. */
tutti_status tutti__membership_silence_limit(int64_t *ret_ns);
/* How long nothing may be heard of a rank, ns. */
int64_t tutti__membership_silence(const tutti_membership *membership);
/* The verdict: equal on all ranks that rank 0 can reach, or, when rank 0 is lost, the lowest one
 * that is left. *ret_verdict.why is NONE while nothing failed. */
void tutti__membership_verdict(const tutti_membership *membership, tutti_verdict *ret_verdict);
/* Records the verdict's text, under a launcher without what waited for the rank, as the thread's
 * error: `return tutti__membership_fail(m)`. TUTTI_CLOSED; TUTTI_DEADLINE for silence;
 * TUTTI_CANCELLED where a rank aborted; where an operation failed its status. */
tutti_status tutti__membership_fail(const tutti_membership *membership);
/* Says that `rank` cannot be reached or misbehaves, in words ("connection reset while sending").
 * Rank 0 decides within a second: the failure flag goes up on every rank. */
void tutti__membership_suspect(tutti_membership *membership, int rank, const char *why);
/* This rank ends the job: the verdict of all is `why`, whatever its process does then, and its
 * status TUTTI_CANCELLED. */
void tutti__membership_abort(tutti_membership *membership, const char *why);
/* An operation failed here, and the group with it: all others are told the same, whatever becomes
 * of this process. */
void tutti__membership_break(tutti_membership *membership, tutti_status status, const char *why);
/* Waits until a verdict is there, for callers that saw a symptom first: after a channel closed, the
 * reason is usually some milliseconds away. False when the deadline came first. */
bool tutti__membership_await_verdict(tutti_membership *membership, int64_t deadline_ns);

/* Whose operations they are: zeros for all ranks of the job. */
typedef struct tutti_rank_group {
    uint64_t number;            /* equal on its members, no other group's of this job */
    const tutti_ranks *members; /* kept for as long as the membership; NULL: not known */
    struct tutti_record *now;   /* what is under way in it; NULL: only the last ones are known */
} tutti_rank_group;

/* A group of some ranks, until it is forgotten. Of too many that are open at once, or too many
 * different ones, less is known when a rank fails. */
tutti_rank_group tutti__membership_group(tutti_membership *membership, uint64_t number,
                                         const tutti_ranks *members);
void tutti__membership_forget(tutti_membership *membership, tutti_rank_group group);
/* The flight recorder: `arrived` true on entering operation number `sequence` of the group, false
 * on leaving it. `operation` must live as long as the membership (intern it). Costs some
 * nanoseconds, allocates nothing. Sequence numbers of one rank in one group rise; equal numbers on
 * two of its ranks mean the same operation. */
void tutti__membership_note(tutti_membership *membership, tutti_rank_group group,
                            const char *operation, uint64_t sequence, bool arrived);
/* What is known of others without asking them, for verdicts of this rank when rank 0 is gone: adds
 * who has come to an operation of a group, and who has not. Called with the membership's lock held:
 * it looks, and calls nothing of this room. */
typedef struct tutti_progress_record {
    void (*look)(void *context, uint64_t group, uint64_t sequence, tutti_ranks *come,
                 tutti_ranks *absent);
    void *context;
} tutti_progress_record;
/* Zeros: there is none, from when this returns. */
void tutti__membership_set_progress_record(tutti_membership *membership,
                                           tutti_progress_record progress_record);
/* For verdicts of this rank: the training step that it is in, from 1; and the last checkpoint that
 * it has written, of that step. Cheap. */
void tutti__membership_at_step(tutti_membership *membership, int64_t step);
void tutti__membership_saved(tutti_membership *membership, int64_t step, const char *path);
/* Rank 0 only: how late `rank` comes to operations. Zeros elsewhere. */
tutti_skew tutti__membership_skew(const tutti_membership *membership, int rank);
/* Rank 0 only: whom the others wait for, and how late it comes; -1: nobody. After _part the last
 * operations count too. */
int tutti__membership_straggler(const tutti_membership *membership, tutti_skew *ret_skew);

/* Small all-gather through rank 0, for set-up: ret[r * size .. ) is what rank r gave; size at most
 * TUTTI_EXCHANGE_BYTES and equal on all ranks. One at a time. */
tutti_status tutti__membership_exchange(tutti_membership *membership, const void *data, size_t size,
                                        int64_t deadline_ns, void *ret);
/* Succeeds when every rank gives the same hash; else names the first rank that differs from rank 0.
 * `what` is for the message: "communication schedule". */
tutti_status tutti__membership_agree(tutti_membership *membership, const char *what, uint64_t hash,
                                     int64_t deadline_ns);
/* ---- open jobs: ranks come and go while the job runs (roster_view.h) ----
 *
 * Every change of who is there gives a view with a number of its own. Nobody who is alive is ended
 * because another is not, and nobody waits for one who comes. Of the functions above these serve
 * open jobs: leave, part, abandon, failed and fail (the launcher is gone), silence, fd, describe.
 * `peers` is NULL: a view has them. */

typedef struct tutti_view_member {
    int rank;
    uint64_t
        incarnation; /* the view with which it came: another process of that rank has another */
    tutti_peer peer;
} tutti_view_member;

/* Counted by references; it does not change. */
typedef struct tutti_member_view {
    atomic_int references;
    uint64_t number; /* from 1; of two views the later one has the higher */
    int keeper;      /* the rank that keeps the roster */
    /* This rank reaches too few of the others: they may have another view by now, in which it is
     * not. What it alone holds may have been given to others. */
    bool cut;
    uint64_t own;     /* this rank's incarnation; 0 where it is not in the view */
    int size;         /* ranks that the job may have */
    tutti_ranks left; /* have come to their end, and left */
    int count;
    tutti_view_member members[]; /* by rank; this one too */
} tutti_member_view;

/* Returns when this rank is in a view: at once where the others are there already, else when rank 0
 * is. For others wait with _await_members. */
tutti_status tutti__membership_join_open(const tutti_cluster *cluster, int64_t deadline_ns,
                                         tutti_membership **ret_membership);
/* The present one; _release gives it back. */
const tutti_member_view *tutti__membership_view(tutti_membership *membership);
void tutti__member_view_release(const tutti_member_view *view); /* NULL is fine */
const tutti_view_member *tutti__member_view_find(const tutti_member_view *view, int rank);
int tutti__member_view_count(const tutti_member_view *view, tutti_role role);
/* Of a role in the job's description: how many have come to their end and left. */
int tutti__membership_count_left(tutti_membership *membership, tutti_role role);
/* Waits for a view with a higher number than `after`; NULL when the deadline has passed or the
 * membership has failed. */
const tutti_member_view *tutti__membership_await_view(tutti_membership *membership, uint64_t after,
                                                      int64_t deadline_ns);
/* Waits until `count` tasks of a role are in the view; else a table of who is missing and why. */
tutti_status tutti__membership_await_members(tutti_membership *membership, tutti_role role,
                                             int count, int64_t deadline_ns);
/* How the last process of a rank that is gone ended, in words; "" where none is, or it has left
 * properly. */
void tutti__membership_gone(tutti_membership *membership, int rank, char *ret_text, size_t size);
/* `tell` is called after a change of the view, and when a channel has come or failed: by the
 * heartbeat thread, without a lock; soon, and it must not wait. After _unwatch it is not called any
 * more. */
tutti_status tutti__membership_watch(tutti_membership *membership, void (*tell)(void *context),
                                     void *context);
void tutti__membership_unwatch(tutti_membership *membership, void (*tell)(void *context),
                               void *context);

/* "4 ranks on 2 hosts (a: 0-1, b: 2-3), resolved by slurm, epoch 0": a line for the banner. */
void tutti__membership_describe(const tutti_membership *membership, char *ret_text, size_t size);

#endif
