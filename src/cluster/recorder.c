/* recorder.c: a ring of records that is written without locks. */
#include "cluster/recorder.h"

#include <stdio.h>

#include "base/world.h"

void tutti__recorder_note(tutti_recorder *recorder, const char *operation, uint64_t sequence,
                          bool arrived)
{
    uint64_t number = atomic_fetch_add_explicit(&recorder->count, 1, memory_order_relaxed);
    tutti_record *r = &recorder->ring[number % TUTTI_RECORDER_ENTRIES];
    atomic_store_explicit(&r->turn, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&r->operation, operation, memory_order_relaxed);
    atomic_store_explicit(&r->sequence, sequence, memory_order_relaxed);
    atomic_store_explicit(&r->ticks, tutti__ticks(), memory_order_relaxed);
    atomic_store_explicit(&r->arrived, arrived, memory_order_relaxed);
    atomic_store_explicit(&r->turn, number + 1, memory_order_release);
}

typedef struct reading {
    const char *operation;
    uint64_t sequence, ticks;
    bool arrived;
} reading;

/* False when the entry is gone or being written. */
static bool read_entry(const tutti_recorder *recorder, uint64_t number, reading *ret)
{
    const tutti_record *r = &recorder->ring[number % TUTTI_RECORDER_ENTRIES];
    if (atomic_load_explicit(&r->turn, memory_order_acquire) != number + 1)
        return false;
    *ret = (reading){
        .operation = atomic_load_explicit(&r->operation, memory_order_relaxed),
        .sequence = atomic_load_explicit(&r->sequence, memory_order_relaxed),
        .ticks = atomic_load_explicit(&r->ticks, memory_order_relaxed),
        .arrived = atomic_load_explicit(&r->arrived, memory_order_relaxed),
    };
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&r->turn, memory_order_relaxed) == number + 1;
}

static int64_t age_ns(uint64_t ticks, uint64_t now)
{
    return (int64_t)((double)(int64_t)(now - ticks) * tutti__tick_ns());
}

/* Looks back over few entries: more than those are never under way at once. */
void tutti__recorder_where(const tutti_recorder *recorder, tutti_where *ret_where)
{
    enum { LOOK_BACK = 128 };
    uint64_t left[LOOK_BACK], count = atomic_load_explicit(&recorder->count, memory_order_acquire);
    size_t left_count = 0;
    reading last = {0}, each;
    bool inside = false;
    for (uint64_t back = 1; back <= count && back <= LOOK_BACK && !inside; back++) {
        if (!read_entry(recorder, count - back, &each))
            continue;
        bool gone = false;
        for (size_t i = 0; i < left_count; i++)
            gone = gone || left[i] == each.sequence;
        inside = each.arrived && !gone;
        if (inside || last.operation == NULL)
            last = each;
        if (!each.arrived)
            left[left_count++] = each.sequence;
    }
    *ret_where = (tutti_where){.sequence = last.sequence, .inside = inside};
    if (last.operation == NULL)
        return;
    ret_where->for_ns = age_ns(last.ticks, tutti__ticks());
    snprintf(ret_where->operation, sizeof ret_where->operation, "%s", last.operation);
}

/* Of a sequence, for all ranks alike: a program repeats a few operations, and every second of them,
 * or every eighth, might always be the same one. */
static uint64_t chance(uint64_t sequence)
{
    return sequence * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

size_t tutti__recorder_arrivals(tutti_recorder *recorder, int64_t now_ns,
                                tutti_arrival *ret_arrivals, size_t limit)
{
    uint64_t count = atomic_load_explicit(&recorder->count, memory_order_acquire);
    /* One look at the clock for all: whoever is held up between them would shift those behind. */
    uint64_t first = recorder->reported, stride = 1, now = tutti__ticks();
    if (count - first > TUTTI_RECORDER_ENTRIES)
        first = count - TUTTI_RECORDER_ENTRIES;
    recorder->reported = count;
    for (;; stride *= 2) {
        size_t found = 0;
        reading each;
        for (uint64_t i = first; i < count && found <= limit; i++) {
            if (!read_entry(recorder, i, &each) || !each.arrived ||
                chance(each.sequence) % stride != 0)
                continue;
            if (found < limit)
                ret_arrivals[found] =
                    (tutti_arrival){each.sequence, now_ns - age_ns(each.ticks, now)};
            found++;
        }
        if (found <= limit)
            return found;
    }
}
