/* serve.h: what one rank lets the others read while it does something else: it is asked by a
 * message and answers whenever it waits for anything. Nobody has to call anything for it. */
#ifndef TUTTI_COMM_FABRIC_SERVE_H
#define TUTTI_COMM_FABRIC_SERVE_H

#include "comm/fabric/fabric.h"
#include "tutti/comm.h"

/* Messages of these are no group's: tag 0 asks, others answer. */
#define TUTTI_SERVE_CONTEXT UINT32_C(0xfffffffe)

typedef enum tutti_fetch_answer {
    TUTTI_FETCH_ALL,   /* the bytes are there */
    TUTTI_FETCH_STALE, /* what is there now has another stamp */
    TUTTI_FETCH_NONE   /* there is no such thing, or no longer */
} tutti_fetch_answer;

/* What is asked for: a thing by two numbers, as of a stamp, and bytes of it. */
struct tutti_wanted {
    uint64_t what[2], stamp;
    int64_t offset, bytes;
};

/* From now on others' questions are answered so; a give of NULL: no more. */
void tutti__comm_serve(tutti_comm *comm, const tutti_server *server);
/* Asks a rank and waits, as long as the group's calls may; in pieces where it is much. Does not
 * break the group when it fails. */
tutti_status tutti__comm_fetch(tutti_comm *comm, int rank, const tutti_wanted *wanted, void *to,
                               tutti_fetch_answer *ret);

/* For message.c, with the fabric's lock held: a question that came from a peer. The answer is a
 * message to be posted, or NULL where the question is none. */
tutti_fabric_message *tutti__serve(tutti_fabric *fabric, int peer, const void *question,
                                   size_t size);

#endif
