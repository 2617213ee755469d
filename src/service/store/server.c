/* server.c: the log, and what comes; server_requests.c has what workers ask, server_view.c views,
 * server_replica.c the replica's side. */
#include <inttypes.h>
#include <stdlib.h>

#include "service/store/server_inside.h"

enum { RETRY_NS = 50 * 1000000, PIECE = 1 << 20 };

tutti_status tutti__store_server_create(const tutti_store_server_options *options,
                                        tutti_store_server **ret_server)
{
    tutti_store_server *server = calloc(1, sizeof *server);
    if (!server)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a server");
    server->options = *options;
    if (!server->options.find)
        server->options.find = tutti__store_rule_find;
    if (server->options.retry_ns <= 0)
        server->options.retry_ns = RETRY_NS;
    if (server->options.piece == 0)
        server->options.piece = PIECE;
    *ret_server = server;
    return TUTTI_OK;
}

static void clear_log(tutti_store_server_slot *at)
{
    for (size_t i = 0; i < at->log.count; i++)
        free(at->log.data[i].frame);
    at->log.count = 0;
}

void tutti__store_server_clear_parked(tutti_store_server_slot *at)
{
    for (size_t i = 0; i < at->parked.count; i++)
        free(at->parked.data[i].frame);
    at->parked.count = 0;
}

void tutti__store_server_slot_clear(tutti_store_server_slot *at)
{
    clear_log(at);
    tutti__store_server_clear_parked(at);
    TUTTI_VEC_FREE(&at->log);
    TUTTI_VEC_FREE(&at->parked);
    tutti__text_free(&at->snapshot);
    tutti__store_slot_free(at->slot);
    *at = (tutti_store_server_slot){
        .number = at->number, .replica = TUTTI_STORE_NOBODY, .snapshot_at = UINT64_MAX};
}

void tutti__store_server_free(tutti_store_server *server)
{
    if (!server)
        return;
    for (size_t i = 0; i < server->slots.count; i++)
        tutti__store_server_slot_clear(&server->slots.data[i]);
    TUTTI_VEC_FREE(&server->slots);
    tutti__store_distances_free(&server->distances);
    tutti__store_view_free(&server->view);
    free(server);
}

void tutti__store_server_send(tutti_store_server *server, uint32_t node,
                              tutti_store_message *message)
{
    message->view = server->view.number;
    message->node = server->options.node;
    message->incarnation = server->options.incarnation;
    tutti__store_send(&server->options.transport, node, message);
}

void tutti__store_server_answer(tutti_store_server *server, const tutti_store_message *to,
                                tutti_store_message *answer)
{
    answer->request = to->request;
    answer->slot = to->slot;
    answer->shard = to->shard;
    tutti__store_server_send(server, to->node, answer);
}

void tutti__store_server_refuse(tutti_store_server *server, const tutti_store_message *to,
                                tutti_store_reason reason)
{
    tutti_store_message answer = {0};
    tutti__store_refusal(reason, &answer);
    tutti__store_server_answer(server, to, &answer);
}

/* ---- the log ---- */

/* The first thing of each stream that is not confirmed. */
static void send_decisions(tutti_store_server *server, const tutti_store_server_slot *at)
{
    for (size_t s = 0; at->number == 0 && s < at->slot->streams.count; s++) {
        const tutti_store_stream *stream = &at->slot->streams.data[s];
        if (stream->waiting.count == 0 || s >= server->view.slot_count ||
            server->view.slots[s].leader == TUTTI_STORE_NOBODY)
            continue;
        const tutti_store_decision *first = &stream->waiting.data[0];
        tutti_store_message message = {.type = TUTTI_STORE_DECIDE,
                                       .slot = (uint32_t)s,
                                       .contribution = first->contribution,
                                       .clock = first->incarnation,
                                       .number = first->number,
                                       .version = first->txn,
                                       .after = first->after};
        tutti__store_server_send(server, server->view.slots[s].leader, &message);
    }
}

static void apply_operation(tutti_store_server *server, tutti_store_server_slot *at,
                            const tutti_store_message *op, uint32_t answer_to)
{
    tutti_store_message answer;
    tutti_store_shard *shard = tutti__store_slot_shard(at->slot, op->shard);
    tutti__store_slot_apply(at->slot, op, &answer);
    if (op->type == TUTTI_STORE_PUSH)
        tutti__store_order_happen(server->options.order,
                                  (tutti_store_event){op->shard, op->contribution, true, op->step});
    if (shard)
        tutti__store_distances_note(&server->distances, shard);
    if (answer_to != TUTTI_STORE_NOBODY && answer.type != 0) {
        tutti_store_message to = *op;
        to.node = answer_to;
        tutti__store_server_answer(server, &to, &answer);
    }
    if (op->type == TUTTI_STORE_COMMIT || op->type == TUTTI_STORE_DECIDED ||
        op->type == TUTTI_STORE_MEMBERS)
        send_decisions(server, at);
}

