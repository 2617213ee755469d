#include "base/test.h"
#include "device/cpu/kernel_check.h"

TUTTI_TEST(kernel_recurrent_forward_matches)
{
    tutti__kernel_check_op("lstm");
    tutti__kernel_check_op("gru");
    tutti__kernel_check_op("simple_rnn");
    static const char *const lstms[] = {
        "f32[19,7,5] f32[19,33] f32[19,33] f32[5,132] f32[33,132] f32[132]",
        "f32[32,5,16] f32[32,64] f32[32,64] f32[16,256] f32[64,256] f32[256] | reverse=true",
        "f32[1,9,3] f32[1,8] f32[1,8] f32[3,32] f32[8,32] f32[32]",
        "f32[20,6,4] f32[20,10] f32[20,10] f32[4,40] f32[10,40] f32[40] i32[20]{0:7}",
    };
    for (size_t i = 0; i < TUTTI_COUNT(lstms); i++)
        CHECK(tutti__kernel_check("lstm", lstms[i], 1e-4) > 0);
    CHECK(tutti__kernel_check("gru", "f32[19,7,5] f32[19,33] f32[5,99] f32[33,99] f32[2,99]",
                              1e-4) > 0);
    CHECK(tutti__kernel_check(
              "gru", "f32[9,7,5] f32[9,6] f32[5,18] f32[6,18] f32[2,18] i64[9]{0:8}", 1e-4) > 0);
    CHECK(tutti__kernel_check("simple_rnn", "f32[19,7,5] f32[19,33] f32[5,33] f32[33,33] f32[33]",
                              1e-4) > 0);
}

TUTTI_TEST(kernel_recurrent_backward_matches)
{
    tutti__kernel_check_op("lstm_backward");
    tutti__kernel_check_op("gru_backward");
    tutti__kernel_check_op("simple_rnn_backward");
    CHECK(tutti__kernel_check("lstm_backward",
                              "f32[19,7,5] f32[19,9] f32[19,9] f32[5,36] f32[9,36] f32[19,7,9] "
                              "f32[19,7,45]{0.1:0.9} f32[19,7,9] i32[19]{0:8} | grads=1",
                              1e-3) > 0);
    CHECK(tutti__kernel_check("gru_backward",
                              "f32[19,7,5] f32[19,9] f32[5,27] f32[9,27] f32[19,7,9] "
                              "f32[19,7,36]{0.1:0.9} f32[19,7,9] f32[19,9] | grads=3 reverse=true",
                              1e-3) > 0);
}
