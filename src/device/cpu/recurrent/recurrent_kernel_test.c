#include <math.h>

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

/* x [batch, time, features] behind the rows' lengths, which are the last input. */
static void spoil_padding(tutti_sample *sample)
{
    tutti_tensor *x = sample->values[0], *lengths = sample->values[sample->input_count - 1];
    const int64_t *dims = tutti_tensor_dims(x);
    for (int64_t i = 0; i < tutti_tensor_count(x); i++) {
        int64_t row = i / dims[2] / dims[1], time = i / dims[2] % dims[1];
        if ((double)time >= tutti_tensor_get(lengths, row))
            tutti_tensor_set(x, i, i % 2 ? (double)NAN : (double)INFINITY);
    }
}

/* 0 times NaN is not 0. The numbers are of bf16, held in f32, for the kernels that round. */
TUTTI_TEST(kernel_recurrent_backward_does_not_see_padding)
{
    static const char *const samples[][2] = {
        {"simple_rnn_backward",
         "bf16[19,7,5] bf16[19,9] bf16[5,9] bf16[9,9] bf16[19,7,9] bf16[19,7,9] "
         "i32[19]{0:8} | grads=1"},
        {"simple_rnn_backward",
         "bf16[3,7,40] bf16[3,33] bf16[40,33] bf16[33,33]{-0.1:0.1} bf16[3,7,33] "
         "bf16[3,7,33] bf16[3,33] i64[3]{=7,0,2} | grads=3 reverse=true products=bf16"},
        {"gru_backward", "bf16[19,7,5] bf16[19,9] bf16[5,27] bf16[9,27] bf16[19,7,9] "
                         "bf16[19,7,36]{0.1:0.9} bf16[19,7,9] bf16[19,9] i32[19]{0:8} | grads=3"},
        {"gru_backward",
         "bf16[3,7,40] bf16[3,33] bf16[40,99] bf16[33,99]{-0.1:0.1} bf16[3,7,33] "
         "bf16[3,7,132]{0.1:0.9} bf16[3,33] i64[3]{=1,7,0} | grads=2 reverse=true products=bf16"},
        {"lstm_backward", "bf16[19,7,5] bf16[19,9] bf16[19,9] bf16[5,36] bf16[9,36] bf16[19,7,9] "
                          "bf16[19,7,45]{0.1:0.9} bf16[19,7,9] i32[19]{0:8} | grads=1"},
        {"lstm_backward",
         "bf16[3,7,40] bf16[3,33] bf16[3,33] bf16[40,132] bf16[33,132]{-0.1:0.1} bf16[3,7,33] "
         "bf16[3,7,165]{0.1:0.9} bf16[3,7,33] i64[3]{=2,7,6} | grads=1 reverse=true products=bf16"},
    };
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++) {
        tutti_sample *narrow, *sample;
        CHECK_OK(tutti__sample_parse(tutti_op_find(samples[i][0]), samples[i][1], 7, &narrow));
        CHECK_OK(tutti__sample_cast(narrow, TUTTI_BF16, TUTTI_F32, &sample));
        spoil_padding(sample);
        CHECK(tutti__kernel_check_sample(sample, i % 2 ? 0.02 : 1e-3) > 0);
        tutti__sample_free(narrow);
        tutti__sample_free(sample);
    }
}
