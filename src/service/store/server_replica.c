/* server_replica.c: a leader and its replica: operations one by one, and the snapshot that a new
 * replica begins with. */
#include <stdlib.h>

#include "service/store/server_inside.h"

enum { AT_ONCE = 64 }; /* operations that are sent again at once */

void tutti__store_server_replicate(tutti_store_server *server, tutti_store_server_slot *at,
                                   size_t first)
{
    if (!at->replica_ready)
        return;
    for (size_t i = first; i < at->log.count && i < first + AT_ONCE; i++) {
        tutti_store_message message = {.type = TUTTI_STORE_REPLICATE,
                                       .slot = at->number,
                                       .number = at->log.data[i].number,
                                       .data = {at->log.data[i].frame, at->log.data[i].size}};
        tutti__store_server_send(server, at->replica, &message);
    }
}

tutti_status tutti__store_server_begin_snapshot(tutti_store_server *server,
                                                tutti_store_server_slot *at)
{
    tutti__text_free(&at->snapshot);
    at->snapshot = (tutti_text){0};
    TUTTI_TRY(tutti__store_slot_save(at->slot, &at->snapshot));
    at->snapshot_at = at->slot->applied;
    at->piece = 0;
    at->replica_ready = false;
    tutti__store_server_send_piece(server, at);
    return TUTTI_OK;
}

void tutti__store_server_send_piece(tutti_store_server *server, tutti_store_server_slot *at)
{
    size_t piece = server->options.piece, size = at->snapshot.size;
    size_t from = (size_t)at->piece * piece, pieces = size > 0 ? (size + piece - 1) / piece : 1;
    tutti_store_message message = {.type = TUTTI_STORE_SNAPSHOT,
                                   .slot = at->number,
                                   .number = at->piece,
                                   .after = pieces,
                                   .version = at->snapshot_at,
                                   .data = {(const uint8_t *)at->snapshot.data + from,
                                            size - from < piece ? size - from : piece}};
    tutti__store_server_send(server, at->replica, &message);
}

static void take_operation(tutti_store_server *server, tutti_store_server_slot *at,
                           const tutti_store_message *message)
{
    tutti_store_message op, answer;
    size_t used;
    if (!at->complete || !at->slot)
        return;
    if (message->number == at->slot->applied + 1) {
        if (tutti__store_message_read(message->data.bytes, message->data.size, &op, &used) !=
                TUTTI_OK ||
            used != message->data.size) {
            server->garbage++;
            return;
        }
        tutti__store_slot_apply(at->slot, &op, &answer);
    }
    tutti_store_message confirm = {.type = TUTTI_STORE_REPLICATED, .number = at->slot->applied};
    tutti__store_server_answer(server, message, &confirm);
}

/* Pieces come one by one; the last one makes the replica complete. */
static void take_piece(tutti_store_server *server, tutti_store_server_slot *at,
                       const tutti_store_message *message)
{
    bool again = at->complete && message->version == at->snapshot_at;
    if (!again && at->slot)
        return;
    if (!again && message->number == 0 && message->version != at->snapshot_at) {
        at->snapshot.size = 0;
        at->piece = 0;
        at->snapshot_at = message->version;
    }
    if (!again && message->version != at->snapshot_at)
        return;
    if (!again && message->number == at->piece) {
        tutti__text_bytes(&at->snapshot, message->data.bytes, message->data.size);
        at->piece++;
        if (at->piece == message->after) {
            at->complete = !at->snapshot.failed &&
                           tutti__store_slot_load(at->snapshot.data, at->snapshot.size,
                                                  server->options.find, &at->slot) == TUTTI_OK;
            tutti__text_free(&at->snapshot);
            at->snapshot = (tutti_text){0};
            if (!at->complete) { /* from the beginning */
                at->piece = 0;
                server->garbage++;
                return;
            }
        }
    }
    if (!again && message->number >= at->piece)
        return;
    tutti_store_message taken = {
        .type = TUTTI_STORE_SNAPSHOT_TAKEN, .number = message->number, .version = message->version};
    tutti__store_server_answer(server, message, &taken);
}

static void piece_was_taken(tutti_store_server *server, tutti_store_server_slot *at,
                            const tutti_store_message *message)
{
    if (at->replica_ready || message->version != at->snapshot_at || message->number != at->piece)
        return;
    at->piece++;
    if ((size_t)at->piece * server->options.piece < at->snapshot.size) {
        tutti__store_server_send_piece(server, at);
        return;
    }
    tutti__text_free(&at->snapshot);
    at->snapshot = (tutti_text){0};
    at->replica_ready = true;
    tutti__store_server_replicate(server, at, 0);
}

void tutti__store_server_replica_message(tutti_store_server *server, tutti_store_server_slot *at,
                                         const tutti_store_message *message)
{
    bool of_leader = !at->leads && server->view.slots[at->number].leader == message->node &&
                     server->view.slots[at->number].replica == server->options.node;
    bool of_replica = at->leads && at->replica == message->node;
    if (message->type == TUTTI_STORE_REPLICATE && of_leader)
        take_operation(server, at, message);
    else if (message->type == TUTTI_STORE_SNAPSHOT && of_leader)
        take_piece(server, at, message);
    else if (message->type == TUTTI_STORE_REPLICATED && of_replica && at->replica_ready)
        tutti__store_server_apply(server, at, message->number);
    else if (message->type == TUTTI_STORE_SNAPSHOT_TAKEN && of_replica)
        piece_was_taken(server, at, message);
}
