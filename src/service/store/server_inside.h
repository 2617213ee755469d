/* server_inside.h: what server.c, server_view.c and server_replica.c share. */
#ifndef TUTTI_SERVICE_STORE_SERVER_INSIDE_H
#define TUTTI_SERVICE_STORE_SERVER_INSIDE_H

#include "service/store/distance.h"
#include "service/store/server.h"

/* An operation that the replica has not confirmed. */
typedef struct tutti_store_server_logged {
    uint64_t number;
    uint8_t *frame;
    size_t size;
    uint32_t node; /* whom to answer; NOBODY: no one */
} tutti_store_server_logged;

/* A message that has to wait: for the policy, for slot 0's stream, for its turn. */
typedef struct tutti_store_server_parked {
    uint32_t node, type, shard; /* one of each: a later request takes an earlier one's place */
    uint64_t request;
    uint8_t *frame;
    size_t size;
} tutti_store_server_parked;

typedef struct tutti_store_server_slot {
    uint32_t number;
    tutti_store_slot *slot; /* NULL: nothing of it is here */
    bool leads, complete;
    uint32_t leader_incarnation;           /* of a replica's leader */
    uint32_t replica, replica_incarnation; /* of a leader's replica; NOBODY: none */
    bool replica_ready;                    /* it has the snapshot */
    tutti_text snapshot;                   /* on its way there, or coming in */
    uint64_t snapshot_at, piece;           /* the operation that it holds; the next piece */
    uint64_t logged;                       /* the last operation's number */
    TUTTI_VEC(tutti_store_server_logged) log;
    TUTTI_VEC(tutti_store_server_parked) parked;
} tutti_store_server_slot;

struct tutti_store_server {
    tutti_store_server_options options;
    tutti_store_view view;
    TUTTI_VEC(tutti_store_server_slot) slots; /* by number */
    tutti_store_distances distances;
    int64_t sent_ns; /* when things were sent again last */
    bool waking;     /* parked messages are being looked at */
    uint64_t garbage;
};

/* Sends, as from this server under its view. */
void tutti__store_server_send(tutti_store_server *server, uint32_t node,
                              tutti_store_message *message);
void tutti__store_server_answer(tutti_store_server *server, const tutti_store_message *to,
                                tutti_store_message *answer);
/* Appends an operation to the log; it is applied now where nobody has to confirm it. `answer_to`:
 * NOBODY, or a node. */
void tutti__store_server_append(tutti_store_server *server, tutti_store_server_slot *at,
                                const tutti_store_message *op, uint32_t answer_to);
/* ---- server_requests.c ---- */
/* A request for a slot that this server leads: answered, logged, or parked. */
void tutti__store_server_request(tutti_store_server *server, tutti_store_server_slot *at,
                                 const tutti_store_message *message);
/* Every parked message is looked at again; one that still has to wait parks itself anew. */
void tutti__store_server_wake(tutti_store_server *server, tutti_store_server_slot *at);
/* Whether the same thing is in the log already: a retry, from wherever. */
bool tutti__store_server_is_logged(const tutti_store_server_slot *at,
                                   const tutti_store_message *message);
/* With the thread's message as its words. */
void tutti__store_server_refuse(tutti_store_server *server, const tutti_store_message *to,
                                tutti_store_reason reason);
void tutti__store_server_clear_parked(tutti_store_server_slot *at);
/* The leader: applies the operations up to this number, answers them, and looks who may go on. */
void tutti__store_server_apply(tutti_store_server *server, tutti_store_server_slot *at,
                               uint64_t upto);
/* The slot's operations that are to be confirmed, from `first` of the log. */
void tutti__store_server_replicate(tutti_store_server *server, tutti_store_server_slot *at,
                                   size_t first);
/* Begins to give a new replica everything. */
tutti_status tutti__store_server_begin_snapshot(tutti_store_server *server,
                                                tutti_store_server_slot *at);
void tutti__store_server_send_piece(tutti_store_server *server, tutti_store_server_slot *at);
/* REPLICATE, REPLICATED, SNAPSHOT, SNAPSHOT_TAKEN. */
void tutti__store_server_replica_message(tutti_store_server *server, tutti_store_server_slot *at,
                                         const tutti_store_message *message);
void tutti__store_server_slot_clear(tutti_store_server_slot *at); /* nothing of it is here */

#endif
