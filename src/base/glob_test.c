/* glob_test.c: names and the patterns that choose them. */
#include "base/glob.h"

#include "base/test.h"

TUTTI_TEST(patterns_match_whole_names)
{
    CHECK(tutti__glob_match("dense/bias", "dense/bias"));
    CHECK(!tutti__glob_match("dense", "dense/bias"));
    CHECK(!tutti__glob_match("bias", "dense/bias"));
    CHECK(tutti__glob_match("*", ""));
    CHECK(tutti__glob_match("*", "dense/bias"));
    CHECK(!tutti__glob_match("?", ""));
    CHECK(!tutti__glob_match("", ""));
    CHECK(!tutti__glob_match("", "dense"));
}

TUTTI_TEST(a_star_takes_slashes_and_is_tried_again)
{
    CHECK(tutti__glob_match("*/bias", "block_1/dense/bias"));
    CHECK(tutti__glob_match("block_?/*", "block_1/dense/bias"));
    CHECK(!tutti__glob_match("block_?/*", "block_12/dense/bias"));
    CHECK(tutti__glob_match("*ab*ab", "abxabyab"));
    CHECK(!tutti__glob_match("*ab*ab", "abxaby"));
    CHECK(tutti__glob_match("conv**", "conv"));
    CHECK(!tutti__glob_match("a*b*c*d*e*f*g*h*z", "aaaaaaaabbbbbbbbccccccccddddddddeeeeeeeegggg"));
}

TUTTI_TEST(lists_of_patterns_match_if_one_does)
{
    CHECK(tutti__glob_match("conv*, */bias", "dense/bias"));
    CHECK(tutti__glob_match("conv*, */bias ", "conv2d/kernel"));
    CHECK(!tutti__glob_match("conv*,*/bias", "dense/kernel"));
    CHECK(tutti__glob_match(",, dense ,", "dense"));
}

TUTTI_TEST(a_list_is_read_pattern_by_pattern)
{
    const char *list = " conv* ,,a b,*";
    tutti_glob pattern;
    CHECK(tutti__glob_next(&list, &pattern));
    CHECK_INT((int)pattern.length, 5);
    CHECK(tutti__glob_next(&list, &pattern));
    CHECK_INT((int)pattern.length, 3);
    CHECK(tutti__glob_match_one(pattern, "a b"));
    CHECK(tutti__glob_next(&list, &pattern));
    CHECK(!tutti__glob_next(&list, &pattern));
    CHECK(!tutti__glob_next(&list, &pattern));
}
