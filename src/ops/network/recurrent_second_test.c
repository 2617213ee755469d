/* recurrent_second_test.c: second and third derivatives of recurrent networks at the odd sizes that
 * their samples leave out. */
#include "ops/network/network_test.h"

/* One row, one step, no step, rows of no steps, rows beyond the end; both ways. */
TUTTI_TEST(second_derivatives_of_odd_sequences)
{
    static const struct {
        const char *x, *lengths;
    } odd[] = {
        {"f64[1,3,2]", ""},
        {"f64[1,1,2]", ""},
        {"f64[1,1,2]", " i32[1]{=0}"},
        {"f64[1,3,2]", " i64[1]{=2}"},
        {"f64[1,3,2]", " i64[1]{=0}"},
        {"f64[1,0,2]", ""},
        {"f64[1,0,2]", " i32[1]{=1}"},
        {"f64[1,2,2]", " i64[1]{=99}"},
        {"f64[1,2,2]", " i64[1]{=-1}"},
    };
    static const struct {
        const char *op, *operands;
    } cells[] = {
        {"simple_rnn", "f64[1,2] f64[2,2] f64[2,2] f64[2]"},
        {"gru", "f64[1,2] f64[2,6] f64[2,6] f64[2,6]"},
        {"lstm", "f64[1,2] f64[1,2] f64[2,8] f64[2,8] f64[8]"},
    };
    char text[240];
    for (size_t c = 0; c < TUTTI_COUNT(cells); c++)
        for (size_t i = 0; i < TUTTI_COUNT(odd); i++)
            for (int reverse = 0; reverse < 2; reverse++) {
                snprintf(text, sizeof text, "%s %s%s | reverse=%s", odd[i].x, cells[c].operands,
                         odd[i].lengths, reverse ? "true" : "false");
                CHECK_GRADIENTS(cells[c].op, text, 2);
            }
}

TUTTI_TEST(third_derivatives_of_sequences)
{
    CHECK_GRADIENTS("simple_rnn", "f64[2,3,1] f64[2,2] f64[1,2] f64[2,2] f64[2] i32[2]{=3,1}", 3);
    CHECK_GRADIENTS(
        "gru", "f64[2,3,1] f64[2,1] f64[1,3] f64[1,3] f64[2,3] i32[2]{=3,1} | reverse=true", 3);
    CHECK_GRADIENTS("lstm", "f64[2,3,1] f64[2,1] f64[2,1] f64[1,4] f64[1,4] f64[4] i32[2]{=3,1}",
                    3);
}
