/* transport.h: messages between any two members of an open job (cluster/membership.h): a worker and
 * a parameter server.
 *
 *     tutti__transport_open(members, &options, &calls, &transport);
 *     tutti__transport_send(transport, &(tutti_transport_message){.rank = 2, .tag = 7, ...});
 *     while (!answered)
 *         TUTTI_TRY(tutti__transport_poll(transport, deadline));   // calls `deliver`
 *
 * A connection to a peer is made when the first message goes to it, authenticated as all of the
 * job's are, and stays however the view changes, until that incarnation of the peer is gone.
 * Between processes of one machine bytes go through shared memory, the connection itself rings;
 * else over TCP, or TLS where the job has it. Messages from one process to another arrive in the
 * order in which they were sent, or not at all: who loses a peer hears so, and what was under way
 * is lost.
 *
 * Any thread may send; one at a time polls, others that do wait for it. Callbacks run in the thread
 * that polls, without a lock, and may send. */
#ifndef TUTTI_COMM_TRANSPORT_TRANSPORT_H
#define TUTTI_COMM_TRANSPORT_TRANSPORT_H

#include <sys/uio.h>

#include "cluster/membership.h"

typedef struct tutti_transport tutti_transport;

/* What happens; each is optional. */
typedef struct tutti_transport_calls {
    void *context;
    /* Memory for a message that is coming, which `deliver` then gets; NULL: the transport's own,
     * which it frees after `deliver`. Called with a lock held: it must not send or poll. */
    void *(*place)(void *context, int rank, uint64_t tag, size_t size);
    void (*deliver)(void *context, int rank, uint64_t incarnation, uint64_t tag, void *data,
                    size_t size);
    /* The connection to a peer has ended, with what was under way both ways: messages that were not
     * delivered whole never are. `gone`: that process is not in the view any more; else the next
     * message makes a new connection. */
    void (*lost)(void *context, int rank, uint64_t incarnation, bool gone, const char *why);
    void (*view)(void *context, const tutti_member_view *view); /* a new one; retain it or copy */
} tutti_transport_calls;

/* Zero means: the default. */
typedef struct tutti_transport_options {
    bool no_sharing;    /* no shared memory; TUTTI_ENGINE=tcp says so too */
    uint64_t most;      /* bytes of one message that comes; 16 GiB */
    uint64_t most_kept; /* bytes of messages to one peer that are copied and wait; 256 MiB */
    int64_t spin_ns;    /* how long a poll looks again and again before it sleeps; 50 us, -1: 0 */
} tutti_transport_options;

typedef struct tutti_transport_message {
    int rank;
    uint64_t incarnation; /* of the receiver; 0: whichever is there */
    uint64_t tag;         /* the receiver gets it */
    const struct iovec *parts;
    int count;
    int64_t deadline_ns; /* until all has left; 0: none */
    /* Called once all has left, or never will: until then the parts stay as they are. NULL: what
     * does not leave at once is copied. */
    void (*done)(void *context, tutti_status status);
    void *context;
} tutti_transport_message;

/* One for each membership. Neither copies `calls->context`. */
tutti_status tutti__transport_open(tutti_membership *membership,
                                   const tutti_transport_options *options,
                                   const tutti_transport_calls *calls,
                                   tutti_transport **ret_transport);
/* Ends all connections; nobody sends or polls any more. `done` is called for what is under way.
 * Before the membership's end. NULL is fine. */
void tutti__transport_close(tutti_transport *transport);
/* Never blocks. TUTTI_CLOSED: that rank, or its incarnation, is not in the view; TUTTI_TOO_LARGE:
 * too much waits for it already. `done` is not called where it fails. */
tutti_status tutti__transport_send(tutti_transport *transport,
                                   const tutti_transport_message *message);
/* Moves bytes and calls back; returns after the first that happened, or with TUTTI_DEADLINE. Fails
 * when the membership has failed (its launcher is gone). */
tutti_status tutti__transport_poll(tutti_transport *transport, int64_t deadline_ns);
/* Lets a poll that sleeps return, from any thread or a signal's handler. */
void tutti__transport_wake(tutti_transport *transport);
/* "shared memory", "tcp", "TLS", or "" while there is no connection to the rank. */
const char *tutti__transport_way(tutti_transport *transport, int rank);

#endif
