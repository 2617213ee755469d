/* nearest_test.c: words that were meant. */
#include "base/nearest.h"

#include "base/test.h"

TUTTI_TEST(words_have_a_distance)
{
    CHECK_INT(tutti__word_distance("train", "train"), 0);
    CHECK_INT(tutti__word_distance("trian", "train"), 1);
    CHECK_INT(tutti__word_distance("epoch", "epochs"), 1);
    CHECK_INT(tutti__word_distance("", "abc"), 3);
    CHECK_INT(tutti__word_distance("kitten", "sitting"), 3);
    CHECK(tutti__word_distance("a", "012345678901234567890123456789012345678901234") > 40);
}

TUTTI_TEST(the_nearest_word_is_found_where_one_is_near)
{
    tutti_nearest nearest = {.word = "mirored"};
    tutti__nearest_try(&nearest, "one_device");
    CHECK(nearest.found == NULL);
    tutti__nearest_try(&nearest, "mirrored");
    tutti__nearest_try(&nearest, "mirror");
    CHECK_CONTAINS(nearest.found, "mirrored");
}
