/* pairs.h: connections on loopback between all ranks of a group that one process makes. */
#ifndef TUTTI_COMM_TCP_PAIRS_H
#define TUTTI_COMM_TCP_PAIRS_H

#include "comm/engine.h"
#include "comm/notice.h"

enum {
    TUTTI_TCP_STREAMS = 16, /* most connections between two ranks */
    TUTTI_TCP_NEAR = 1,     /* connections within a machine */
};

/* Memory where the ranks of such a group tell each other why it has ended. */
typedef struct tutti_tcp_board {
    atomic_int users; /* of this process */
    tutti_notice *notice;
} tutti_tcp_board;
void tutti__tcp_board_drop(tutti_tcp_board *board); /* NULL is fine */

/* What a group inside one process, or of forked ones, starts from. */
typedef struct tutti_tcp_pairs {
    int size, streams;
    tutti_tcp_board *board;
    int *descriptors; /* [size][size][streams]: the first rank's end; -1 when it was taken */
} tutti_tcp_pairs;

/* The engine's prepare and discard. */
tutti_status tutti__tcp_prepare(int size, const tutti_comm_options *options, bool forked,
                                void **ret_shared);
void tutti__tcp_discard(void *given, int rank);
int *tutti__tcp_descriptor(const tutti_tcp_pairs *all, int from, int to, int stream);
/* How a connection behaves; near: within a machine. */
/* A link between machines: one that nobody writes to is asked whether the other end is there. */
void tutti__tcp_keep_alive(int descriptor, int64_t silence_ns);
/* How long the other end has not acknowledged what it was sent, ns; 0: nothing is owed. */
int64_t tutti__tcp_owed(int descriptor);
void tutti__tcp_tune(int descriptor, bool near);

#endif
