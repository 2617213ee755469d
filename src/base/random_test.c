#include "base/random.h"

#include <math.h>

#include "base/test.h"

static void check_block(tutti_random_key key, uint64_t index, const uint32_t expected[4])
{
    uint32_t words[4];
    tutti__random_block(key, index, words);
    for (int i = 0; i < 4; i++) {
        CHECK_INT(words[i], expected[i]);
        if (index < UINT64_MAX / 4)
            CHECK_INT(tutti__random_u32(key, 4 * index + (uint64_t)i), expected[i]);
    }
}

/* kat_vectors of Random123, philox4x32 10. */
TUTTI_TEST(random_known_answers)
{
    check_block((tutti_random_key){0, 0}, 0,
                (uint32_t[4]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    check_block((tutti_random_key){UINT64_MAX, UINT64_MAX}, UINT64_MAX,
                (uint32_t[4]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    check_block((tutti_random_key){UINT64_C(0x299f31d0a4093822), UINT64_C(0x0370734413198a2e)},
                UINT64_C(0x85a308d3243f6a88),
                (uint32_t[4]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TUTTI_TEST(random_f32_is_uniform)
{
    tutti_random_key key = {.seed = 42, .stream = 7};
    double sum = 0, squares = 0;
    enum { N = 100000 };
    for (uint64_t i = 0; i < N; i++) {
        float x = tutti__random_f32(key, i);
        double wide = (double)x;
        CHECK(x >= 0 && x < 1);
        CHECK(x * 0x1p24f == floorf(x * 0x1p24f));
        sum += wide;
        squares += wide * wide;
    }
    CHECK_NEAR(sum / N, 0.5, 0.005);
    CHECK_NEAR(squares / N, 1.0 / 3, 0.005);
}

TUTTI_TEST(random_normal_has_normal_moments)
{
    tutti_random_key key = {.seed = 3, .stream = 1};
    double sum = 0, squares = 0, fourth = 0, neighbours = 0, before = 0;
    enum { N = 100000 };
    for (uint64_t i = 0; i < N; i++) {
        double x = tutti__random_normal(key, i);
        CHECK(isfinite(x));
        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
        neighbours += x * before;
        before = x;
    }
    CHECK_NEAR(sum / N, 0, 0.02);
    CHECK_NEAR(squares / N, 1, 0.03);
    CHECK_NEAR(fourth / N, 3, 0.2);
    CHECK_NEAR(neighbours / N, 0, 0.02);
}

TUTTI_TEST(random_normal_is_box_muller)
{
    tutti_random_key key = {.seed = 9, .stream = 2};
    for (uint64_t i = 0; i < 64; i += 2) {
        double u = ((double)tutti__random_u32(key, i) + 1) / 4294967296.0;
        double v = (double)tutti__random_u32(key, i + 1) / 4294967296.0 * 2 * acos(-1);
        CHECK_NEAR(tutti__random_normal(key, i), sqrt(-2 * log(u)) * cos(v), 1e-12);
        CHECK_NEAR(tutti__random_normal(key, i + 1), sqrt(-2 * log(u)) * sin(v), 1e-12);
    }
}

TUTTI_TEST(random_below_is_even)
{
    tutti_random_key key = {.seed = 11, .stream = 0};
    int counts[6] = {0};
    for (uint64_t i = 0; i < 60000; i++) {
        uint64_t x = tutti__random_below(key, i, 6);
        CHECK(x < 6);
        counts[x]++;
    }
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(counts[i], 10000, 500);
    for (uint64_t i = 0; i < 100; i++) {
        CHECK_INT(tutti__random_below(key, i, 1), 0);
        CHECK_INT(tutti__random_below(key, i, (uint64_t)1 << 32),
                  tutti__random_u32(key, 2 * i + 1));
    }
}
