/* slot.h: a slot is a logical server: the shards that were placed there, and what is decided about
 * them. One process leads it, another may hold its replica. Operations (messages that change
 * something) are applied in the order of a log; the same log gives the same bytes everywhere.
 *
 * Atomic pushes. What they push is prepared on every slot that has a part of it, and committed at
 * slot 0, which numbers them. Slot 0 tells every other slot what was decided, one thing after the
 * other (its stream; itself it tells too): commits, and that nothing more comes of what a process
 * that is gone has prepared. A reader asks slot 0 for the last number and how far each slot's
 * stream has to be for it, then reads each shard as of that number. */
#ifndef TUTTI_SERVICE_STORE_SLOT_H
#define TUTTI_SERVICE_STORE_SLOT_H

#include "service/store/shard.h"

/* One thing that was decided, on its way to one slot. */
typedef struct tutti_store_decision {
    uint64_t after;  /* its place in that slot's stream, from 1 */
    uint64_t number; /* of the atomic push; 0: processes are gone */
    uint64_t txn;
    uint32_t contribution, incarnation; /* gone: up to this one */
} tutti_store_decision;

typedef struct tutti_store_stream {
    uint64_t last;
    TUTTI_VEC(tutti_store_decision) waiting; /* not confirmed yet */
} tutti_store_stream;

typedef struct tutti_store_committed {
    uint32_t contribution;
    uint64_t txn, number; /* its last */
    uint64_t put;         /* its last PUT, of any slot */
} tutti_store_committed;

typedef struct tutti_store_member {
    uint32_t contribution, incarnation;
} tutti_store_member;

typedef struct tutti_store_slot {
    uint32_t number;
    tutti_store_find_rule *find;
    uint64_t applied; /* operations */
    uint64_t view;    /* whose members are known */
    TUTTI_VEC(tutti_store_shard *) shards;
    TUTTI_VEC(tutti_store_member) members;
    uint64_t decided;                           /* how far its stream from slot 0 was applied */
    uint64_t atomic;                            /* slot 0: the last number */
    TUTTI_VEC(tutti_store_stream) streams;      /* slot 0: by slot */
    TUTTI_VEC(tutti_store_committed) committed; /* by contribution; atomic pushes: slot 0 */
} tutti_store_slot;

tutti_status tutti__store_slot_create(uint32_t number, tutti_store_find_rule *find,
                                      tutti_store_slot **ret_slot);
void tutti__store_slot_free(tutti_store_slot *slot); /* NULL is fine */
tutti_store_shard *tutti__store_slot_shard(const tutti_store_slot *slot, uint32_t id); /* or NULL */

/* Applies one operation, which then has been applied. The answer for who asked; its texts and data
 * live as long as `op`. A failure is an answer too (REFUSED). */
void tutti__store_slot_apply(tutti_store_slot *slot, const tutti_store_message *op,
                             tutti_store_message *ret_answer);
/* Whether the operation has nothing to do any more, with the answer that it had. */
bool tutti__store_slot_knows(const tutti_store_slot *slot, const tutti_store_message *op,
                             tutti_store_message *ret_answer);
/* Slot 0: the answer to NUMBER; `room` is for as many numbers as there are slots. */
void tutti__store_slot_number(const tutti_store_slot *slot, uint8_t *room,
                              tutti_store_message *ret_answer);
int64_t tutti__store_slot_bytes(const tutti_store_slot *slot);

/* Everything, to bytes and back. */
tutti_status tutti__store_slot_save(const tutti_store_slot *slot, tutti_text *out);
tutti_status tutti__store_slot_load(const void *data, size_t size, tutti_store_find_rule *find,
                                    tutti_store_slot **ret_slot);

#endif
