/* policy.h: when gradients are applied, and who may go on. One consistency model a file, ending in
 * one descriptor.
 * tables: tutti_consistency
 *
 * A policy stands beside each shard. It sees no clock, no message and no other shard, so that the
 * same calls give the same answers on a replica and when a recorded run is replayed.
 *
 * A worker's clock counts the steps that it has pushed: with clock c it reads, then pushes step c.
 * The version of a shard counts its updates. */
#ifndef TUTTI_SERVICE_POLICIES_POLICY_H
#define TUTTI_SERVICE_POLICIES_POLICY_H

#include "base/container.h"

typedef enum tutti_policy_arrival {
    TUTTI_POLICY_APPLY,  /* an update of its own, now */
    TUTTI_POLICY_HOLD,   /* until `ready` */
    TUTTI_POLICY_LATE,   /* its step is over: dropped */
    TUTTI_POLICY_FUTURE, /* of a step that cannot have begun */
} tutti_policy_arrival;

typedef struct tutti_policy_worker {
    uint32_t number;  /* of its contributions */
    bool alive;       /* in the present view */
    bool counts;      /* others wait for it: at first, or since it has pushed once */
    uint64_t clock;   /* the step that it pushes next */
    uint32_t verdict; /* what became of its last push: of the store's verdicts */
} tutti_policy_worker;

typedef struct tutti_policy {
    const struct tutti_consistency *by;
    int64_t argument;
    uint64_t version;                       /* updates so far */
    bool begun;                             /* the first members are known */
    TUTTI_VEC(tutti_policy_worker) workers; /* by number; those that died too */
} tutti_policy;

typedef struct tutti_consistency {
    const char *name, *doc;
    const char *argument; /* what stands behind the colon: "s", "backup=b"; NULL: nothing */
    bool optional;        /* the argument may be left out: then it is `least` */
    int64_t least, most;  /* of the argument */
    bool clocked;         /* steps have a meaning: closures, which have none, are refused */
    tutti_policy_arrival (*arrive)(const tutti_policy *policy, uint64_t step);
    /* (optional) Whether what is held is applied now, as one mean in the order of workers. */
    bool (*ready)(const tutti_policy *policy, int64_t held);
    /* Whether a worker with this clock may read; NULL: always. */
    bool (*may_read)(const tutti_policy *policy, uint64_t clock);
    /* (optional) The clock that a worker goes on with, where that is not its own. */
    uint64_t (*clock)(const tutti_policy *policy, uint64_t own);
    /* (optional) What a gradient that is applied on arrival is multiplied by; 1 where NULL. */
    double (*share)(const tutti_policy *policy);
} tutti_consistency;

/* From "ssp:3", "sync", "sync:backup=1"; INVALID lists what there is. */
tutti_status tutti__policy_open(const char *text, tutti_policy *ret_policy);
void tutti__policy_close(tutti_policy *policy); /* a zeroed one is fine */
/* Who is alive now. The first members count at once; later ones when they have pushed once, so that
 * nobody waits for a worker that is still starting. */
tutti_status tutti__policy_members(tutti_policy *policy, int64_t count, const uint32_t *numbers);
/* The worker's entry, made where there is none; NULL for lack of memory. */
tutti_policy_worker *tutti__policy_worker(tutti_policy *policy, uint32_t number);
/* The same, or NULL. */
const tutti_policy_worker *tutti__policy_find(const tutti_policy *policy, uint32_t number);
/* The clock that a worker reads with next. */
uint64_t tutti__policy_clock(const tutti_policy *policy, uint32_t number);
bool tutti__policy_may_read(const tutti_policy *policy, uint64_t clock);

/* ---- what consistencies ask ---- */
int64_t tutti__policy_counting(const tutti_policy *policy); /* workers that others wait for */
/* Of these, how many have pushed the step. */
int64_t tutti__policy_arrived(const tutti_policy *policy, uint64_t step);
uint64_t tutti__policy_slowest(const tutti_policy *policy); /* their lowest clock; 0: nobody */
/* sync's, which ssp:0 shares: the step at hand is held, others are late or of the future. */
tutti_policy_arrival tutti__policy_of_step(const tutti_policy *policy, uint64_t step);
bool tutti__policy_step_is_here(const tutti_policy *policy, uint64_t clock);
uint64_t tutti__policy_clock_of_step(const tutti_policy *policy, uint64_t own);

#endif
