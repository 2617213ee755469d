/* server.h: a parameter server as a state machine: frames, views and ticks in, frames out.
 *
 * Invariants
 * 1. A slot has one leader in a view. Only it answers workers; a message of another view, or of a
 *    process that the view does not have, changes nothing.
 * 2. What changes something becomes an operation of the slot's log. The leader applies and answers
 * it when its replica, if the view names one, has applied it. So whatever was acknowledged or read
 * is on both, and a replica that takes over is never behind what anybody saw.
 * 3. A new replica gets a snapshot, then the operations after it. It is complete from then on.
 * 4. A pull waits at the leader until the policy lets its clock read; one for each worker and
 * shard.
 * 5. Memory has a limit: what does not fit is refused, with the numbers.
 *
 * One thread at a time. */
#ifndef TUTTI_SERVICE_STORE_SERVER_H
#define TUTTI_SERVICE_STORE_SERVER_H

#include "service/store/order.h"
#include "service/store/slot.h"
#include "service/store/transport.h"

typedef struct tutti_store_server_options {
    uint32_t node, incarnation;
    tutti_store_transport transport;
    tutti_store_find_rule *find; /* NULL: the table's */
    int64_t limit;               /* bytes of memory; 0: none */
    int64_t retry_ns;            /* after which something is sent again; 0: 50 ms */
    size_t piece;                /* bytes of a snapshot sent at once; 0: 1 MiB */
    tutti_store_order *order;    /* (optional) recorded, or replayed; the caller's */
} tutti_store_server_options;

typedef struct tutti_store_server tutti_store_server;

tutti_status tutti__store_server_create(const tutti_store_server_options *options,
                                        tutti_store_server **ret_server);
void tutti__store_server_free(tutti_store_server *server); /* NULL is fine */

/* Begins with a slot as tutti__store_slot_save wrote it, before the first view. */
tutti_status tutti__store_server_restore(tutti_store_server *server, uint32_t number,
                                         const void *data, size_t size);

/* A frame came. Garbage is counted, and changes nothing. */
void tutti__store_server_receive(tutti_store_server *server, const uint8_t *frame, size_t size,
                                 int64_t now_ns);
/* A later view than the present one; others do nothing. On failure the server must be given up. */
tutti_status tutti__store_server_view(tutti_store_server *server, const tutti_store_view *view,
                                      int64_t now_ns);
/* The view that it follows; number 0: none yet. */
const tutti_store_view *tutti__store_server_last_view(const tutti_store_server *server);
/* What got no answer is sent again. To be called about as often as options.retry_ns. */
void tutti__store_server_tick(tutti_store_server *server, int64_t now_ns);

/* Whether this server could lead the slot if its leader went now: it leads it, or has all of it. */
bool tutti__store_server_complete(const tutti_store_server *server, uint32_t slot);
/* The slot as it is here, or NULL. */
tutti_store_slot *tutti__store_server_slot(const tutti_store_server *server, uint32_t slot);
int64_t tutti__store_server_bytes(const tutti_store_server *server);
/* Whether nothing is on its way to a replica or another slot. */
bool tutti__store_server_is_idle(const tutti_store_server *server);
uint64_t tutti__store_server_garbage(const tutti_store_server *server); /* frames that were none */
/* Of all gradients of the slots that it leads. */
void tutti__store_server_staleness(const tutti_store_server *server, tutti_store_staleness *ret);
/* What it leads and replicates, and what it waits for; a line each. */
void tutti__store_server_print(const tutti_store_server *server, tutti_text *text);

#endif
