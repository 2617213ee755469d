/* fabric.h: messages between the ranks of a job, over whatever engines connect them.
 *
 * Invariants:
 *  1. A message is a header (context, tag, size) and its bytes. Messages from one rank to another
 *     leave in the order they were posted and are matched in that order within (context, tag).
 *  2. Only peers from which something is expected are read; the engines hold the rest back.
 *  3. `lock` guards queues and streams. Nobody sleeps with it held.
 *  4. A sleeper counts itself in `sleepers` before it looks for the last time; whoever completes a
 *     message that is not his own then kicks. Who has moved bytes in that last look does not sleep:
 *     there may be room or bytes again for which nobody will ring. */
#ifndef TUTTI_COMM_FABRIC_FABRIC_H
#define TUTTI_COMM_FABRIC_FABRIC_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/pool.h"
#include "comm/fabric/calls.h"
#include "comm/fabric/engine.h"

typedef struct tutti_fabric_message {
    struct tutti_fabric_message *next;
    int peer;
    uint32_t context, tag;
    char *data;
    size_t size, done; /* of a send, `done` counts the header too */
    struct {
        uint32_t context, tag;
        uint64_t size; /* with TUTTI_HEADER_MARK in the upper 16 bits */
    } header;
    bool outgoing;
    bool given_away; /* freed when it is complete: nobody waits for it */
    atomic_bool complete;
    tutti_status status;
} tutti_fabric_message;

typedef struct tutti_queue_of_messages {
    tutti_fabric_message *first, **last;
} tutti_queue_of_messages;

typedef struct tutti_unexpected {
    struct tutti_unexpected *before, *next;
    uint32_t context, tag;
    size_t size, done;
    tutti_fabric_message *waiting; /* posted while its bytes were still coming */
    bool unwanted;                 /* its receiver went away and does not come again */
    char data[];
} tutti_unexpected;

typedef struct tutti_stream {
    const tutti_fabric_engine *engine; /* NULL for oneself */
    void *state;
    tutti_queue_of_messages sending, posted;
    tutti_unexpected *early, *early_last; /* in order of arrival */
    size_t early_bytes;
    tutti_error *error; /* why it can carry nothing any more, or NULL */
    struct {
        char header[16];
        size_t header_done;
        bool matched;
        tutti_fabric_message *target; /* of the message under way, or */
        tutti_unexpected *early;      /* nobody asked for it yet */
    } in;
} tutti_stream;

enum { TUTTI_FABRIC_ENGINES = 4 };

typedef struct tutti_wanted tutti_wanted;
/* What others may read of this rank: serve.h. */
typedef struct tutti_server {
    /* Called with the fabric's lock held, by any thread: copies at once, never waits, calls nothing
     * of this room. */
    int (*give)(void *context, const tutti_wanted *wanted, void *to);
    void *context;
} tutti_server;

/* A process of a forked group. */
typedef struct tutti_process {
    atomic_int id;   /* 0 until it runs */
    atomic_int left; /* it has closed the group, whatever it does then */
} tutti_process;

