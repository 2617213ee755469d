/* slot.c: operations of a slot, one function each. */
#include "service/store/slot.h"

#include <inttypes.h>
#include <stdlib.h>

#include "service/store/transport.h"

tutti_status tutti__store_slot_create(uint32_t number, tutti_store_find_rule *find,
                                      tutti_store_slot **ret_slot)
{
    tutti_store_slot *slot = calloc(1, sizeof *slot);
    if (!slot)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a slot");
    slot->number = number;
    slot->find = find;
    *ret_slot = slot;
    return TUTTI_OK;
}

void tutti__store_slot_free(tutti_store_slot *slot)
{
    if (!slot)
        return;
    for (size_t i = 0; i < slot->shards.count; i++)
        tutti__store_shard_free(slot->shards.data[i]);
    for (size_t i = 0; i < slot->streams.count; i++)
        TUTTI_VEC_FREE(&slot->streams.data[i].waiting);
    TUTTI_VEC_FREE(&slot->shards);
    TUTTI_VEC_FREE(&slot->members);
    TUTTI_VEC_FREE(&slot->streams);
    TUTTI_VEC_FREE(&slot->committed);
    free(slot);
}

tutti_store_shard *tutti__store_slot_shard(const tutti_store_slot *slot, uint32_t id)
{
    for (size_t i = 0; i < slot->shards.count; i++)
        if (slot->shards.data[i]->id == id)
            return slot->shards.data[i];
    return NULL;
}

int64_t tutti__store_slot_bytes(const tutti_store_slot *slot)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < slot->shards.count; i++)
        bytes += tutti__store_shard_bytes(slot->shards.data[i]);
    return bytes;
}

static tutti_store_shard *shard_of(const tutti_store_slot *slot, const tutti_store_message *op,
                                   tutti_store_message *answer)
{
    tutti_store_shard *shard = tutti__store_slot_shard(slot, op->shard);
    if (shard)
        return shard;
    tutti_fail(TUTTI_NOT_FOUND, "slot %" PRIu32 " has no shard %" PRIu32, slot->number, op->shard);
    tutti__store_refusal(TUTTI_STORE_UNKNOWN, answer);
    return NULL;
}

static void answer_outcome(const tutti_store_shard *shard, const tutti_store_message *op,
                           uint32_t type, uint32_t verdict, tutti_store_message *answer)
{
    answer->type = type;
    answer->verdict = verdict;
    answer->step = op->step;
    answer->contribution = op->contribution;
    answer->number = op->number;
    answer->version = shard->policy.version;
    answer->clock = tutti__policy_clock(&shard->policy, op->contribution);
}

static int64_t members_list(const tutti_store_slot *slot, uint32_t *list)
{
    int64_t count = 0;
    for (size_t i = 0; i < slot->members.count; i++)
        if (slot->members.data[i].contribution < TUTTI_STORE_OBSERVER)
            list[count++] = slot->members.data[i].contribution;
    return count;
}

static tutti_status shard_tell_members(const tutti_store_slot *slot, tutti_store_shard *shard)
{
    uint32_t *list = malloc((slot->members.count + 1) * sizeof *list);
    if (!list)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %zu workers", slot->members.count);
    tutti_status status = tutti__store_shard_members(shard, members_list(slot, list), list);
    free(list);
    return status;
}

static void apply_create(tutti_store_slot *slot, const tutti_store_message *op,
                         tutti_store_message *answer)
{
    tutti_store_shard *shard = tutti__store_slot_shard(slot, op->shard);
    if (shard && tutti__store_shard_same(shard, op) != TUTTI_OK) {
        tutti__store_refusal(TUTTI_STORE_DIFFERS, answer);
        return;
    }
    if (!shard) {
        tutti_status status = tutti__store_shard_create(op, slot->find, &shard);
        if (status == TUTTI_OK && slot->members.count > 0)
            status = shard_tell_members(slot, shard);
        if (status == TUTTI_OK && !TUTTI_VEC_PUSH(&slot->shards, shard))
            status = tutti_fail(TUTTI_NO_MEMORY, "no memory for one more shard");
        if (status != TUTTI_OK) {
            tutti__store_refusal(status == TUTTI_NO_MEMORY ? TUTTI_STORE_FULL : TUTTI_STORE_SHAPE,
                                 answer);
            tutti__store_shard_free(shard);
            return;
        }
    }
    answer->type = TUTTI_STORE_CREATED;
    answer->version = shard->policy.version;
    answer->clock = shard->policy.version;
}

static void apply_push(tutti_store_slot *slot, const tutti_store_message *op,
                       tutti_store_message *answer)
{
    tutti_store_shard *shard = shard_of(slot, op, answer);
    uint32_t verdict = TUTTI_STORE_NO_VERDICT;
    if (!shard)
        return;
    if (tutti__store_shard_push(shard, op, &verdict) == TUTTI_OK)
        answer_outcome(shard, op, TUTTI_STORE_PUSHED, verdict, answer);
    else
        tutti__store_refusal(TUTTI_STORE_RULE, answer);
}

