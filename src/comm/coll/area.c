/* area.c: phases of a group in shared memory. */
#include "comm/coll/area.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/kill.h"
#include "base/pause.h"
#include "base/work_sharing.h"
#include "base/world.h"
#include "comm/coll/number.h"
#include "comm/fabric/fabric.h"

static const int64_t slice_ns = 20000000;

enum { LOOKS = 32 }; /* before a wait is long enough to help others meanwhile */

static size_t slots_bytes(int size)
{
    return (size_t)size * 2 * sizeof(tutti_slot);
}

/* Behind the slots, in a line of its own. */
typedef struct counters {
    _Atomic uint64_t claimed; /* with the phase that it counts for */
    atomic_int users;         /* ranks that have not closed it */
    atomic_int reaching;      /* ranks that are in others' memory, in one process */
} counters;
_Static_assert(sizeof(counters) <= TUTTI_LINE, "the counters of an area are one line");

static counters *counters_at(char *base, int size)
{
    return (counters *)(void *)(base + slots_bytes(size));
}

/* Another group may have had the memory: what slots and counters say must be of no phase. */
uint64_t tutti__area_take(tutti_fabric *fabric, int size)
{
    tutti_segment *segment = fabric->segment;
    size_t known = slots_bytes(size) + TUTTI_LINE;
    uint64_t offset = tutti__segment_take(segment, known + (size_t)size * 4 * TUTTI_STAGE_BYTES);
    if (offset == 0)
        return 0;
    /* All users before are done, as the segment's lock says; ThreadSanitizer, which knows memory by
     * its address and ranks by the lock in their own mapping, hears it here. */
    (void)atomic_load(&counters_at(segment->base + offset, size)->users);
    memset(segment->base + offset, 0, known);
    atomic_store(&counters_at(segment->base + offset, size)->users, size);
    return offset;
}

tutti_status tutti__area_open(tutti_fabric *fabric, int rank, int size, int *places,
                              uint64_t offset, tutti_area **ret_area)
{
    tutti_area *area = calloc(1, sizeof *area);
    const void **inputs = calloc(2 * (size_t)size, sizeof *inputs);
    void **outputs = calloc((size_t)size, sizeof *outputs);
    if (!area || !inputs || !outputs) {
        free(area), free(inputs), free(outputs);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a group of %d ranks", size);
    }
    *area = (tutti_area){.fabric = fabric,
                         .segment = fabric->segment,
                         .rank = rank,
                         .size = size,
                         .places = places,
                         .base = fabric->segment->base + offset,
                         .inputs = inputs,
                         .outputs = outputs};
    *ret_area = area;
    return TUTTI_OK;
}

void tutti__area_close(tutti_area *area)
{
    if (!area)
        return;
    if (atomic_fetch_sub(&counters_at(area->base, area->size)->users, 1) == 1)
        tutti__segment_give_back(area->segment, (uint64_t)(area->base - area->segment->base));
    free(area->places);
    free(area->inputs);
    free(area->outputs);
    free(area);
}

