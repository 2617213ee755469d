/* recorder.c: a ring of records that is written without locks. */
#include "cluster/recorder.h"

#include <stdio.h>
#include <string.h>

#include "base/world.h"

const tutti_ranks *tutti__recorder_keep(tutti_recorder *recorder, const tutti_ranks *ranks)
{
    int i = 0;
    while (i < recorder->set_count && memcmp(&recorder->sets[i], ranks, sizeof *ranks) != 0)
        i++;
    if (i == TUTTI_RECORDER_SETS)
        return NULL;
    if (i == recorder->set_count)
        recorder->sets[recorder->set_count++] = *ranks;
    return &recorder->sets[i];
}

tutti_record *tutti__recorder_take(tutti_recorder *recorder)
{
    for (int i = 1; i <= TUTTI_RECORDER_GROUPS; i++)
        if (!recorder->taken[i]) {
            recorder->taken[i] = true;
            return &recorder->now[i];
        }
    return NULL;
}

void tutti__recorder_give_back(tutti_recorder *recorder, tutti_record *now)
{
    if (now == NULL)
        return;
    atomic_store_explicit(&now->turn, 0, memory_order_relaxed);
    recorder->taken[now - recorder->now] = false;
}

typedef struct reading {
    const char *operation;
    const tutti_ranks *members;
    uint64_t group, sequence, ticks;
    bool arrived;
} reading;

/* A record whose turn is 0, which readers do not take until it has this one. */
static void write_record(tutti_record *r, const reading *from, uint64_t turn)
{
    atomic_store_explicit(&r->group, from->group, memory_order_relaxed);
    atomic_store_explicit(&r->members, from->members, memory_order_relaxed);
    atomic_store_explicit(&r->operation, from->operation, memory_order_relaxed);
    atomic_store_explicit(&r->sequence, from->sequence, memory_order_relaxed);
    atomic_store_explicit(&r->ticks, from->ticks, memory_order_relaxed);
    atomic_store_explicit(&r->arrived, from->arrived, memory_order_relaxed);
    atomic_store_explicit(&r->turn, turn, memory_order_release);
}

void tutti__recorder_note(tutti_recorder *recorder, tutti_rank_group group, const char *operation,
                          uint64_t sequence, bool arrived)
{
    uint64_t number = atomic_fetch_add_explicit(&recorder->count, 1, memory_order_relaxed);
    tutti_record *r = &recorder->ring[number % TUTTI_RECORDER_ENTRIES];
    tutti_record *now = group.number == 0 ? &recorder->now[0] : group.now;
    reading each = {operation, group.members, group.number, sequence, tutti__ticks(), arrived};
    atomic_store_explicit(&r->turn, 0, memory_order_relaxed);
    if (arrived && now != NULL)
        atomic_store_explicit(&now->turn, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    write_record(r, &each, number + 1);
    if (arrived && now != NULL) /* it stays when the ring has come round */
        write_record(now, &each, number + 1);
    else if (now != NULL && atomic_load_explicit(&now->sequence, memory_order_relaxed) == sequence)
        atomic_store_explicit(&now->turn, 0, memory_order_relaxed);
}

/* ---- reading ---- */

/* False when it is not the entry of that turn any more. */
static bool read_record(const tutti_record *r, uint64_t turn, reading *ret)
{
    *ret = (reading){
        .operation = atomic_load_explicit(&r->operation, memory_order_relaxed),
        .members = atomic_load_explicit(&r->members, memory_order_relaxed),
        .group = atomic_load_explicit(&r->group, memory_order_relaxed),
        .sequence = atomic_load_explicit(&r->sequence, memory_order_relaxed),
        .ticks = atomic_load_explicit(&r->ticks, memory_order_relaxed),
        .arrived = atomic_load_explicit(&r->arrived, memory_order_relaxed),
    };
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&r->turn, memory_order_relaxed) == turn;
}

/* False when the entry is gone or being written. */
static bool read_entry(const tutti_recorder *recorder, uint64_t number, reading *ret)
{
    const tutti_record *r = &recorder->ring[number % TUTTI_RECORDER_ENTRIES];
    return atomic_load_explicit(&r->turn, memory_order_acquire) == number + 1 &&
           read_record(r, number + 1, ret);
}

/* False where nothing is under way. */
static bool read_now(const tutti_record *r, reading *ret)
{
    uint64_t turn = atomic_load_explicit(&r->turn, memory_order_acquire);
    return turn != 0 && read_record(r, turn, ret);
}

static int64_t age_ns(uint64_t ticks, uint64_t now)
{
    return (int64_t)((double)(int64_t)(now - ticks) * tutti__tick_ns());
}

