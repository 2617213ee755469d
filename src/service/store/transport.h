/* transport.h: what carries messages, and who is there. Servers and clients are state machines:
 * frames, views and the time come in, frames go out. A simulator, threads of one process and
 * sockets plug in here. A transport may delay, repeat, reorder and lose frames. */
#ifndef TUTTI_SERVICE_STORE_TRANSPORT_H
#define TUTTI_SERVICE_STORE_TRANSPORT_H

#include "service/store/message.h"

typedef struct tutti_store_transport {
    void *context;
    /* Takes the frame (from malloc) over. Never calls back into who sends. */
    void (*send)(void *context, uint32_t to, uint8_t *frame, size_t size);
} tutti_store_transport;

/* Writes a message into a frame and sends it; without memory it is lost, as by the network. */
void tutti__store_send(const tutti_store_transport *transport, uint32_t to,
                       const tutti_store_message *message);

/* A view: who is alive, and which process leads which slot and has its replica. Whoever decides
 * membership numbers them; a later one replaces an earlier one everywhere. A slot goes on with its
 * replica only if that was complete (tutti__store_server_complete). */
enum { TUTTI_STORE_NOBODY = TUTTI_STORE_NODES };

/* Contributions from here on are of processes that read, and push by closures if at all: a
 * coordinator, an evaluator. Nobody waits for them. */
enum { TUTTI_STORE_OBSERVER = TUTTI_STORE_NODES };

typedef struct tutti_store_process {
    uint32_t node, incarnation;
    uint32_t contribution; /* of a worker: its number */
} tutti_store_process;

typedef struct tutti_store_place {
    uint32_t leader, replica; /* nodes; NOBODY: none */
    bool fresh;               /* nothing was there yet: the leader begins with nothing */
} tutti_store_place;

typedef struct tutti_store_view {
    uint64_t number;
    size_t server_count, worker_count, slot_count;
    const tutti_store_process *servers, *workers; /* that are alive */
    const tutti_store_place *slots;
} tutti_store_view;

tutti_status tutti__store_view_copy(const tutti_store_view *view, tutti_store_view *ret_copy);
void tutti__store_view_free(tutti_store_view *copy); /* a zeroed one is fine */
/* The process at a node, or NULL when none is alive there. */
const tutti_store_process *tutti__store_view_find(const tutti_store_view *view, uint32_t node);

#endif
