/* slots.h: scratch memory for pieces that run at the same time. A kernel asks for a workspace of
 * `count` slots, one for each thread of the device; a piece takes a free one and gives it back.
 * When all are taken, which happens only on a wider pool than was planned for, it waits. */
#ifndef TUTTI_DEVICE_CPU_SLOTS_H
#define TUTTI_DEVICE_CPU_SLOTS_H

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#define TUTTI_SLOT_WORDS 8

typedef struct tutti_slots {
    char *memory;
    size_t bytes; /* of one slot, a multiple of 64 */
    int count;    /* at most 64 * TUTTI_SLOT_WORDS */
    _Atomic uint64_t taken[TUTTI_SLOT_WORDS];
} tutti_slots;

static inline int tutti__slot_count(int threads)
{
    return threads < 1 ? 1 : threads > 64 * TUTTI_SLOT_WORDS ? 64 * TUTTI_SLOT_WORDS : threads;
}

static inline size_t tutti__slot_bytes(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static inline void tutti__slots_start(tutti_slots *slots, void *memory, size_t bytes, int threads)
{
    slots->memory = memory;
    slots->bytes = tutti__slot_bytes(bytes);
    slots->count = tutti__slot_count(threads);
    for (int i = 0; i < TUTTI_SLOT_WORDS; i++)
        atomic_init(&slots->taken[i], 0);
}

static inline void *tutti__slot_take(tutti_slots *slots)
{
    if (slots->bytes == 0)
        return slots->memory; /* nothing to share */
    for (int i = 0;; i = i + 1 < slots->count ? i + 1 : 0) {
        uint64_t bit = UINT64_C(1) << (i % 64);
        _Atomic uint64_t *word = &slots->taken[i / 64];
        if (!(atomic_load_explicit(word, memory_order_relaxed) & bit) &&
            !(atomic_fetch_or_explicit(word, bit, memory_order_acquire) & bit))
            return slots->memory + (size_t)i * slots->bytes;
        if (i + 1 == slots->count)
            sched_yield();
    }
}

static inline void tutti__slot_give(tutti_slots *slots, void *slot)
{
    if (slots->bytes == 0)
        return;
    size_t i = (size_t)((char *)slot - slots->memory) / slots->bytes;
    atomic_fetch_and_explicit(&slots->taken[i / 64], ~(UINT64_C(1) << (i % 64)),
                              memory_order_release);
}

#endif