struct tutti_fabric {
    int rank, size;
    atomic_int references;
    tutti_stream *streams;               /* [size] */
    const tutti_fabric_engine **engines; /* [size], which engine reaches a peer */
    struct {
        const tutti_fabric_engine *engine;
        void *state;
    } open[TUTTI_FABRIC_ENGINES];
    int open_count;
    tutti_segment *segment; /* shared with `neighbours`; NULL when there is none */
    struct tutti_abort_flag
        *abort_flag; /* an engine's, without a segment; NULL when there is none */
    int *machine;    /* [size]: number of the machine that a rank is on */
    int machines;
    const struct tutti_fabric_engine *named; /* that was asked for, or NULL */
    tutti_membership *membership;            /* NULL without a cluster; owned */
    struct tutti_process *family;            /* [size], shared memory of a forked group, or NULL */
    int *watch;                    /* [size] pidfds of the others in it; -1: not open, -2: left */
    int64_t watched_ns;            /* when they were looked at */
    _Atomic int64_t answered_ns;   /* when links between machines were */
    struct tutti_all_calls *calls; /* of a group that one process has made, or NULL */
    tutti_calls *noted;            /* this rank's, there or in the segment; NULL: nobody looks */
    /* Then: the collective that this rank is in, for good, and which it is; or NULL. */
    _Atomic(const char *) operation;
    _Atomic uint64_t sequence;
    _Atomic uint32_t context;
    pthread_mutex_t lock;
    /* Lanes: more connections to the same peers, for threads that do a part of a large operation at
     * the same time. Each is a fabric of its own; what ends this one ends them. */
    int lane_count;               /* this one too; 0: 1 */
    tutti_fabric **lanes;         /* [lane_count - 1], owned */
    tutti_fabric *trunk;          /* whose lane this is, or NULL */
    int kick;                     /* eventfd, -1 when no stream is polled */
    atomic_int sleepers, pending; /* pending: messages that are not complete */
    atomic_uint moved;            /* grows whenever bytes have moved */
    atomic_bool leaving; /* this rank meets the others for the last time, then they close */
    atomic_bool broken;  /* `error` holds why; set once, under `lock` */
    tutti_error error;
    atomic_uint contexts;               /* numbers that this rank has given to new groups */
    uint64_t cpu_mask[TUTTI_CPU_WORDS]; /* this rank's, when it joined */
    int cpus;                           /* that ranks of this machine may use; 0: not counted yet */
    bool crowded;                       /* more ranks, or lanes of theirs, than CPUs here */
    bool one_thread;      /* what carries it bears calls of the program's thread only */
    atomic_int strangers; /* waits that sleep at once, because others want the CPUs */
    int spin, yields;     /* rounds of a wait before it yields, and then before it sleeps */
    int64_t arena_bytes;
    tutti_server server;   /* of serve.h; under `lock` */
    atomic_uint questions; /* asked by this rank */
};

enum { TUTTI_HEADER_BYTES = 16 };
/* Tags of collectives have this bit, those of users have not; they say which collective it is, and
 * what kind of one, which must be the same. */
#define TUTTI_COLLECTIVE_TAG UINT32_C(0x80000000)
#define TUTTI_CALL_MASK UINT32_C(0x7f000000)
#define TUTTI_SEQUENCE_MASK UINT32_C(0x00ffffff)
#define TUTTI_HEADER_MARK (UINT64_C(0x5475) << 48)

tutti_status tutti__fabric_create(int rank, int size, tutti_fabric **ret_fabric);
void tutti__fabric_release(tutti_fabric *fabric); /* NULL is fine */
/* They go before it does: a group that was split from it asks nobody from now on. Where it is
 * broken they may still look at what its ranks noted: they end before it is released. */
void tutti__fabric_forget_members(tutti_fabric *fabric);
/* Takes an engine's state for the peers that `engines` says; NULL state is fine. */
void tutti__fabric_add(tutti_fabric *fabric, const tutti_fabric_engine *engine, void *state);
/* Of a group that one process has made: where its ranks note what they are in. */
void tutti__fabric_share_calls(tutti_fabric *fabric, tutti_all_calls *calls);
/* Of a cluster, where ranks of this machine share memory: they note what they are in there, and the
 * membership may look at it until the end. */
void tutti__fabric_progress_record(tutti_fabric *fabric);
/* After all engines were added: links streams, decides how long to spin. */
tutti_status tutti__fabric_ready(tutti_fabric *fabric);

/* Posting never blocks; small sends are often complete at once. The message stays the caller's and
 * must live until it is complete or cancelled. A send to oneself is not allowed. */
void tutti__fabric_send(tutti_fabric *fabric, tutti_fabric_message *message);
void tutti__fabric_recv(tutti_fabric *fabric, tutti_fabric_message *message);
/* Moves what can be moved. */
void tutti__fabric_progress(tutti_fabric *fabric);
/* The same, and hears what peers ask from which nothing is expected: in waits that last. */
void tutti__fabric_hear(tutti_fabric *fabric);
/* The same, and keeps whatever comes: a peer that sends what nobody here asks for yet goes on. */
void tutti__fabric_take_in(tutti_fabric *fabric);
/* Inside a wait, zeroed at first: does that once nothing has moved here for milliseconds, so that
 * ranks which all send first do not wait for each other. Not sooner: what is asked for in a moment
 * need not be copied twice. */