/* Operations that were left and whose entering was not met yet, looking back: few at a time. */
typedef struct leavings {
    size_t count;
    struct {
        uint64_t group, sequence;
    } of[TUTTI_RECORDER_ENTRIES];
} leavings;

/* Whether the operation that was entered has been left since. */
static bool was_left(leavings *left, const reading *entered)
{
    for (size_t i = left->count; i-- > 0;)
        if (left->of[i].group == entered->group && left->of[i].sequence == entered->sequence) {
            left->of[i] = left->of[--left->count];
            return true;
        }
    return false;
}

/* Of groups that all wait, the one that waits the shortest. */
static reading *youngest(reading places[TUTTI_WHERES])
{
    reading *best = &places[1];
    for (int i = 2; i < TUTTI_WHERES; i++)
        if ((int64_t)(places[i].ticks - best->ticks) > 0)
            best = &places[i];
    return best;
}

/* Where what is known of a group goes; `arrived` of a place says that something is under way.
 * NULL when all are taken: a group that waits takes the place of one that does not, or of one that
 * does not wait as long: who waits for a lost rank waits the longest. */
static reading *place_of(reading places[TUTTI_WHERES], const reading *each)
{
    if (each->group == 0)
        return &places[0];
    for (int i = 1; i < TUTTI_WHERES; i++)
        if (places[i].operation == NULL || places[i].group == each->group)
            return &places[i];
    if (!each->arrived)
        return NULL;
    for (int i = TUTTI_WHERES - 1; i > 0; i--)
        if (!places[i].arrived)
            return &places[i];
    reading *last = youngest(places);
    return (int64_t)(last->ticks - each->ticks) > 0 ? last : NULL;
}

/* Of one group: what is under way before what was left, and the latest of these. */
static void recorder_take(reading places[TUTTI_WHERES], const reading *each)
{
    reading *place = place_of(places, each);
    if (place == NULL)
        return;
    bool same = place->operation != NULL && place->group == each->group;
    bool later = each->arrived && (!place->arrived || (int64_t)(each->ticks - place->ticks) > 0);
    if (!same || later)
        *place = *each;
}

static tutti_where where_of(const reading *place)
{
    tutti_where where = {
        .sequence = place->sequence, .inside = place->arrived, .group = place->group};
    if (place->operation == NULL)
        return where;
    where.for_ns = age_ns(place->ticks, tutti__ticks());
    if (place->members != NULL)
        where.members = *place->members;
    snprintf(where.operation, sizeof where.operation, "%s", place->operation);
    return where;
}

/* Groups number their operations apart, and those of several may be under way at once. */
void tutti__recorder_where(const tutti_recorder *recorder, tutti_wheres *ret_where)
{
    uint64_t count = atomic_load_explicit(&recorder->count, memory_order_acquire);
    leavings left;
    left.count = 0;
    reading places[TUTTI_WHERES] = {0}, each;
    for (uint64_t back = 1; back <= count && back <= TUTTI_RECORDER_ENTRIES; back++) {
        if (!read_entry(recorder, count - back, &each))
            continue;
        bool inside = each.arrived && !was_left(&left, &each);
        if (!each.arrived) {
            left.of[left.count].group = each.group;
            left.of[left.count++].sequence = each.sequence;
        }
        each.arrived = inside;
        recorder_take(places, &each);
    }
    for (int i = 0; i <= TUTTI_RECORDER_GROUPS; i++)
        if (read_now(&recorder->now[i], &each))
            recorder_take(places, &each);
    for (int i = 0; i < TUTTI_WHERES; i++)
        ret_where->of[i] = where_of(&places[i]);
}

/* Of an operation, for all its ranks alike: a program repeats a few, and every second of them, or
 * every eighth, might always be the same one. */
static uint64_t chance(const reading *of)
{
    return (of->sequence ^ of->group >> 16) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

/* Of a group whose ranks are not known nobody can tell when all of them have reported. */
static bool is_counted(const reading *each)
{
    return each->arrived && (each->group == 0 || each->members != NULL);
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
            if (!read_entry(recorder, i, &each) || !is_counted(&each) ||
                chance(&each) % stride != 0)
                continue;
            if (found < limit)
                ret_arrivals[found] = (tutti_arrival){
                    .group = each.group,
                    .sequence = each.sequence,
                    .ranks = each.group == 0
                                 ? 0
                                 : (uint16_t)tutti__ranks_count(each.members, TUTTI_MOST_RANKS),
                    .at_ns = now_ns - age_ns(each.ticks, now)};
            found++;
        }
        if (found <= limit)
            return found;
    }
}
