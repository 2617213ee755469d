/* sort_test.c: keys of every spread come out in order, equal ones as they came. */
#include "ops/sort.h"

#include <math.h>
#include <stdlib.h>

#include "base/test.h"

static uint64_t spread(int kind, uint64_t i)
{
    uint64_t mixed = i * UINT64_C(0x9e3779b97f4a7c15);
    switch (kind) {
    case 0:
        return mixed; /* even */
    case 1:
        return mixed >> 45; /* narrow, with equal ones */
    case 2:
        return (i & 1) << 63 | (100000 - i); /* two heaps that fall */
    case 3:
        return (mixed >> 52) << 52; /* the highest digits alone */
    case 4:
        return mixed >> 60 << 60 | (mixed & 0xfff);
    default:
        return 7;
    }
}

TUTTI_TEST(keys_of_every_spread_are_sorted)
{
    static const int64_t counts[] = {0, 1, 2, 31, 33, 1000, 50000};
    tutti_keyed *keys = calloc(100000, sizeof *keys);
    for (int kind = 0; kind < 6; kind++)
        for (int c = 0; c < 7; c++) {
            int64_t count = counts[c], wrong = 0;
            for (int64_t i = 0; i < count; i++)
                keys[i] = (tutti_keyed){spread(kind, (uint64_t)i), i};
            tutti__sort_keyed(count, keys, keys + count);
            for (int64_t i = 0; i < count; i++) {
                wrong += keys[i].key != spread(kind, (uint64_t)keys[i].place);
                wrong += i > 0 && keys[i - 1].key > keys[i].key;
                wrong +=
                    i > 0 && keys[i - 1].key == keys[i].key && keys[i - 1].place >= keys[i].place;
            }
            CHECK_INT(wrong, 0);
        }
    free(keys);
}

TUTTI_TEST(keys_have_the_order_of_numbers)
{
    static const double rising[] = {-INFINITY, -2, -1e-310, 0, 1e-310, 3, INFINITY, NAN};
    for (int i = 1; i < 8; i++)
        CHECK(tutti__key_of_double(rising[i - 1]) < tutti__key_of_double(rising[i]));
    CHECK(tutti__key_of_double(-0.0) == tutti__key_of_double(0));
    CHECK(tutti__key_of_double(-NAN) == tutti__key_of_double(NAN));
    CHECK(tutti__key_of_int(INT64_MIN) < tutti__key_of_int(-1));
    CHECK(tutti__key_of_int(-1) < tutti__key_of_int(0));
    CHECK(tutti__key_of_int(0) < tutti__key_of_int(INT64_MAX));
}
