/* skew.c: how late each rank comes to operations, at rank 0. Ranks report some of the operations
 * that they entered, chosen so that all choose the same ones (recorder.c); an operation counts when
 * everybody has reported it. */
#include <stdlib.h>
#include <string.h>

#include "cluster/roster.h"

enum { SLOTS = 256 };

typedef struct slot {
    uint64_t sequence;
    int count;
    int64_t *at_ns; /* [size] of the block below; INT64_MIN: not reported */
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

static void count_lateness(const slot *s, tutti_roster *roster, int size)
{
    int64_t first = INT64_MAX, before_last = INT64_MIN;
    int last = 0;
    for (int r = 0; r < size; r++) {
        first = s->at_ns[r] < first ? s->at_ns[r] : first;
        last = s->at_ns[r] > s->at_ns[last] ? r : last;
    }
    for (int r = 0; r < size; r++)
        if (r != last)
            before_last = s->at_ns[r] > before_last ? s->at_ns[r] : before_last;
    int64_t held_up = (int64_t)((uint64_t)s->at_ns[last] - (uint64_t)before_last);
    for (int i = 0; i < TUTTI_SKEW_SCALES && held_up >> i >= TUTTI_SKEW_WORTH_NS; i++)
        roster->members[last].skew.last_by[i]++;
    for (int r = 0; r < size; r++) {
        tutti_skew *skew = &roster->members[r].skew;
        int64_t late = (int64_t)((uint64_t)s->at_ns[r] - (uint64_t)first);
        late = late < 0 ? 0 : late;
        skew->samples++;
        skew->mean_ns += (late - skew->mean_ns) / (int64_t)skew->samples;
        skew->most_ns = late > skew->most_ns ? late : skew->most_ns;
    }
}

/* Sequences rise, so an older one never takes a slot from a newer one. */
void tutti__skews_add(struct tutti_skews *skews, tutti_roster *roster, int rank,
                      const tutti_arrival *arrivals, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t sequence = arrivals[i].sequence;
        slot *s = &skews->slots[(sequence ^ sequence >> 8 ^ sequence >> 16) % SLOTS];
        if (s->count > 0 && s->sequence > sequence)
            continue;
        if (s->count == 0 || s->sequence != sequence) {
            s->sequence = sequence;
            s->count = 0;
            for (int r = 0; r < skews->size; r++)
                s->at_ns[r] = INT64_MIN;
        }
        if (s->at_ns[rank] != INT64_MIN)
            continue;
        s->at_ns[rank] = arrivals[i].at_ns;
        if (++s->count == skews->size)
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

/* Who came last by that much far more often than anybody else, if somebody did. (A program may wait
 * for a straggler in one of several operations of a step: to the others it comes like everybody.)
 */
static int straggler_by(const tutti_roster *roster, int size, int scale)
{
    enum { TIMES = 3, ONE_OF = 5 };
    uint64_t others = 0;
    int most = 0;
    for (int r = 1; r < size; r++)
        if (roster->members[r].skew.last_by[scale] > roster->members[most].skew.last_by[scale])
            most = r;
    for (int r = 0; r < size; r++)
        if (r != most && roster->members[r].skew.last_by[scale] > others)
            others = roster->members[r].skew.last_by[scale];
    const tutti_skew *skew = &roster->members[most].skew;
    uint64_t times = skew->last_by[scale];
    bool straggles =
        times >= TIMES * others && times * ONE_OF >= skew->samples && no_chance(times, others);
    return straggles ? most : -1;
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
