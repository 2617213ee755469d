/* number_test.c: calls as numbers, and what they say. */
#include "base/test.h"
#include "comm/coll/number.h"

TUTTI_TEST(comm_calls_are_numbers_that_say_what_they_are)
{
    char text[160];
    tutti_collective c = {.operation = TUTTI_ALL_REDUCE,
                          .size = 3,
                          .count = 100,
                          .dtype = TUTTI_F32,
                          .reduction = TUTTI_MAX};
    uint64_t number = tutti__call_number(&c);
    CHECK_STR(tutti__call_words(number, text, sizeof text), "all_reduce (max) of 100 x f32");
    c.count = 101;
    CHECK(tutti__call_number(&c) != number);
    c.count = 100, c.dtype = TUTTI_I32;
    CHECK(tutti__call_number(&c) != number);
    c = (tutti_collective){
        .operation = TUTTI_BROADCAST, .size = 3, .count = 7, .dtype = TUTTI_BOOL, .root = 2};
    CHECK_STR(tutti__call_words(tutti__call_number(&c), text, sizeof text),
              "broadcast of 7 x bool with root 2");
    c = (tutti_collective){.operation = TUTTI_BARRIER, .size = 3, .dtype = TUTTI_U8};
    CHECK_STR(tutti__call_words(tutti__call_number(&c), text, sizeof text), "barrier");
    int64_t counts[] = {10, 20, 30}, others[] = {10, 30, 20};
    c = (tutti_collective){.operation = TUTTI_ALL_GATHER,
                           .size = 3,
                           .count = 21,
                           .counts = counts,
                           .dtype = TUTTI_F64};
    number = tutti__call_number(&c);
    CHECK_STR(tutti__call_words(number, text, sizeof text), "all_gather of uneven blocks of f64");
    c.counts = others;
    CHECK(tutti__call_number(&c) != number);
}

TUTTI_TEST(comm_calls_that_once_differed_have_another_history_for_good)
{
    enum { CALLS = 50 };
    tutti_collective c = {.operation = TUTTI_BROADCAST, .size = 3, .count = 7, .dtype = TUTTI_F32};
    tutti_collective other = c;
    other.root = 1;
    uint64_t number = tutti__call_number(&c);
    uint64_t one = tutti__call_history(1, number, 0);
    uint64_t two = tutti__call_history(1, tutti__call_number(&other), 0);
    CHECK(tutti__call_history(1, number, 1) != one); /* in another form */
    int alike = 0;
    for (int i = 1; i <= CALLS; i++) {
        alike += tutti__call_tag(one, (uint64_t)i) == tutti__call_tag(two, (uint64_t)i);
        one = tutti__call_history(one, number, 0);
        two = tutti__call_history(two, number, 0);
    }
    CHECK(alike < CALLS / 10); /* by chance */
}
