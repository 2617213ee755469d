/* pairs.h: connections on loopback between all ranks of a group that one process makes. */
#ifndef TUTTI_COMM_TCP_PAIRS_H
#define TUTTI_COMM_TCP_PAIRS_H

#include "comm/fabric/abort_flag.h"
#include "comm/fabric/engine.h"

enum {
    TUTTI_TCP_STREAMS = 16, /* most connections between two ranks */
    TUTTI_TCP_NEAR = 1,     /* connections within a machine */
};

/* Memory where the ranks of such a group tell each other why it has ended. */
typedef struct tutti_tcp_board {
    atomic_int users; /* of this process */
    tutti_abort_flag *abort_flag;
} tutti_tcp_board;
void tutti__tcp_board_drop(tutti_tcp_board *board); /* NULL is fine */

/* What a group inside one process, or of forked ones, starts from. */
typedef struct tutti_tcp_pairs {
    int size, streams, lanes;
    tutti_tcp_board *board;
    int *descriptors; /* [size][size][streams]: the first rank's end; -1 when it was taken */
} tutti_tcp_pairs;

/* The engine's prepare and discard. */
tutti_status tutti__tcp_prepare(int size, const tutti_comm_options *options, bool forked,
                                void **ret_shared);
void tutti__tcp_discard(void *arg, int rank);
/* Of `wanted` lanes those that share the connections evenly; and how many connections two ranks
 * have, by default the `usual`. */
int tutti__tcp_lanes(const tutti_comm_options *options, int wanted);
int tutti__tcp_streams(const tutti_comm_options *options, int usual, int lanes);
int *tutti__tcp_descriptor(const tutti_tcp_pairs *all, int from, int to, int stream);
/* How a connection behaves; near: within a machine. */
/* A link between machines: one that nobody writes to is asked whether the other end is there. */
void tutti__tcp_keep_alive(int descriptor, int64_t silence_ns);
/* What several looks at a connection tell. */
typedef struct tutti_tcp_looks {
    int64_t first_ns, last_ns; /* those at which the same acknowledgement was owed; 0: none */
    int64_t heard_ns;          /* when the other end was heard last */
} tutti_tcp_looks;
/* How long the other end has owed an acknowledgement, ns, as far as looks not more than `apart_ns`
 * apart tell; 0: none is owed. */
int64_t tutti__tcp_owed(int descriptor, int64_t apart_ns, tutti_tcp_looks *looks);
void tutti__tcp_tune(int descriptor, bool near);

#endif
