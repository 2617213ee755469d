/* slot_save.c: a slot to bytes and back: for a new replica, for checkpoints, and to compare two. */
#include <stdlib.h>

#include "service/store/slot.h"

static void save_decisions(const tutti_store_slot *slot, tutti_text *out)
{
    saved_put(out, slot->streams.count);
    for (size_t i = 0; i < slot->streams.count; i++) {
        const tutti_store_stream *stream = &slot->streams.data[i];
        saved_put(out, stream->last);
        saved_put(out, stream->waiting.count);
        for (size_t d = 0; d < stream->waiting.count; d++) {
            const tutti_store_decision *decision = &stream->waiting.data[d];
            saved_put(out, decision->after);
            saved_put(out, decision->number);
            saved_put(out, decision->txn);
            saved_put(out, decision->contribution);
            saved_put(out, decision->incarnation);
        }
    }
    saved_put(out, slot->committed.count);
    for (size_t i = 0; i < slot->committed.count; i++) {
        saved_put(out, slot->committed.data[i].contribution);
        saved_put(out, slot->committed.data[i].txn);
        saved_put(out, slot->committed.data[i].number);
        saved_put(out, slot->committed.data[i].put);
    }
}

tutti_status tutti__store_slot_save(const tutti_store_slot *slot, tutti_text *out)
{
    saved_put(out, slot->number);
    saved_put(out, slot->applied);
    saved_put(out, slot->view);
    saved_put(out, slot->decided);
    saved_put(out, slot->atomic);
    saved_put(out, slot->members.count);
    for (size_t i = 0; i < slot->members.count; i++) {
        saved_put(out, slot->members.data[i].contribution);
        saved_put(out, slot->members.data[i].incarnation);
    }
    save_decisions(slot, out);
    saved_put(out, slot->shards.count);
    for (size_t i = 0; i < slot->shards.count; i++)
        TUTTI_TRY(tutti__store_shard_save(slot->shards.data[i], out));
    return out->failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory to save a slot") : TUTTI_OK;
}

/* False for lack of memory. */
static bool load_decisions(saved_reader *in, tutti_store_slot *slot)
{
    size_t count = saved_get_count(in, 16);
    for (size_t i = 0; i < count; i++) {
        if (!TUTTI_VEC_PUSH(&slot->streams, (tutti_store_stream){0}))
            return false;
        tutti_store_stream *stream = &slot->streams.data[i];
        stream->last = saved_get(in);
        size_t waiting = saved_get_count(in, 40);
        for (size_t d = 0; d < waiting; d++) {
            tutti_store_decision decision = {.after = saved_get(in)};
            decision.number = saved_get(in);
            decision.txn = saved_get(in);
            decision.contribution = (uint32_t)saved_get(in);
            decision.incarnation = (uint32_t)saved_get(in);
            if (!TUTTI_VEC_PUSH(&stream->waiting, decision))
                return false;
        }
    }
    count = saved_get_count(in, 32);
    for (size_t i = 0; i < count; i++) {
        tutti_store_committed each = {.contribution = (uint32_t)saved_get(in)};
        each.txn = saved_get(in);
        each.number = saved_get(in);
        each.put = saved_get(in);
        if (!TUTTI_VEC_PUSH(&slot->committed, each))
            return false;
    }
    return true;
}

static tutti_status slot_load_all(saved_reader *in, tutti_store_slot *slot)
{
    bool good = true;
    slot->applied = saved_get(in);
    slot->view = saved_get(in);
    slot->decided = saved_get(in);
    slot->atomic = saved_get(in);
    size_t count = saved_get_count(in, 16);
    for (size_t i = 0; i < count && good; i++) {
        tutti_store_member member = {.contribution = (uint32_t)saved_get(in)};
        member.incarnation = (uint32_t)saved_get(in);
        good = TUTTI_VEC_PUSH(&slot->members, member);
    }
    good = good && load_decisions(in, slot);
    count = saved_get_count(in, 64);
    for (size_t i = 0; i < count && good; i++) {
        tutti_store_shard *shard;
        TUTTI_TRY(tutti__store_shard_load(in, slot->find, &shard));
        good = TUTTI_VEC_PUSH(&slot->shards, shard);
        if (!good)
            tutti__store_shard_free(shard);
    }
    if (!good)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a saved slot");
    return in->bad || in->at != in->end
               ? tutti_fail(TUTTI_CORRUPT, "a saved slot is cut short, or has bytes left over")
               : TUTTI_OK;
}

tutti_status tutti__store_slot_load(const void *data, size_t size, tutti_store_find_rule *find,
                                    tutti_store_slot **ret_slot)
{
    saved_reader in = {data, (const uint8_t *)data + size, false};
    tutti_store_slot *slot = NULL;
    TUTTI_TRY(tutti__store_slot_create((uint32_t)saved_get(&in), find, &slot));
    tutti_status status = slot_load_all(&in, slot);
    if (status == TUTTI_OK)
        *ret_slot = slot;
    else
        tutti__store_slot_free(slot);
    return status;
}
