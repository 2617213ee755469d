#include "program/pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/test.h"

static bool overlap(const void *context, const tutti_packed *a, const tutti_packed *b)
{
    (void)context;
    return a->first <= b->last && b->first <= a->last;
}

/* Packs and checks that what collides lies apart; bytes taken and the bound. */
static size_t packed(tutti_packed *values, size_t count, size_t moments, size_t *ret_bound)
{
    tutti_pack pack = {.count = count, .values = values, .collide = overlap};
    size_t bytes = 0;
    CHECK_OK(tutti__pack_bound(&pack, moments, ret_bound));
    CHECK_OK(tutti__pack(&pack, *ret_bound, &bytes));
    for (size_t i = 0; i < count; i++) {
        CHECK(values[i].offset + values[i].size <= bytes);
        for (size_t k = 0; k < i; k++)
            CHECK(!overlap(NULL, &values[i], &values[k]) ||
                  values[i].offset >= values[k].offset + values[k].size ||
                  values[k].offset >= values[i].offset + values[i].size);
    }
    return bytes;
}

TUTTI_TEST(pack_takes_the_bound_where_values_come_and_go_like_a_stack)
{
    tutti_packed values[] = {{0, 0, 9, 64, 0},  {1, 1, 8, 128, 0}, {2, 2, 3, 256, 0},
                             {3, 4, 7, 192, 0}, {4, 5, 5, 64, 0},  {5, 9, INT32_MAX, 320, 0}};
    size_t bound;
    CHECK_INT(packed(values, 6, 10, &bound), 448);
    CHECK_INT(bound, 448);
}

/* In the order of making the small one lies in the middle, and the large one finds no gap. */
TUTTI_TEST(pack_tries_another_order_where_the_first_leaves_gaps)
{
    tutti_packed values[] = {
        {0, 0, 1, 512, 0}, {1, 1, 4, 64, 0}, {2, 2, 4, 576, 0}, {3, 0, 0, 64, 0}, {4, 4, 5, 64, 0}};
    size_t bound;
    size_t bytes = packed(values, 5, 6, &bound);
    CHECK_INT(bound, 704);
    CHECK(bytes <= bound + bound / 10);
}

TUTTI_TEST(pack_of_nothing_and_of_what_lasts_to_the_end)
{
    size_t bound, bytes;
    tutti_packed value = {0, 3, INT32_MAX, 64, 0};
    tutti_pack none = {.collide = overlap};
    CHECK_OK(tutti__pack_bound(&none, 0, &bound));
    CHECK_OK(tutti__pack(&none, 0, &bytes));
    CHECK_INT(bound, 0);
    CHECK_INT(bytes, 0);
    CHECK_INT(packed(&value, 1, 4, &bound), 64);
    CHECK_INT(bound, 64);
}

/* Forward values wanted again in the reverse order, as a training step has them, and noise. */
TUTTI_TEST(pack_stays_near_the_bound_on_random_steps)
{
    enum { LAYERS = 40, VALUES = 3 * LAYERS };
    for (uint64_t seed = 0; seed < 50; seed++) {
        tutti_packed values[VALUES];
        tutti_random_key key = {.seed = seed};
        for (int32_t i = 0; i < LAYERS; i++) {
            int32_t back = 2 * LAYERS - i;
            uint64_t at = (uint64_t)i * 3;
            values[3 * i] =
                (tutti_packed){3 * i, i, back, 64 * (1 + tutti__random_u32(key, at) % 50), 0};
            values[3 * i + 1] = (tutti_packed){3 * i + 1, i, i + 1,
                                               64 * (1 + tutti__random_u32(key, at + 1) % 50), 0};
            values[3 * i + 2] = (tutti_packed){3 * i + 2, back, back + 1,
                                               64 * (1 + tutti__random_u32(key, at + 2) % 50), 0};
        }
        size_t bound, bytes = packed(values, VALUES, 2 * LAYERS + 2, &bound), again = 0;
        CHECK(bytes >= bound && bytes * 10 <= bound * 11);
        tutti_packed forgotten[VALUES]; /* what is over is not looked at: the same places */
        memcpy(forgotten, values, sizeof values);
        tutti_pack pack = {VALUES, forgotten, overlap, NULL, true};
        CHECK_OK(tutti__pack(&pack, bound, &again));
        CHECK_INT(again, bytes);
        for (int i = 0; i < VALUES; i++)
            CHECK_INT(forgotten[i].offset, values[i].offset);
    }
}

/* Too many for all orders: by the moment of making, and where each lies is the lowest gap between
 * those that are wanted then. */
TUTTI_TEST(pack_of_many_values_takes_the_lowest_gaps_in_turn)
{
    enum { MANY = 5000 };
    static tutti_packed values[MANY], in_turn[MANY];
    for (int32_t i = 0; i < MANY; i++) {
        tutti_random_key key = {.seed = 7};
        uint64_t at = (uint64_t)i * 3;
        int32_t first = i / 2, length = (int32_t)(tutti__random_u32(key, at) % 40);
        if (tutti__random_u32(key, at + 1) % 8 == 0)
            length = MANY - 2 * first > 0 ? MANY - 2 * first : 0;
        values[i] = (tutti_packed){i, first, first + length,
                                   64 * (1 + tutti__random_u32(key, at + 2) % 50), 0};
    }
    memcpy(in_turn, values, sizeof values);
    size_t bound, again, bytes = packed(values, MANY, MANY + MANY / 2, &bound);
    tutti_pack pack = {MANY, in_turn, overlap, NULL, true};
    CHECK_OK(tutti__pack(&pack, bound, &again));
    CHECK(again == bytes && bytes >= bound);
    for (int i = 0; i < MANY; i++)
        CHECK_INT(in_turn[i].offset, values[i].offset);
}