static void apply_prepare(tutti_store_slot *slot, const tutti_store_message *op,
                          tutti_store_message *answer)
{
    tutti_store_shard *shard = shard_of(slot, op, answer);
    if (!shard)
        return;
    if (tutti__store_shard_prepare(shard, op) == TUTTI_OK)
        answer_outcome(shard, op, TUTTI_STORE_PREPARED, TUTTI_STORE_NO_VERDICT, answer);
    else
        tutti__store_refusal(TUTTI_STORE_FULL, answer);
}

/* ---- what slot 0 decides ---- */

static bool stream_add(tutti_store_slot *slot, size_t to, tutti_store_decision decision)
{
    while (slot->streams.count <= to)
        if (!TUTTI_VEC_PUSH(&slot->streams, (tutti_store_stream){0}))
            return false;
    tutti_store_stream *stream = &slot->streams.data[to];
    decision.after = stream->last + 1;
    if (!TUTTI_VEC_PUSH(&stream->waiting, decision))
        return false;
    stream->last++;
    return true;
}

static tutti_store_committed *committed_of(tutti_store_slot *slot, uint32_t contribution)
{
    for (size_t i = 0; i < slot->committed.count; i++)
        if (slot->committed.data[i].contribution == contribution)
            return &slot->committed.data[i];
    return NULL;
}

/* The entry of a contribution, made where there is none; NULL for lack of memory. */
static tutti_store_committed *committed_entry(tutti_store_slot *slot, uint32_t contribution)
{
    tutti_store_committed *last = committed_of(slot, contribution);
    if (!last &&
        TUTTI_VEC_PUSH(&slot->committed, ((tutti_store_committed){.contribution = contribution})))
        last = &slot->committed.data[slot->committed.count - 1];
    return last;
}

/* Numbers of puts rise, also over the processes of one worker: one that comes again is known. */
static void apply_put(tutti_store_slot *slot, const tutti_store_message *op,
                      tutti_store_message *answer)
{
    tutti_store_shard *shard = shard_of(slot, op, answer);
    saved_reader in = {op->data.bytes, op->data.bytes + op->data.size, false};
    tutti_store_committed *last = shard ? committed_entry(slot, op->contribution) : NULL;
    tutti_status status = TUTTI_OK;
    if (!shard)
        return;
    if (!last)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory to put values");
    else if (!shard->rule->kind->put)
        status =
            tutti_fail(TUTTI_UNSUPPORTED, "shard '%s' takes no values by name", shard->spec.text);
    else if (op->number > last->put)
        status = shard->rule->kind->put(shard->rule, &in);
    if (status != TUTTI_OK) {
        tutti__store_refusal(TUTTI_STORE_SHAPE, answer);
        return;
    }
    last->put = op->number > last->put ? op->number : last->put;
    answer->type = TUTTI_STORE_PUT_DONE;
    answer->number = op->number;
    answer->version = shard->policy.version;
}

static void apply_commit(tutti_store_slot *slot, const tutti_store_message *op,
                         tutti_store_message *answer)
{
    tutti_store_committed *last = committed_entry(slot, op->contribution);
    bool good = true;
    if (last && op->number > last->txn) {
        last->txn = op->number;
        last->number = ++slot->atomic;
        for (size_t i = 0; good && i < tutti__store_row_count(op); i++)
            good = stream_add(slot, (size_t)tutti__store_row(op, i),
                              (tutti_store_decision){.number = slot->atomic,
                                                     .txn = op->number,
                                                     .contribution = op->contribution});
    }
    if (!last || !good) {
        tutti_fail(TUTTI_NO_MEMORY, "no memory to commit an atomic push");
        tutti__store_refusal(TUTTI_STORE_FULL, answer);
        return;
    }
    answer->type = TUTTI_STORE_COMMITTED;
    answer->contribution = op->contribution;
    answer->number = op->number;
    answer->version = last->number;
}

/* Nothing more comes of what a process that is gone has prepared: said behind its commits. */
static bool streams_tell_gone(tutti_store_slot *slot, const tutti_store_message *op)
{
    size_t slots = (size_t)tutti__store_row(op, 0);
    bool good = true;
    for (size_t m = 0; m < slot->members.count; m++) {
        const tutti_store_member *old = &slot->members.data[m];
        bool there = false;
        for (size_t i = 1; i + 1 < tutti__store_row_count(op); i += 2)
            there = there || (tutti__store_row(op, i) == old->contribution &&
                              tutti__store_row(op, i + 1) == old->incarnation);
        for (size_t s = 0; !there && s < slots; s++)
            good = stream_add(slot, s,
                              (tutti_store_decision){.contribution = old->contribution,
                                                     .incarnation = old->incarnation}) &&
                   good;
    }
    return good;
}