static void apply_one(tutti_store_server *server, tutti_store_server_slot *at,
                      tutti_store_server_logged *logged)
{
    tutti_store_message op;
    size_t used;
    if (tutti__store_message_read(logged->frame, logged->size, &op, &used) == TUTTI_OK)
        apply_operation(server, at, &op, logged->node);
    free(logged->frame);
}

void tutti__store_server_apply(tutti_store_server *server, tutti_store_server_slot *at,
                               uint64_t upto)
{
    size_t done = 0;
    while (done < at->log.count && at->log.data[done].number <= upto)
        apply_one(server, at, &at->log.data[done++]);
    at->log.count -= done;
    if (done == 0)
        return;
    memmove(at->log.data, at->log.data + done, at->log.count * sizeof *at->log.data);
    tutti__store_server_wake(server, at);
}

void tutti__store_server_append(tutti_store_server *server, tutti_store_server_slot *at,
                                const tutti_store_message *op, uint32_t answer_to)
{
    if (at->replica == TUTTI_STORE_NOBODY && at->log.count == 0) { /* nobody has to confirm it */
        at->logged++;
        apply_operation(server, at, op, answer_to);
        tutti__store_server_wake(server, at);
        return;
    }
    tutti_store_server_logged logged = {
        .number = at->logged + 1, .size = tutti__store_message_size(op), .node = answer_to};
    logged.frame = malloc(logged.size);
    if (logged.frame)
        tutti__store_message_write(op, logged.frame);
    if (!logged.frame || !TUTTI_VEC_PUSH(&at->log, logged)) {
        free(logged.frame); /* as if it had not come; it comes again */
        return;
    }
    at->logged++;
    if (at->replica == TUTTI_STORE_NOBODY)
        tutti__store_server_apply(server, at, at->logged);
    else
        tutti__store_server_replicate(server, at, at->log.count - 1);
}

/* ---- what comes ---- */

/* Slot 0 says what was decided, in order; a thing that came before is confirmed at once. */
static void serve_decision(tutti_store_server *server, tutti_store_server_slot *at,
                           const tutti_store_message *m)
{
    if (m->after <= at->slot->decided) {
        tutti_store_message answer = {.type = TUTTI_STORE_DECIDED, .after = at->slot->decided};
        tutti__store_server_answer(server, m, &answer);
    } else if (m->after == at->slot->decided + 1 && !tutti__store_server_is_logged(at, m)) {
        tutti__store_server_append(server, at, m, m->node);
    }
}

/* The leader of a slot confirms what slot 0 said to it. */
static void serve_confirmation(tutti_store_server *server, const tutti_store_message *m)
{
    tutti_store_server_slot *zero = server->slots.count > 0 ? &server->slots.data[0] : NULL;
    tutti_store_message op = *m;
    if (!zero || !zero->leads || m->slot >= zero->slot->streams.count)
        return;
    const tutti_store_stream *stream = &zero->slot->streams.data[m->slot];
    op.shard = m->slot;
    op.slot = 0;
    if (stream->waiting.count > 0 && stream->waiting.data[0].after <= m->after &&
        !tutti__store_server_is_logged(zero, &op))
        tutti__store_server_append(server, zero, &op, TUTTI_STORE_NOBODY);
}

static bool is_request(uint32_t type)
{
    return type == TUTTI_STORE_CREATE || type == TUTTI_STORE_PULL || type == TUTTI_STORE_PUSH ||
           type == TUTTI_STORE_PREPARE || type == TUTTI_STORE_COMMIT ||
           type == TUTTI_STORE_NUMBER || type == TUTTI_STORE_FINISH || type == TUTTI_STORE_GET ||
           type == TUTTI_STORE_PUT;
}

/* A message of this view, by a process that it has. */
static bool is_current(tutti_store_server *server, const tutti_store_message *m)
{
    const tutti_store_process *process = tutti__store_view_find(&server->view, m->node);
    if (m->view > server->view.number) /* which this server will hear of, too */
        return false;
    if (m->view < server->view.number) {
        tutti_fail(TUTTI_INVALID, "the message is of view %" PRIu64 ", the present one is %" PRIu64,
                   m->view, server->view.number);
        if (is_request(m->type))
            tutti__store_server_refuse(server, m, TUTTI_STORE_OLD_VIEW);
        return false;
    }
    if (process && process->incarnation == m->incarnation)
        return true;
    tutti_fail(TUTTI_INVALID,
               "node %" PRIu32 " (incarnation %" PRIu32 ") was given up%s; what it says no longer "
               "counts",
               m->node, m->incarnation, process ? " and another process has taken its place" : "");
    if (is_request(m->type))
        tutti__store_server_refuse(server, m, TUTTI_STORE_FENCED);
    return false;
}

