/* shard.h: one shard of one variable: its value under a rule, its policy, what is held for it, and
 * which pushes it has had. A deterministic state machine: the same calls in the same order give the
 * same bits, on a replica and when a recorded order is replayed. No clock, no message goes out.
 *
 * Invariants
 * 1. A key (step or closure, contribution) is applied at most once, and every retry of it gets the
 *    verdict of the first.
 * 2. What is held was acknowledged: it becomes part of an update whatever happens to its worker.
 * 3. version counts updates; an update never goes back.
 * 4. Memory is bounded: one held gradient for each contribution of a step that can be at hand, one
 *    window of closures, TUTTI_STORE_IMAGES old values. */
#ifndef TUTTI_SERVICE_STORE_SHARD_H
#define TUTTI_SERVICE_STORE_SHARD_H

#include "service/policies/policy.h"
#include "service/store/rule.h"
#include "service/store/staleness.h"

enum {
    TUTTI_STORE_IMAGES = 8,            /* values before the last atomic pushes */
    TUTTI_STORE_CLOSURE_WINDOW = 1024, /* closures that may be under way at once */
};

/* Which closures were applied, and which of these were skipped for NaN. */
typedef struct tutti_store_closures {
    uint64_t below; /* all before it are done and never come again */
    uint64_t applied[TUTTI_STORE_CLOSURE_WINDOW / 64], skipped[TUTTI_STORE_CLOSURE_WINDOW / 64];
} tutti_store_closures;

typedef struct tutti_store_held {
    tutti_store_key key;
    uint64_t version; /* that the worker had read */
    double factor, learning_rate;
    tutti_store_gradient gradient;
    uint64_t txn;         /* of what is prepared: the number of its atomic push */
    uint32_t incarnation; /* and of its worker's process */
} tutti_store_held;

/* What was to be read before an atomic push was applied. */
typedef struct tutti_store_image {
    uint64_t before; /* its number */
    uint64_t version;
    tutti_tensor *value;
} tutti_store_image;

typedef enum tutti_store_nan {
    TUTTI_STORE_NAN_REFUSE,
    TUTTI_STORE_NAN_SKIP,
    TUTTI_STORE_NAN_ACCEPT
} tutti_store_nan;

typedef struct tutti_store_shard {
    uint32_t id;
    tutti_store_message spec; /* the CREATE that made it, without its value */
    uint8_t *spec_frame;      /* what `spec` points into */
    tutti_type type;
    tutti_store_nan nan;
    tutti_store_rate rate;
    tutti_policy policy;
    tutti_store_rule *rule;
    TUTTI_VEC(tutti_store_held) held;     /* by contribution, then step */
    TUTTI_VEC(tutti_store_held) prepared; /* in the order of arrival */
    tutti_store_image images[TUTTI_STORE_IMAGES];
    int image_count;
    uint64_t forgotten; /* images before this number, and it, are not kept */
    tutti_store_closures closures;
    tutti_store_staleness staleness;
    uint64_t late, skipped, failed; /* gradients */
} tutti_store_shard;

/* From a CREATE message, which is copied. */
tutti_status tutti__store_shard_create(const tutti_store_message *create,
                                       tutti_store_find_rule *find, tutti_store_shard **ret_shard);
void tutti__store_shard_free(tutti_store_shard *shard); /* NULL is fine */
/* Whether a second CREATE says the same; else INVALID in words. */
tutti_status tutti__store_shard_same(const tutti_store_shard *shard,
                                     const tutti_store_message *create);

/* What is wrong with a PUSH or PREPARE: its reason, and the words as the thread's message. */
tutti_store_reason tutti__store_shard_check(const tutti_store_shard *shard,
                                            const tutti_store_message *push);
/* Whether a key was pushed before; then its verdict. */
bool tutti__store_shard_knows(const tutti_store_shard *shard, uint64_t step, uint32_t contribution,
                              uint32_t *ret_verdict);
/* A PUSH that was checked. A failure is of the rule; the gradients of that update are lost, and it
 * counts as one. */
tutti_status tutti__store_shard_push(tutti_store_shard *shard, const tutti_store_message *push,
                                     uint32_t *ret_verdict);
/* A PREPARE that was checked: kept until its atomic push is decided. */
tutti_status tutti__store_shard_prepare(tutti_store_shard *shard,
                                        const tutti_store_message *prepare);
/* What was prepared for atomic push `txn` of a contribution is pushed; its number is `number`. */
tutti_status tutti__store_shard_commit(tutti_store_shard *shard, uint64_t txn,
                                       uint32_t contribution, uint64_t number);
/* What processes up to this incarnation have prepared and nobody will commit. */
void tutti__store_shard_abort(tutti_store_shard *shard, uint32_t contribution,
                              uint32_t incarnation);
tutti_status tutti__store_shard_members(tutti_store_shard *shard, int64_t count,
                                        const uint32_t *contributions);
void tutti__store_shard_finish(tutti_store_shard *shard, uint64_t below);

/* The value, or rows of it, as a PULL asks for them: at present (number 0), or as it was when
 * atomic push number - 1 was the last one. TUTTI_OUT_OF_RANGE when that is no longer kept. */
tutti_status tutti__store_shard_read(tutti_store_shard *shard, const tutti_store_message *pull,
                                     tutti_tensor **ret_value, uint64_t *ret_version);
int64_t tutti__store_shard_bytes(const tutti_store_shard *shard);

/* Everything of it, and back; the same calls on both then give the same. */
tutti_status tutti__store_shard_save(const tutti_store_shard *shard, tutti_text *out);
tutti_status tutti__store_shard_load(saved_reader *in, tutti_store_find_rule *find,
                                     tutti_store_shard **ret_shard);

#endif
