/* skew.c: how late each rank comes to operations, at rank 0. Ranks report some of the operations
 * that they entered, of all their groups, chosen so that all choose the same ones (recorder.c); an
 * operation counts when everybody in the group has reported it. */
#include <stdlib.h>
#include <string.h>

#include "cluster/roster.h"

enum { SLOTS = 256 };

typedef struct slot {
    uint64_t group, sequence;
    int count;
    int64_t newest_ns; /* of at_ns */
    int64_t *at_ns;    /* [size] of the block below; INT64_MIN: not reported, or no member */
} slot;

struct tutti_skews {
    int size;
    slot slots[SLOTS];
    int64_t times[];
};

tutti_status tutti__skews_create(int size, struct tutti_skews **ret_skews)
{
    struct tutti_skews *skews =
        calloc(1, sizeof *skews + (size_t)size * SLOTS * sizeof *skews->times);
    if (skews == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the arrival times of %d ranks", size);
    skews->size = size;
    for (int i = 0; i < SLOTS; i++)
        skews->slots[i].at_ns = skews->times + (size_t)i * (size_t)size;
    *ret_skews = skews;
    return TUTTI_OK;
}

void tutti__skews_free(struct tutti_skews *skews)
{
    free(skews);
}

static bool came(const slot *s, int rank)
{
    return s->at_ns[rank] != INT64_MIN;
}

static void count_last(const slot *s, tutti_roster *roster, int size, int last, int64_t held_up)
{
    for (int i = 0; i < TUTTI_SKEW_SCALES && held_up >> i >= TUTTI_SKEW_WORTH_NS; i++) {
        roster->members[last].skew.last_by[i]++;
        for (int r = 0; r < size; r++)
            roster->members[r].skew.held_by[i] += came(s, r) && r != last;
    }
}

static void count_lateness(const slot *s, tutti_roster *roster, int size)
{
    int64_t first = INT64_MAX, before_last = INT64_MIN;
    int last = 0; /* who is no member came before everybody */
    for (int r = 0; r < size; r++) {
        first = came(s, r) && s->at_ns[r] < first ? s->at_ns[r] : first;
        last = s->at_ns[r] > s->at_ns[last] ? r : last;
    }
    for (int r = 0; r < size; r++)
        if (r != last)
            before_last = s->at_ns[r] > before_last ? s->at_ns[r] : before_last;
    count_last(s, roster, size, last, (int64_t)((uint64_t)s->at_ns[last] - (uint64_t)before_last));
    for (int r = 0; r < size; r++) {
        tutti_skew *skew = &roster->members[r].skew;
        if (!came(s, r))
            continue;
        int64_t late = (int64_t)((uint64_t)s->at_ns[r] - (uint64_t)first);
        late = late < 0 ? 0 : late;
        skew->samples++;
        skew->mean_ns += (late - skew->mean_ns) / (int64_t)skew->samples;
        skew->most_ns = late > skew->most_ns ? late : skew->most_ns;
    }
}

static slot *slot_of(struct tutti_skews *skews, const tutti_arrival *arrival)
{
    uint64_t key = arrival->sequence ^ arrival->group * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    return &skews->slots[(key ^ key >> 8 ^ key >> 16) % SLOTS];
}

/* An older operation never takes a slot from a newer one. */
static bool take_slot(slot *s, int size, const tutti_arrival *arrival)
{
    if (s->count > 0 && s->group == arrival->group && s->sequence == arrival->sequence)
        return true;
    if (s->count > 0 && s->newest_ns > arrival->at_ns)
        return false;
    s->group = arrival->group;
    s->sequence = arrival->sequence;
    s->count = 0;
    for (int r = 0; r < size; r++)
        s->at_ns[r] = INT64_MIN;
    return true;
}

void tutti__skews_add(struct tutti_skews *skews, tutti_roster *roster, int rank,
                      const tutti_arrival *arrivals, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const tutti_arrival *arrival = &arrivals[i];
        int members = arrival->ranks == 0 ? skews->size : arrival->ranks;
        slot *s = slot_of(skews, arrival);
        if (members < 2 || arrival->at_ns == INT64_MIN || !take_slot(s, skews->size, arrival) ||
            came(s, rank))
            continue;
        s->at_ns[rank] = arrival->at_ns;
        s->newest_ns =
            s->count == 0 || arrival->at_ns > s->newest_ns ? arrival->at_ns : s->newest_ns;
        if (++s->count == members)
            count_lateness(s, roster, skews->size);
    }
}

/* More often than chance would have it: by 2.5 standard deviations, if each of the two came last as
 * likely as the other. */
static bool no_chance(uint64_t times, uint64_t others)
{
    uint64_t more = times - others;
    return 4 * more * more >= 25 * (times + others);
}

/* How often any one other rank held this one up by that much, at most: its own count, and what
 * this one saw of all others. Ranks of two groups are not compared, nor who waits in one group and
 * is late to the next for it with whom it waits for. */
static uint64_t most_of_others(const tutti_roster *roster, int size, int rank, int scale)
{
    uint64_t most = 0, seen = roster->members[rank].skew.held_by[scale];
    for (int r = 0; r < size; r++)
        if (r != rank && roster->members[r].skew.last_by[scale] > most)
            most = roster->members[r].skew.last_by[scale];
    return most < seen ? most : seen;
}

/* Who came last by that much far more often than any other in its groups, if somebody did; of
 * several the one that did most often. (A program may wait for a straggler in one of several
 * operations of a step: to the others it comes like everybody.)
 */
static int straggler_by(const tutti_roster *roster, int size, int scale)
{
    enum { TIMES = 3, ONE_OF = 5 };
    uint64_t most = 0;
    int straggler = -1;
    for (int r = 0; r < size; r++) {
        const tutti_skew *skew = &roster->members[r].skew;
        uint64_t times = skew->last_by[scale];
        if (times <= most || times * ONE_OF < skew->samples)
            continue;
        uint64_t others = most_of_others(roster, size, r, scale);
        if (times < TIMES * others || !no_chance(times, others))
            continue;
        most = times;
        straggler = r;
    }
    return straggler;
}

/* At the largest scale that shows one: below it may be moments in which others lost their
 * processor. */
int tutti__skews_straggler(const tutti_roster *roster, int size)
{
    for (int scale = TUTTI_SKEW_SCALES - 1; scale >= 0; scale--) {
        int rank = straggler_by(roster, size, scale);
        if (rank >= 0 && roster->members[rank].skew.mean_ns >= TUTTI_SKEW_WORTH_NS)
            return rank;
    }
    return -1;
}
