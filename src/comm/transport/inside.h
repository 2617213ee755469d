/* inside.h: a transport from inside.
 *
 * `lock` guards all of it. What callbacks are to hear is queued as events, which the thread that
 * polls takes out and calls without the lock. */
#ifndef TUTTI_COMM_TRANSPORT_INSIDE_H
#define TUTTI_COMM_TRANSPORT_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/container.h"
#include "cluster/channel.h"
#include "comm/fabric/segment.h"
#include "comm/transport/transport.h"

enum {
    TUTTI_TRANSPORT_CHANNEL = 48, /* its number among those of a membership */
    TUTTI_TRANSPORT_HEADER = 24,
    TUTTI_TRANSPORT_GREETING = 40,
};

typedef struct tutti_transport_outgoing {
    struct tutti_transport_outgoing *next;
    char header[TUTTI_TRANSPORT_HEADER];
    struct iovec *parts; /* what is left of each; behind this struct */
    int count, at;
    size_t header_done, size, kept; /* kept: bytes of a copy */
    int64_t deadline_ns;
    void (*done)(void *context, tutti_status status);
    void *context;
} tutti_transport_outgoing;

typedef enum tutti_transport_state {
    TUTTI_TRANSPORT_WANTED,  /* there is no connection, and one is wanted, or not any more */
    TUTTI_TRANSPORT_GREETS,  /* both sides say how bytes will go */
    TUTTI_TRANSPORT_CARRIES, /* messages */
} tutti_transport_state;

/* To one incarnation of a rank. */
typedef struct tutti_transport_link {
    int rank;
    uint64_t incarnation;
    bool near; /* on the same machine */
    tutti_transport_state state;
    tutti_channel *channel;
    tutti_segment *segment; /* shared with the peer; this side is segment->rank of 2 */
    bool shared;            /* the peer has it, too */
    int64_t retry_ns;       /* when a call that failed is made again */
    char greeting_out[TUTTI_TRANSPORT_GREETING], greeting_in[TUTTI_TRANSPORT_GREETING];
    size_t greeted_out, greeted_in, greeting_size;
    tutti_transport_outgoing *first, **last;
    size_t kept;
    bool rings; /* a bell that the socket did not take */
    struct {
        char header[TUTTI_TRANSPORT_HEADER];
        size_t header_done, size, done;
        uint64_t tag;
        char *data;
        bool placed; /* data is the caller's */
    } in;
} tutti_transport_link;

typedef enum tutti_transport_what {
    TRANSPORT_CAME,
    TRANSPORT_LOST,
    TRANSPORT_DONE
} tutti_transport_what;

typedef struct tutti_transport_event {
    tutti_transport_what what;
    int rank;
    uint64_t incarnation, tag;
    char *data; /* of LOST: why */
    size_t size;
    bool placed, gone;
    void (*done)(void *context, tutti_status status);
    void *context;
    tutti_status status;
} tutti_transport_event;

struct tutti_transport {
    tutti_membership *membership;
    tutti_transport_options options;
    tutti_transport_calls calls;
    pthread_mutex_t lock, polling; /* polling: before lock */
    int wake_fd;
    atomic_bool changed; /* the view, or channels */
    atomic_bool woken;
    const tutti_member_view *view;
    bool view_is_new; /* to be told */
    TUTTI_VEC(tutti_transport_link *) links;
    TUTTI_VEC(tutti_transport_event) events;
};

/* ---- link.c; under the lock ---- */

/* Moves what can be moved. False when the connection has ended, with the thread's error.
 * *ret_moved is raised when bytes came. */
bool tutti__transport_move(tutti_transport *t, tutti_transport_link *link, bool *ret_moved);
/* A connection stands: greets. */
tutti_status tutti__transport_greet(tutti_transport *t, tutti_transport_link *link,
                                    tutti_channel *channel);
/* The bells of shared memory, and the peer's end; false as above. */
bool tutti__transport_hear(tutti_transport *t, tutti_transport_link *link);
/* Ends the connection: what was under way is lost, and that is told. */
void tutti__transport_end(tutti_transport *t, tutti_transport_link *link, bool gone,
                          const char *why);
void tutti__transport_link_free(tutti_transport_link *link);
/* Before a sleep: whoever sends to us rings from now on; and after it. */
void tutti__transport_sleeps(tutti_transport_link *link, bool sleeps);
void tutti__transport_add_event(tutti_transport *t, const tutti_transport_event *event);

#endif
