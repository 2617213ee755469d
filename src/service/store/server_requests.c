/* server_requests.c: what workers ask of a slot that this server leads, and what has to wait. */
#include <inttypes.h>
#include <stdlib.h>

#include "service/store/server_inside.h"

bool tutti__store_server_is_logged(const tutti_store_server_slot *at, const tutti_store_message *m)
{
    for (size_t i = 0; i < at->log.count; i++) {
        tutti_store_message op;
        size_t used;
        if (tutti__store_message_read(at->log.data[i].frame, at->log.data[i].size, &op, &used) !=
                TUTTI_OK ||
            op.type != m->type)
            continue;
        bool closure = (m->step & TUTTI_STORE_CLOSURE) != 0; /* from any worker */
        bool key = op.shard == m->shard && op.step == m->step && op.number == m->number &&
                   (closure || op.contribution == m->contribution) && op.after == m->after;
        bool keyed = m->type == TUTTI_STORE_PUSH || m->type == TUTTI_STORE_PREPARE ||
                     m->type == TUTTI_STORE_COMMIT || m->type == TUTTI_STORE_DECIDE ||
                     m->type == TUTTI_STORE_DECIDED;
        if (keyed ? key : op.node == m->node && op.request == m->request)
            return true;
    }
    return false;
}

/* ---- waiting ---- */

static void park(tutti_store_server_slot *at, const tutti_store_message *m)
{
    tutti_store_server_parked parked = {
        .node = m->node, .type = m->type, .shard = m->shard, .request = m->request};
    size_t i = 0;
    for (; i < at->parked.count; i++) {
        const tutti_store_server_parked *p = &at->parked.data[i];
        if (p->node == m->node && p->type == m->type && p->shard == m->shard)
            break;
    }
    bool there = i < at->parked.count;
    if (there && at->parked.data[i].request >= m->request)
        return;
    parked.size = tutti__store_message_size(m);
    parked.frame = malloc(parked.size);
    if (!parked.frame) /* it comes again */
        return;
    tutti__store_message_write(m, parked.frame);
    if (there) {
        free(at->parked.data[i].frame);
        at->parked.data[i] = parked;
    } else if (!TUTTI_VEC_PUSH(&at->parked, parked)) {
        free(parked.frame);
    }
}

/* Every parked message is looked at again; one that still has to wait parks itself anew. */
void tutti__store_server_wake(tutti_store_server *server, tutti_store_server_slot *at)
{
    if (server->waking)
        return;
    server->waking = true;
    for (bool moved = true; moved;) {
        size_t count = at->parked.count;
        uint64_t applied = at->slot->applied;
        for (size_t i = 0; i < count; i++) {
            tutti_store_server_parked parked = at->parked.data[0];
            tutti_store_message m;
            size_t used;
            at->parked.count--;
            memmove(at->parked.data, at->parked.data + 1,
                    at->parked.count * sizeof *at->parked.data);
            if (tutti__store_message_read(parked.frame, parked.size, &m, &used) == TUTTI_OK)
                tutti__store_server_request(server, at, &m);
            free(parked.frame);
        }
        moved = applied != at->slot->applied || at->parked.count < count;
    }
    server->waking = false;
}

/* ---- requests ---- */

/* Whether a push of the reader's is still to be confirmed by the replica: it reads behind its own
 * writes. */
static bool has_pushed(const tutti_store_server_slot *at, const tutti_store_message *m)
{
    for (size_t i = 0; i < at->log.count; i++) {
        tutti_store_message op;
        size_t used;
        if (tutti__store_message_read(at->log.data[i].frame, at->log.data[i].size, &op, &used) ==
                TUTTI_OK &&
            op.type == TUTTI_STORE_PUSH && op.shard == m->shard &&
            op.contribution == m->contribution)
            return true;
    }
    return false;
}

static void serve_pull(tutti_store_server *server, tutti_store_server_slot *at,
                       const tutti_store_message *m)
{
    tutti_store_shard *shard = tutti__store_slot_shard(at->slot, m->shard);
    tutti_store_event event = {m->shard, m->contribution, false, m->clock};
    tutti_tensor *value = NULL;
    tutti_store_message answer = {.type = TUTTI_STORE_PULLED, .number = m->number, .form = m->form};
    if (!shard) {
        tutti_fail(TUTTI_NOT_FOUND, "slot %" PRIu32 " has no shard %" PRIu32, m->slot, m->shard);
        tutti__store_server_refuse(server, m, TUTTI_STORE_UNKNOWN);
        return;
    }
    uint64_t own = tutti__policy_clock(&shard->policy, m->contribution); /* if it began anew */
    if (at->slot->view != server->view.number || at->slot->decided < m->after ||
        has_pushed(at, m) ||
        !tutti__policy_may_read(&shard->policy, own > m->clock ? own : m->clock) ||
        !tutti__store_order_may(server->options.order, event)) {
        park(at, m);
        return;
    }
    if (tutti__store_shard_read(shard, m, &value, &answer.version) != TUTTI_OK) {
        tutti__store_server_refuse(server, m, m->number > 0 ? TUTTI_STORE_GONE : TUTTI_STORE_SHAPE);
        return;
    }
    tutti__store_order_happen(server->options.order, event);
    tutti__store_distances_read(&server->distances, shard, m->contribution, value);
    answer.clock = tutti__policy_clock(&shard->policy, m->contribution);
    answer.data =
        (tutti_packed_data){tutti_tensor_data(value), (size_t)tutti_tensor_count(value) *
                                                          tutti_dtype_size(shard->type.dtype)};
    tutti__store_server_answer(server, m, &answer);
    tutti_tensor_release(value);
    if (server->options.order && server->options.order->replays)
        tutti__store_server_wake(server, at);
}