typedef struct tutti_long_wait {
    int64_t since; /* ns */
    unsigned moved;
} tutti_long_wait;
void tutti__fabric_waits_long(tutti_fabric *fabric, tutti_long_wait *wait);
/* Waits for all of them. After a failure none of them is posted any more. */
tutti_status tutti__fabric_wait(tutti_fabric *fabric, tutti_fabric_message *const *messages,
                                int count, int64_t deadline_ns);
/* Lets others run for once; false: sleep now, the CPU went to strangers for long. */
bool tutti__fabric_yield(tutti_fabric *fabric);
/* This thread works beside others that want its CPU: where the kernel wakes it, it sleeps at once.
 */
void tutti__fabric_beside(bool on);
bool tutti__fabric_is_beside(void);
/* Why threads that do something together need not go on: one of them has failed. */
typedef struct tutti_stop {
    atomic_bool set; /* after `error` */
    tutti_error error;
} tutti_stop;
/* Waits of this thread end when it is set; NULL: there is none. */
void tutti__fabric_heed(const tutti_stop *stop);
/* Moves what can be moved, then sleeps until more may come from or go to these peers, at most `ns`.
 */
void tutti__fabric_doze(tutti_fabric *fabric, const int *peers, const bool *outgoing, int count,
                        int64_t ns);
/* Bytes that are still to come of the message under way, whatever comes then; 1 when none is. */
size_t tutti__stream_wanted(const tutti_stream *stream);
/* Bytes of a message to a peer that have left, or will whatever happens to it now. */
size_t tutti__fabric_sent(tutti_fabric *fabric, const tutti_fabric_message *message);
/* Takes it out of every queue: its memory is not touched any more. What has come of a user's
 * message is kept for the next receive with its tag. */
void tutti__fabric_cancel(tutti_fabric *fabric, tutti_fabric_message *message);

/* Breaks the fabric for good and tells the others where that is possible. The first reason stays.
 * Returns `status` with the reason in force as the message. */
tutti_status tutti__fabric_break(tutti_fabric *fabric, tutti_status status, const char *why);
/* The same, but others hear of it by other ways. */
void tutti__fabric_break_here(tutti_fabric *fabric, tutti_status status, const char *why);
/* Where it is `noted`: this rank is in collective number `sequence` of the group with this context,
 * which is `call`; then: in none any more. */
static inline void tutti__fabric_note(tutti_fabric *fabric, uint32_t context, const char *operation,
                                      uint64_t sequence, uint64_t call)
{
    atomic_store_explicit(&fabric->context, context, memory_order_relaxed);
    atomic_store_explicit(&fabric->sequence, sequence, memory_order_relaxed);
    atomic_store_explicit(&fabric->operation, operation, memory_order_relaxed);
    tutti__calls_note(fabric->noted, context, sequence, call);
}
static inline void tutti__fabric_note_left(tutti_fabric *fabric)
{
    atomic_store_explicit(&fabric->operation, NULL, memory_order_relaxed);
}
/* Of a forked group: whether a rank's process is stopped, by a signal or a debugger. */
bool tutti__fabric_is_stopped(const tutti_fabric *fabric, int rank);
/* Says to the ranks of this machine that it will be broken, as soon as the cause is known. */
void tutti__fabric_give_up(tutti_fabric *fabric);
/* Whether some rank has said so, or a verdict is on its way: nobody may enter a collective any more
 * in which others have failed. */
bool tutti__fabric_is_given_up(const tutti_fabric *fabric);
/* Whether a rank that shares memory with this one has broken it. */
bool tutti__fabric_is_told(const tutti_fabric *fabric);
/* Whether it has ranks that this one shares no memory with. */
bool tutti__fabric_spans(const tutti_fabric *fabric);
/* Whether some rank has broken it, as far as is known here. */
bool tutti__fabric_is_broken(const tutti_fabric *fabric);
/* The slow part of every wait: TUTTI_OK while nobody died and nothing was aborted. */
tutti_status tutti__fabric_check(tutti_fabric *fabric);
/* Wakes threads of this rank that sleep in the fabric. */
void tutti__fabric_kick(tutti_fabric *fabric);
/* "rank 3 (host a, process 77)", into a buffer of at least 320 bytes; returns it. */
const char *tutti__fabric_name(const tutti_fabric *fabric, int peer, char *ret_text, size_t size);

#endif
