/* heartbeat.h: the thread behind a membership: its sockets, and the roster that it drives.
 *
 * `lock` guards everything below it. The heartbeat thread sleeps without it. Other threads may
 * speak to the roster under the lock; what it sends goes out at once if the socket takes it, else
 * the heartbeat thread is woken to send the rest. */
#ifndef TUTTI_CLUSTER_HEARTBEAT_H
#define TUTTI_CLUSTER_HEARTBEAT_H

#include <pthread.h>

#include "base/container.h"
#include "base/world.h"
#include "cluster/channel.h"
#include "cluster/cluster.h"
#include "cluster/handshake.h"
#include "cluster/recorder.h"
#include "cluster/roster.h"
#include "cluster/secret.h"
#include "cluster/wire.h"

typedef enum tutti_link_state {
    TUTTI_LINK_STRANGER, /* accepted; challenged; has not proved itself */
    TUTTI_LINK_CALLING,  /* `rank` was called, and has not let us in yet */
    TUTTI_LINK_MEMBER,   /* authenticated; `rank` is at the other end */
    TUTTI_LINK_ENDING,   /* what is left is sent, then it is closed */
    TUTTI_LINK_CLOSED,   /* to be swept */
} tutti_link_state;

typedef struct tutti_link {
    tutti_wire wire;
    tutti_link_state state;
    int rank;
    uint32_t purpose, number; /* of a call; number: of a channel */
    uint64_t incarnation;     /* of the rank that is called for a channel */
    int64_t since_ns;
    tutti_address from;
    uint8_t nonce[TUTTI_NONCE_BYTES];  /* the acceptor's */
    uint8_t proof[TUTTI_SHA256_BYTES]; /* ours, of a call */
    bool connecting;                   /* a call whose socket is not connected yet */
    size_t in_size, out_sent;
    tutti_text out;
    uint8_t in[TUTTI_FRAME_BYTES];
} tutti_link;

/* Who keeps an open roster, as another process says; rank -1: it does not know. */
typedef struct tutti_peer_hint {
    int rank, port;
    bool fresh; /* it has not joined either */
    char address[64];
} tutti_peer_hint;

/* A channel that another rank opened and nobody has asked for yet; in an open roster also one that
 * this rank has. */
typedef struct tutti_caller {
    int rank;
    uint32_t number;
    uint64_t incarnation;
    tutti_wire wire;
} tutti_caller;

/* Who is told of views and channels. */
typedef struct tutti_watcher {
    void (*tell)(void *context);
    void *context;
} tutti_watcher;

struct tutti_heartbeat {
    tutti_membership membership;  /* what callers hold; `peers` is ours */
    tutti_cluster own;            /* as it was given: `meeting` may have been found out since */
    const tutti_cluster *cluster; /* that */
    tutti_identity me;
    tutti_secret secret;
    tutti_tls_context *tls;
    int64_t silence_ns;
    int listener, wake_fd, failed_fd;
    char reached[64]; /* the address at which rank 0 was reached */
    tutti_recorder recorder;
    pthread_t thread;
    bool running;
    _Atomic int64_t step; /* of the training, that is under way; 0: there is none */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* phase, links, callers, exchange; monotonic clock */
    bool stop;
    int64_t saved_step; /* of the last checkpoint, in the file `saved`; "": there is none */
    char saved[200];
    bool starved; /* somebody came, and no descriptor was left for him */
    bool aborted; /* by this rank: the others should have heard of it before it goes */
    tutti_roster roster;
    tutti_progress_record progress_record;
    TUTTI_VEC(tutti_link *) links;
    TUTTI_VEC(tutti_caller) callers;
    uint64_t *opened; /* [size]: a bit for each channel that the rank has opened to us */
    TUTTI_VEC(tutti_watcher) watchers;
    bool news;                       /* watchers are told, outside the lock */
    bool telling;                    /* they are just now */
    tutti_member_view *shown;        /* the view as callers see it; NULL: none yet */
    int keeper_told;                 /* whom the launcher knows as the keeper; -1: nobody */
    tutti_refusal *seen;             /* [size] how a process that claimed a rank was refused */
    char (*seen_from)[64];           /* [size] from where */
    char warning[300];               /* for the log, outside the lock; "": none */
    char other_job[TUTTI_JOB_BYTES]; /* of the last one that was refused for it */
    /* The last one that was turned away before it could say its rank, and why; "": none. */
    char turned_from[64], turned_why[400];
    char launcher_line[64]; /* beginning of a line from the launcher */
    size_t launcher_size;
};