static void apply_members(tutti_store_slot *slot, const tutti_store_message *op,
                          tutti_store_message *answer)
{
    bool good = true;
    if (op->view <= slot->view)
        return;
    if (slot->number == 0)
        good = streams_tell_gone(slot, op);
    slot->view = op->view;
    slot->members.count = 0;
    for (size_t i = 1; i + 1 < tutti__store_row_count(op); i += 2) {
        tutti_store_member member = {(uint32_t)tutti__store_row(op, i),
                                     (uint32_t)tutti__store_row(op, i + 1)};
        good = TUTTI_VEC_PUSH(&slot->members, member) && good;
    }
    for (size_t i = 0; i < slot->shards.count; i++)
        good = shard_tell_members(slot, slot->shards.data[i]) == TUTTI_OK && good;
    if (!good)
        tutti__store_refusal(TUTTI_STORE_RULE, answer);
}

/* ---- what others are told ---- */

static void apply_decide(tutti_store_slot *slot, const tutti_store_message *op,
                         tutti_store_message *answer)
{
    answer->type = TUTTI_STORE_DECIDED;
    if (op->after == slot->decided + 1) {
        slot->decided = op->after;
        for (size_t i = 0; i < slot->shards.count; i++) {
            tutti_store_shard *shard = slot->shards.data[i];
            if (op->number == 0)
                tutti__store_shard_abort(shard, op->contribution, (uint32_t)op->clock);
            else
                tutti__store_shard_commit(shard, op->version, op->contribution, op->number);
        }
    }
    answer->after = slot->decided;
}

/* A slot (in `shard`) has come so far in its stream. */
static void apply_decided(tutti_store_slot *slot, const tutti_store_message *op,
                          tutti_store_message *answer)
{
    TUTTI_UNUSED(answer);
    if (op->shard >= slot->streams.count)
        return;
    tutti_store_stream *stream = &slot->streams.data[op->shard];
    size_t gone = 0;
    while (gone < stream->waiting.count && stream->waiting.data[gone].after <= op->after)
        gone++;
    stream->waiting.count -= gone;
    if (gone > 0)
        memmove(stream->waiting.data, stream->waiting.data + gone,
                stream->waiting.count * sizeof *stream->waiting.data);
}

static void apply_finish(tutti_store_slot *slot, const tutti_store_message *op,
                         tutti_store_message *answer)
{
    for (size_t i = 0; i < slot->shards.count; i++)
        tutti__store_shard_finish(slot->shards.data[i], op->step);
    answer->type = TUTTI_STORE_FINISHED;
    answer->step = op->step;
}

typedef void slot_operation(tutti_store_slot *slot, const tutti_store_message *op,
                            tutti_store_message *answer);

void tutti__store_slot_apply(tutti_store_slot *slot, const tutti_store_message *op,
                             tutti_store_message *ret_answer)
{
    static slot_operation *const operations[TUTTI_STORE_TYPES] = {
        [TUTTI_STORE_CREATE] = apply_create,   [TUTTI_STORE_PUSH] = apply_push,
        [TUTTI_STORE_PREPARE] = apply_prepare, [TUTTI_STORE_COMMIT] = apply_commit,
        [TUTTI_STORE_MEMBERS] = apply_members, [TUTTI_STORE_DECIDE] = apply_decide,
        [TUTTI_STORE_DECIDED] = apply_decided, [TUTTI_STORE_FINISH] = apply_finish,
        [TUTTI_STORE_PUT] = apply_put,
    };
    memset(ret_answer, 0, sizeof *ret_answer);
    ret_answer->request = op->request;
    ret_answer->slot = slot->number;
    ret_answer->shard = op->shard;
    slot->applied++;
    if (op->type < TUTTI_STORE_TYPES && operations[op->type])
        operations[op->type](slot, op, ret_answer);
}

bool tutti__store_slot_knows(const tutti_store_slot *slot, const tutti_store_message *op,
                             tutti_store_message *ret_answer)
{
    const tutti_store_shard *shard = tutti__store_slot_shard(slot, op->shard);
    bool push = op->type == TUTTI_STORE_PUSH || op->type == TUTTI_STORE_PREPARE;
    uint32_t verdict;
    if (!push || !shard || !tutti__store_shard_knows(shard, op->step, op->contribution, &verdict))
        return false;
    memset(ret_answer, 0, sizeof *ret_answer);
    ret_answer->request = op->request;
    ret_answer->slot = slot->number;
    ret_answer->shard = op->shard;
    answer_outcome(shard, op,
                   op->type == TUTTI_STORE_PUSH ? TUTTI_STORE_PUSHED : TUTTI_STORE_PREPARED,
                   verdict, ret_answer);
    return true;
}

void tutti__store_slot_number(const tutti_store_slot *slot, uint8_t *room,
                              tutti_store_message *ret_answer)
{
    for (size_t i = 0; i < slot->streams.count; i++)
        tutti__packed_put(slot->streams.data[i].last, 8, room + 8 * i);
    ret_answer->type = TUTTI_STORE_NUMBERED;
    ret_answer->version = slot->atomic;
    ret_answer->rows = (tutti_packed_data){room, 8 * slot->streams.count};
}