void tutti__store_server_receive(tutti_store_server *server, const uint8_t *frame, size_t size,
                                 int64_t now_ns)
{
    tutti_store_message m;
    size_t used = 0;
    TUTTI_UNUSED(now_ns);
    if (tutti__store_message_read(frame, size, &m, &used) != TUTTI_OK || used != size) {
        server->garbage++;
        return;
    }
    if (!is_current(server, &m) || m.slot >= server->slots.count)
        return;
    tutti_store_server_slot *at = &server->slots.data[m.slot];
    if (m.type == TUTTI_STORE_DECIDED) {
        serve_confirmation(server, &m);
    } else if (m.type == TUTTI_STORE_DECIDE) {
        if (at->leads)
            serve_decision(server, at, &m);
    } else if (!is_request(m.type)) {
        tutti__store_server_replica_message(server, at, &m);
    } else if (at->leads) {
        tutti__store_server_request(server, at, &m);
    } else {
        tutti_fail(TUTTI_INVALID, "server %" PRIu32 " does not lead slot %" PRIu32 "%s",
                   server->options.node, m.slot,
                   server->view.slots[m.slot].leader == server->options.node
                       ? ": what it held was lost; restore a checkpoint"
                       : "");
        tutti__store_server_refuse(server, &m, TUTTI_STORE_ELSEWHERE);
    }
}

void tutti__store_server_tick(tutti_store_server *server, int64_t now_ns)
{
    if (now_ns - server->sent_ns < server->options.retry_ns)
        return;
    server->sent_ns = now_ns;
    for (size_t s = 0; s < server->slots.count; s++) {
        tutti_store_server_slot *at = &server->slots.data[s];
        if (!at->leads)
            continue;
        if (at->replica != TUTTI_STORE_NOBODY && !at->replica_ready)
            tutti__store_server_send_piece(server, at);
        tutti__store_server_replicate(server, at, 0);
        send_decisions(server, at);
    }
}

bool tutti__store_server_complete(const tutti_store_server *server, uint32_t slot)
{
    return slot < server->slots.count && server->slots.data[slot].slot &&
           server->slots.data[slot].complete;
}

tutti_store_slot *tutti__store_server_slot(const tutti_store_server *server, uint32_t slot)
{
    return slot < server->slots.count ? server->slots.data[slot].slot : NULL;
}

int64_t tutti__store_server_bytes(const tutti_store_server *server)
{
    int64_t bytes = 0;
    for (size_t s = 0; s < server->slots.count; s++) {
        const tutti_store_server_slot *at = &server->slots.data[s];
        bytes += at->slot ? tutti__store_slot_bytes(at->slot) : 0;
        for (size_t i = 0; i < at->log.count; i++)
            bytes += (int64_t)at->log.data[i].size;
    }
    return bytes;
}

bool tutti__store_server_is_idle(const tutti_store_server *server)
{
    for (size_t s = 0; s < server->slots.count; s++) {
        const tutti_store_server_slot *at = &server->slots.data[s];
        bool busy = at->leads && (at->log.count > 0 ||
                                  (at->replica != TUTTI_STORE_NOBODY && !at->replica_ready));
        for (size_t i = 0; at->leads && i < at->slot->streams.count; i++)
            busy = busy || at->slot->streams.data[i].waiting.count > 0;
        if (busy)
            return false;
    }
    return true;
}

uint64_t tutti__store_server_garbage(const tutti_store_server *server)
{
    return server->garbage;
}

void tutti__store_server_print(const tutti_store_server *server, tutti_text *text)
{
    for (size_t s = 0; s < server->slots.count; s++) {
        const tutti_store_server_slot *at = &server->slots.data[s];
        if (!at->slot && !at->leads)
            continue;
        tutti__text_add(text, "slot %zu: %s%s, %" PRIu64 " operations, %zu in the log, %zu parked",
                        s, at->leads ? "leader" : "replica", at->complete ? "" : " (not complete)",
                        at->slot->applied, at->log.count, at->parked.count);
        if (at->leads && at->replica != TUTTI_STORE_NOBODY)
            tutti__text_add(
                text, ", replica %" PRIu32 "%s (piece %" PRIu64 " of %zu bytes at %" PRIu64 ")",
                at->replica, at->replica_ready ? "" : " not ready", at->piece, at->snapshot.size,
                at->snapshot_at);
        for (size_t i = 0; at->leads && i < at->slot->streams.count; i++)
            if (at->slot->streams.data[i].waiting.count > 0)
                tutti__text_add(text, ", %zu decisions for slot %zu",
                                at->slot->streams.data[i].waiting.count, i);
        tutti__text_add(text, "\n");
    }
}

void tutti__store_server_staleness(const tutti_store_server *server, tutti_store_staleness *ret)
{
    *ret = (tutti_store_staleness){0};
    for (size_t s = 0; s < server->slots.count; s++) {
        const tutti_store_server_slot *at = &server->slots.data[s];
        for (size_t i = 0; at->leads && i < at->slot->shards.count; i++)
            tutti__store_staleness_join(ret, &at->slot->shards.data[i]->staleness);
    }
}