/* ---- heartbeat.c ---- */
tutti_status tutti__heartbeat_create(const tutti_cluster *cluster, tutti_heartbeat **ret_heartbeat);
tutti_status tutti__heartbeat_start(tutti_heartbeat *heartbeat); /* the thread */
void tutti__heartbeat_free(tutti_heartbeat *heartbeat);          /* ends the thread; NULL is fine */
void tutti__heartbeat_wake(tutti_heartbeat *heartbeat);
/* Under the lock: sends what links take at once. */
void tutti__heartbeat_flush(tutti_heartbeat *heartbeat);
/* Under the lock: tells those who wait, and raises the flag after a failure. */
void tutti__heartbeat_publish(tutti_heartbeat *heartbeat);
/* Under the lock: waits for `changed`; false when the deadline has passed. */
bool tutti__heartbeat_wait(tutti_heartbeat *heartbeat, int64_t deadline_ns);

/* ---- link.c; all under the lock ---- */
tutti_status tutti__link_add(tutti_heartbeat *heartbeat, tutti_wire wire, tutti_link_state state,
                             int rank, tutti_link **ret_link);
void tutti__link_accept(tutti_heartbeat *heartbeat); /* everybody who waits at the listener */
void tutti__link_read(tutti_heartbeat *heartbeat, tutti_link *link);
void tutti__link_flush(tutti_heartbeat *heartbeat, tutti_link *link);
void tutti__link_send(tutti_link *link, const tutti_cluster_message *message);
/* Notes those that wait, it seems, for a challenge without TLS. */
void tutti__link_note_silent(tutti_heartbeat *heartbeat);
void tutti__link_sweep(tutti_heartbeat *heartbeat,
                       int64_t now_ns);                           /* closed ones, idle strangers */
tutti_link *tutti__link_of(tutti_heartbeat *heartbeat, int rank); /* or call; NULL: none */
/* Whether this rank is opening that channel. */
bool tutti__link_is_calling(const tutti_heartbeat *heartbeat, int rank, uint32_t number);
void tutti__link_free(tutti_link *link);

/* The end of a link, whoever caused it; the roster hears of members and calls. */
void tutti__link_end(tutti_heartbeat *heartbeat, tutti_link *link, const char *reason);

/* ---- call.c; all under the lock ---- */
/* Begins a link to a rank that listens already: to ask it in rank 0's place, to join an open roster
 * that it keeps, or a channel; never blocks. */
tutti_calling tutti__call_begin(tutti_heartbeat *heartbeat, int rank, uint32_t purpose,
                                uint32_t number);
/* Its socket has something: it is connected, or will not be. */
void tutti__call_connected(tutti_heartbeat *heartbeat, tutti_link *link);
/* Something was read, perhaps not yet a message. */
void tutti__call_listen(tutti_heartbeat *heartbeat, const tutti_link *link);
void tutti__call_answer(tutti_heartbeat *heartbeat, tutti_link *link,
                        const tutti_cluster_message *message);

/* ---- member_view.c ---- */
/* Under the lock: shows callers the roster's present view, if it is another one. */
void tutti__member_view_show(tutti_heartbeat *heartbeat);
/* Not under the lock: those who watch are told. */
void tutti__member_view_tell(tutti_heartbeat *heartbeat);

/* ---- dial.c ---- */
/* Connects to a rank and proves each to the other; tries again until the deadline while nobody
 * listens there. *ret_reached is the numeric address. Not under the lock. */
tutti_status tutti__dial(tutti_heartbeat *heartbeat, const char *host, int port, uint32_t purpose,
                         int to, uint32_t number, int64_t deadline_ns, tutti_wire *ret_wire,
                         char ret_reached[64]);

/* One attempt to join an open roster at host:port, whoever is there. TUTTI_OK: it keeps it,
 * and has let us in. TUTTI_NOT_FOUND: it does not, but may say who does, in *ret_hint. Else nobody
 * was reached or it was refused, *ret_final where trying again is useless. */
tutti_status tutti__dial_keeper(tutti_heartbeat *heartbeat, const char *host, int port,
                                int64_t deadline_ns, tutti_wire *ret_wire, char ret_reached[64],
                                int *ret_rank, tutti_peer_hint *ret_hint, bool *ret_final);

/* ---- listener.c ---- */
/* Listens where others are to reach this rank, and says at which address: on loopback where rank 0
 * is there, at the interface TUTTI_IFACE where that is set, else everywhere. */
tutti_status tutti__listener_open(tutti_heartbeat *heartbeat, const char *host, int meeting_port,
                                  int64_t deadline_ns);
void tutti__listener_close(tutti_heartbeat *heartbeat);
bool tutti__listener_free(int port); /* everywhere on this machine, just now */

/* ---- table.c ---- */
/* Who has not come to the rendezvous and why; rank 0. Not under the lock; takes at most three
 * seconds.
 */
void tutti__missing_table(tutti_heartbeat *heartbeat, int64_t waited_ns, char *ret_text,
                          size_t size);
/* Tells the launcher, if there is one, which ranks did not meet rank 0 in time: its next start can
 * do without their hosts. Rank 0 names those that it has not seen, others themselves. */
void tutti__missing_tell(tutti_heartbeat *heartbeat);

#endif