/* Everything that a shard has: as a pull, of whoever saves it. */
static void serve_get(tutti_store_server *server, tutti_store_server_slot *at,
                      const tutti_store_message *m)
{
    tutti_store_shard *shard = tutti__store_slot_shard(at->slot, m->shard);
    tutti_store_message answer = {.type = TUTTI_STORE_GOT};
    tutti_store_event event = {m->shard, m->contribution, false, m->clock};
    tutti_text text = {0};
    if (!shard || !shard->rule->kind->get) {
        tutti_fail(TUTTI_NOT_FOUND, "slot %" PRIu32 " has no shard %" PRIu32 " that can be read so",
                   m->slot, m->shard);
        tutti__store_server_refuse(server, m, TUTTI_STORE_UNKNOWN);
        return;
    }
    uint64_t own = tutti__policy_clock(&shard->policy, m->contribution);
    if (at->slot->view != server->view.number || has_pushed(at, m) ||
        !tutti__policy_may_read(&shard->policy, own > m->clock ? own : m->clock) ||
        !tutti__store_order_may(server->options.order, event)) {
        park(at, m);
        return;
    }
    if (shard->rule->kind->get(shard->rule, &text) == TUTTI_OK) {
        tutti__store_order_happen(server->options.order, event);
        answer.clock = own;
        answer.version = shard->policy.version;
        answer.data = (tutti_packed_data){(const uint8_t *)text.data, text.size};
        tutti__store_server_answer(server, m, &answer);
    } else {
        tutti__store_server_refuse(server, m, TUTTI_STORE_RULE);
    }
    tutti__text_free(&text);
    if (server->options.order && server->options.order->replays)
        tutti__store_server_wake(server, at);
}

/* FULL in words, where the message would take the server over its limit. */
static bool is_full(tutti_store_server *server, const tutti_store_message *m)
{
    int64_t limit = server->options.limit;
    int64_t more = (int64_t)(m->data.size + m->rows.size + m->graph.size);
    int64_t used = limit > 0 ? tutti__store_server_bytes(server) : 0;
    if (limit <= 0 || used + more <= limit)
        return false;
    tutti_fail(TUTTI_TOO_LARGE,
               "server %" PRIu32 " is full: it holds %" PRId64 " of %" PRId64
               " bytes, and a %s of shard %" PRIu32 " takes %" PRId64
               " more; start more servers or give this one a higher limit",
               server->options.node, used, limit, tutti__store_type_text(m->type), m->shard, more);
    return true;
}

/* What can be said of a push before it is logged. True: it was answered, or has to wait. */
static bool push_is_settled(tutti_store_server *server, tutti_store_server_slot *at,
                            tutti_store_message *m)
{
    tutti_store_shard *shard = tutti__store_slot_shard(at->slot, m->shard);
    tutti_store_reason reason = shard ? tutti__store_shard_check(shard, m) : TUTTI_STORE_UNKNOWN;
    if (!shard)
        tutti_fail(TUTTI_NOT_FOUND, "slot %" PRIu32 " has no shard %" PRIu32, m->slot, m->shard);
    if (reason != TUTTI_STORE_NO_REASON) {
        tutti__store_server_refuse(server, m, reason);
        return true;
    }
    if (m->type == TUTTI_STORE_PUSH &&
        !tutti__store_order_may(server->options.order,
                                (tutti_store_event){m->shard, m->contribution, true, m->step})) {
        park(at, m);
        return true;
    }
    m->factor = shard->rate == TUTTI_STORE_RATE_DISTANCE
                    ? tutti__store_distances_factor(&server->distances, shard, m->contribution)
                    : 1;
    return false;
}

/* A request for a slot that this server leads. */
void tutti__store_server_request(tutti_store_server *server, tutti_store_server_slot *at,
                                 const tutti_store_message *m)
{
    tutti_store_message answer = {0}, op = *m;
    bool push = m->type == TUTTI_STORE_PUSH || m->type == TUTTI_STORE_PREPARE;
    if (m->type == TUTTI_STORE_PULL) {
        serve_pull(server, at, m);
        return;
    }
    if (m->type == TUTTI_STORE_GET) {
        serve_get(server, at, m);
        return;
    }
    if (m->type == TUTTI_STORE_NUMBER && at->slot->view != server->view.number) {
        park(at, m); /* what earlier views began is not applied yet */
        return;
    }
    if (m->type == TUTTI_STORE_NUMBER) {
        uint8_t *room = malloc(8 * at->slot->streams.count + 1);
        if (!room)
            return;
        tutti__store_slot_number(at->slot, room, &answer);
        tutti__store_server_answer(server, m, &answer);
        free(room);
        return;
    }
    if (tutti__store_slot_knows(at->slot, m, &answer)) {
        tutti__store_server_answer(server, m, &answer);
        return;
    }
    for (size_t i = 0; m->type == TUTTI_STORE_COMMIT && i < tutti__store_row_count(m); i++)
        if (tutti__store_row(m, i) < 0 ||
            (size_t)tutti__store_row(m, i) >= server->view.slot_count) {
            tutti_fail(TUTTI_OUT_OF_RANGE, "an atomic push over slot %" PRId64 " of %zu",
                       tutti__store_row(m, i), server->view.slot_count);
            tutti__store_server_refuse(server, m, TUTTI_STORE_UNKNOWN);
            return;
        }
    if (tutti__store_server_is_logged(at, m) || (push && push_is_settled(server, at, &op)))
        return;
    if ((push || m->type == TUTTI_STORE_CREATE) && is_full(server, m)) {
        tutti__store_server_refuse(server, m, TUTTI_STORE_FULL);
        return;
    }
    tutti__store_server_append(server, at, &op, m->node);
}
