/* sort.c: digit by digit, see sort.h. */
#include "ops/sort.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, FEW = 32 };

uint64_t tutti__key_of_int(int64_t value)
{
    return (uint64_t)value ^ UINT64_C(1) << 63;
}

uint64_t tutti__key_of_double(double value)
{
    uint64_t bits;
    if (isnan(value))
        return UINT64_MAX;
    value = value == 0 ? 0 : value;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

/* One stable pass. */
static void sort_by_digit(int64_t count, int shift, const tutti_keyed *from, tutti_keyed *to)
{
    int64_t starts[DIGITS] = {0}, total = 0;
    for (int64_t i = 0; i < count; i++)
        starts[from[i].key >> shift & (DIGITS - 1)]++;
    for (int d = 0; d < DIGITS; d++) {
        int64_t here = starts[d];
        starts[d] = total;
        total += here;
    }
    for (int64_t i = 0; i < count; i++)
        to[starts[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
}

/* By insertion, which takes as long as items are out of place: gives up, false, past `patience`
 * moves. */
static bool insert(int64_t count, int64_t patience, tutti_keyed *items)
{
    for (int64_t i = 1; i < count; i++) {
        tutti_keyed item = items[i];
        int64_t at = i;
        for (; at > 0 && items[at - 1].key > item.key && patience > 0; at--, patience--)
            items[at] = items[at - 1];
        items[at] = item;
    }
    return patience > 0;
}

/* Passes over the digits from bit `low` on in which keys differ. */
static void sort_from(int64_t count, int low, uint64_t differ, tutti_keyed *items,
                      tutti_keyed *scratch)
{
    tutti_keyed *from = items, *to = scratch;
    for (int shift = low; shift < 64; shift += DIGIT_BITS) {
        if ((differ >> shift & (DIGITS - 1)) == 0)
            continue;
        sort_by_digit(count, shift, from, to);
        tutti_keyed *swap = from;
        from = to;
        to = swap;
    }
    if (from != items)
        memcpy(items, from, (size_t)count * sizeof *items);
}

/* The highest digits, as many as tell `count` keys apart that are spread evenly, leave little to be
 * put right by insertion. Where keys are not, all digits are sorted after all: every step is
 * stable, so that nothing is lost. */
void tutti__sort_keyed(int64_t count, tutti_keyed *items, tutti_keyed *scratch)
{
    uint64_t differ = 0;
    int high = 0, enough = DIGIT_BITS;
    for (int64_t i = 1; i < count; i++)
        differ |= items[i].key ^ items[0].key;
    if (differ == 0)
        return;
    if (count <= FEW) {
        (void)insert(count, INT64_MAX, items);
        return;
    }
    while (high < 64 && differ >> high != 0)
        high++;
    while (enough < 63 && count >> enough != 0)
        enough += DIGIT_BITS;
    if (high - enough > 2 * DIGIT_BITS) {
        sort_from(count, high - enough, differ, items, scratch);
        if (insert(count, 4 * count, items))
            return;
    }
    sort_from(count, 0, differ, items, scratch);
}