void tutti__area_arrive(tutti_area *area)
{
    area->phase++;
    tutti_slot *own = tutti__area_slot(area, area->rank);
    own->call = area->call;
    tutti__kill_point();
    atomic_store_explicit(&own->phase, area->phase, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    for (int i = 0; i < area->size; i++)
        if (i != area->rank)
            tutti__segment_wake(area->segment, area->places[i]);
}

static bool here(tutti_slot *slot, uint64_t phase)
{
    return atomic_load_explicit(&slot->phase, memory_order_acquire) == phase;
}

/* A member as the whole job knows it: its number here is that of a subgroup, or of one machine's
 * part of `hierarchical`, which nobody outside of it can look up. */
static int job_rank(const tutti_area *area, int member)
{
    const tutti_fabric *fabric = area->fabric;
    int own = fabric->machine[fabric->rank], rank = 0;
    for (int before = area->places[member]; rank + 1 < fabric->size; rank++)
        if (fabric->machine[rank] == own && before-- == 0)
            break;
    return rank;
}

static const char *name_of(const tutti_area *area, int member, char *ret_text, size_t size)
{
    return tutti__fabric_name(area->fabric, job_rank(area, member), ret_text, size);
}

typedef bool is_there(const tutti_area *area, int rank, uint64_t number);

static bool at_phase(const tutti_area *area, int rank, uint64_t phase)
{
    return here(tutti__area_slot(area, rank), phase);
}

static _Atomic uint64_t *entered_by(const tutti_area *area, int rank)
{
    return &((tutti_slot *)(void *)area->base)[(size_t)rank * 2].entered;
}

static bool in_collective(const tutti_area *area, int rank, uint64_t sequence)
{
    return atomic_load(entered_by(area, rank)) >= sequence;
}

/* How many have not come; of many the first are named. */
static int name_missing(const tutti_area *area, is_there *there, uint64_t number, char *ret_names,
                        size_t size)
{
    enum { NAMED = 4 };
    char name[320];
    int missing = 0;
    size_t used = 0;
    ret_names[0] = 0;
    for (int i = 0; i < area->size; i++)
        if (i != area->rank && !there(area, i, number) && missing++ <= NAMED && used < size)
            used += (size_t)snprintf(ret_names + used, size - used, "%s%s", missing > 1 ? ", " : "",
                                     missing > NAMED ? "…" : name_of(area, i, name, sizeof name));
    return missing;
}

/* Two in turn: that of a number stays until the rank is two further. */
static _Atomic uint64_t *call_of(const tutti_area *area, int rank, uint64_t sequence)
{
    tutti_slot *slots = (tutti_slot *)(void *)area->base;
    return &slots[(size_t)rank * 2 + (sequence & 1)].entered_call;
}

void tutti__area_enter(tutti_area *area, uint64_t sequence)
{
    atomic_store_explicit(call_of(area, area->rank, sequence), area->call, memory_order_release);
    atomic_store_explicit(entered_by(area, area->rank), sequence, memory_order_release);
}

int tutti__area_missing(const tutti_area *area, uint64_t sequence, char *ret_names, size_t size)
{
    return name_missing(area, in_collective, sequence, ret_names, size);
}

static tutti_status late(tutti_area *area)
{
    char names[1024];
    int missing = name_missing(area, at_phase, area->phase, names, sizeof names);
    return tutti_fail(TUTTI_DEADLINE,
                      "waited too long for %s; %d of %d ranks of the group had come",
                      missing > 0 ? names : "others", area->size - missing, area->size);
}

/* `rank` is in `call`, and this one in `mine`. */
static tutti_status area_compare(const tutti_area *area, int rank, uint64_t call, uint64_t mine)
{
    return call == mine ? TUTTI_OK
                        : tutti__calls_differ(area->fabric, job_rank(area, rank), call,
                                              job_rank(area, area->rank), mine);
}

/* Who has come to something else would take other bytes than were given. */
static tutti_status same_call(const tutti_area *area, int rank)
{
    return area_compare(area, rank, tutti__area_slot(area, rank)->call, area->call);
}

/* The same of one that may be on another way there, by messages or in shared memory. */
static tutti_status same_entered(const tutti_area *area, int rank)
{
    uint64_t sequence = atomic_load(entered_by(area, area->rank));
    if (sequence == 0 || atomic_load(entered_by(area, rank)) != sequence)
        return TUTTI_OK;
    uint64_t call = atomic_load(call_of(area, rank, sequence));
    if (atomic_load(entered_by(area, rank)) != sequence)
        return TUTTI_OK;
    return area_compare(area, rank, call, atomic_load(call_of(area, area->rank, sequence)));
}

tutti_status tutti__area_compare(const tutti_area *area)
{
    for (int rank = 0; rank < area->size; rank++)
        TUTTI_TRY(same_entered(area, rank));
    return TUTTI_OK;
}

typedef struct coming {
    tutti_slot *slot;
    uint64_t phase;
    int rank;
} coming;

static bool has_come(const void *context)
{
    const coming *other = context;
    return here(other->slot, other->phase);
}

static tutti_status await(tutti_area *area, const coming *other, bool guest, int64_t deadline_ns)
{
    tutti_fabric *fabric = area->fabric;
    const tutti_awaited wait = {has_come, other};
    tutti_long_wait stuck = {0};
    for (int round = 0;; round++) {
        if (has_come(other))
            return TUTTI_OK;
        bool helped = guest && tutti__helper_help(&wait);
        round = helped ? 0 : round;
        if (!helped && round < fabric->spin && (round & 127) != 127) {
            tutti__pause();
            continue;
        }
        if (!helped && round < fabric->spin + fabric->yields) {
            if (!tutti__fabric_yield(fabric))
                round = fabric->spin + fabric->yields;
            if ((round & 127) != 127)
                continue;
        }
        tutti_status status = tutti__fabric_check(fabric);
        if (status != TUTTI_OK) /* who has come may have failed in the next call since */
            return has_come(other) ? TUTTI_OK : status;
        TUTTI_TRY(same_entered(area, other->rank));
        bool pending = atomic_load_explicit(&fabric->pending, memory_order_relaxed) > 0;
        if (pending)
            tutti__fabric_progress(fabric);
        tutti__fabric_waits_long(fabric, &stuck);
        int64_t left = deadline_ns - tutti__now_ns();
        if (left <= 0)
            return has_come(other) ? TUTTI_OK : late(area);
        if (helped || round < fabric->spin + fabric->yields)
            continue;
        left = guest && left > TUTTI_HELPER_NAP_NS ? TUTTI_HELPER_NAP_NS
               : left < slice_ns                   ? left
                                                   : slice_ns;
        unsigned seen = tutti__segment_sleep_begin(area->segment);
        tutti__fabric_hear(fabric); /* who asks from now on rings */
        pending = atomic_load_explicit(&fabric->pending, memory_order_relaxed) > 0;
        left = has_come(other) ? 0 : pending && left > 200000 ? 200000 : left;
        tutti__segment_sleep_end(area->segment, seen, left);
    }
}

tutti_status tutti__area_await(tutti_area *area, int rank, int64_t deadline_ns)
{
    const coming other = {tutti__area_slot(area, rank), area->phase, rank};
    bool guest = false;
    for (int looks = 0; looks < LOOKS; looks++) {
        if (has_come(&other))
            return same_call(area, rank);
        tutti__pause();
    }
    guest = tutti__helper_begin();
    tutti_status status = await(area, &other, guest, deadline_ns);
    if (guest)
        tutti__helper_end();
    return status == TUTTI_OK ? same_call(area, rank) : status;
}

tutti_status tutti__area_await_all(tutti_area *area, int64_t deadline_ns)
{
    for (int i = 1; i < area->size; i++) {
        int rank = area->rank + i < area->size ? area->rank + i : area->rank + i - area->size;
        TUTTI_TRY(tutti__area_await(area, rank, deadline_ns));
    }
    return TUTTI_OK;
}

/* Whoever fails has told why before it looks who is in its memory; who goes there is counted before
 * it looks whether somebody has. So one of the two sees the other. */
tutti_status tutti__area_reach(tutti_area *area)
{
    if (!area->segment->one_process)
        return TUTTI_OK;
    atomic_fetch_add(&counters_at(area->base, area->size)->reaching, 1);
    if (!tutti__fabric_is_broken(area->fabric))
        return TUTTI_OK;
    tutti__area_let_go(area);
    return tutti__fabric_check(area->fabric);
}

void tutti__area_let_go(tutti_area *area)
{
    if (area->segment->one_process)
        atomic_fetch_sub(&counters_at(area->base, area->size)->reaching, 1);
}

void tutti__area_drain(tutti_area *area)
{
    enum { BETWEEN_NS = 50000 };
    const tutti_world *world = tutti__world();
    while (area->segment->one_process &&
           atomic_load(&counters_at(area->base, area->size)->reaching) > 0)
        world->sleep_ns(world->self, BETWEEN_NS);
}

static char *stages(const tutti_area *area, int rank, int number)
{
    return area->base + slots_bytes(area->size) + TUTTI_LINE +
           ((size_t)rank * 4 + (size_t)number) * TUTTI_STAGE_BYTES;
}

char *tutti__area_stage(const tutti_area *area, int rank, uint64_t phase)
{
    return stages(area, rank, (int)(phase & 1));
}

char *tutti__area_result(const tutti_area *area, int rank, uint64_t phase)
{
    return stages(area, rank, 2 + (int)(phase & 1));
}

/* The counter holds the phase it counts for, so that nobody has to set it back. */
int64_t tutti__area_claim(tutti_area *area, int64_t count)
{
    _Atomic uint64_t *counter = &counters_at(area->base, area->size)->claimed;
    uint64_t phase = area->phase & UINT32_MAX;
    uint64_t now = atomic_load_explicit(counter, memory_order_relaxed);
    for (;;) {
        uint64_t next = now >> 32 == phase ? now & UINT32_MAX : 0;
        if ((int64_t)next >= count)
            return -1;
        if (atomic_compare_exchange_weak_explicit(counter, &now, phase << 32 | (next + 1),
                                                  memory_order_relaxed, memory_order_relaxed))
            return (int64_t)next;
    }
}
