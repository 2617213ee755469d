/* area.h: where the ranks of a group meet in shared memory.
 *
 * Work goes in phases, numbered alike on all ranks. To arrive at a phase a rank writes its slot for
 * it (two slots, used in turn) and then the number. Whoever awaits all others at phase f knows:
 *  1. every rank has finished what it did before arriving at f;
 *  2. slots of phase f stay as they are until this rank arrives at f + 1;
 *  3. nobody is ahead of f + 1, so a slot holds f or an older phase, never a newer one.
 * Stages (one of each pair belongs to even, one to odd phases) follow the same rules. */
#ifndef TUTTI_COMM_COLL_AREA_H
#define TUTTI_COMM_COLL_AREA_H

#include "comm/fabric/segment.h"

enum {
    TUTTI_SLOT_BYTES = 4096,
    TUTTI_SLOT_PAYLOAD = TUTTI_SLOT_BYTES - 32,
    TUTTI_STAGE_BYTES = 128 << 10,
};

typedef struct tutti_slot {
    _Alignas(TUTTI_LINE) _Atomic uint64_t phase;
    uint64_t call; /* what the rank is in: tutti_area */
    char payload[TUTTI_SLOT_PAYLOAD];
    /* Of a rank's first slot: the number of the last collective that it has entered, by whatever
     * algorithm; of each: what the last even, or odd, one is. In a line that nobody reads unless
     * something is late. */
    _Atomic uint64_t entered, entered_call;
} tutti_slot;

typedef struct tutti_area {
    tutti_fabric *fabric;
    tutti_segment *segment;
    int rank, size;      /* of the group */
    int *places;         /* [size]: ranks of the segment */
    char *base;          /* in the segment */
    uint64_t phase;      /* the last one arrived at */
    uint64_t call;       /* the operation and its sizes, which must be the same on all ranks */
    const void **inputs; /* [2 size] room for pointers */
    void **outputs;      /* [size] */
} tutti_area;

/* One rank takes the memory in the fabric's segment: an offset, or 0 when that is full. */
uint64_t tutti__area_take(tutti_fabric *fabric, int size);
/* `offset` is what one rank has taken, the same on all ranks of the group. */
tutti_status tutti__area_open(tutti_fabric *fabric, int rank, int size, int *places,
                              uint64_t offset, tutti_area **ret_area);
/* The last rank to close it gives the memory back; where one dies it stays taken. NULL is fine. */
void tutti__area_close(tutti_area *area);

static inline tutti_slot *tutti__area_slot(const tutti_area *area, int rank)
{
    return (tutti_slot *)(void *)area->base + ((size_t)rank * 2 + (area->phase & 1));
}
/* The own slot of the next phase, to be filled before arriving. */
static inline char *tutti__area_next(const tutti_area *area)
{
    tutti_slot *slots = (tutti_slot *)(void *)area->base;
    return slots[(size_t)area->rank * 2 + ((area->phase + 1) & 1)].payload;
}
void tutti__area_arrive(tutti_area *area);
/* This rank begins collective number `sequence` of the group, which is area->call; and who has not
 * begun it yet: how many, with the names of the first in `ret_names`. */
void tutti__area_enter(tutti_area *area, uint64_t sequence);
int tutti__area_missing(const tutti_area *area, uint64_t sequence, char *ret_names, size_t size);
/* Whether all that have begun the same one are in the same call; fails with what two of them are
 * in.
 */
tutti_status tutti__area_compare(const tutti_area *area);
/* Waits until `rank` has arrived at the present phase; fails when it is in another call. */
tutti_status tutti__area_await(tutti_area *area, int rank, int64_t deadline_ns);
tutti_status tutti__area_await_all(tutti_area *area, int64_t deadline_ns);

/* Between these two this rank reads and writes memory that others have given. Where that is their
 * programs' own, one that has failed keeps it until nobody is there any more (settle), and nobody
 * goes there in a group that is broken. Settling has no deadline: between the two is nothing but a
 * copy or a sum, which no failure interrupts, and to return earlier would give away its memory. */
tutti_status tutti__area_reach(tutti_area *area);
void tutti__area_let_go(tutti_area *area);
void tutti__area_drain(tutti_area *area);

/* Memory of `rank` for phase number `phase`: what it gives, and what it has computed. */
char *tutti__area_stage(const tutti_area *area, int rank, uint64_t phase);
char *tutti__area_result(const tutti_area *area, int rank, uint64_t phase);
/* The next of `count` pieces of this phase's work that nobody has taken; -1 when all are. */
int64_t tutti__area_claim(tutti_area *area, int64_t count);

#endif
