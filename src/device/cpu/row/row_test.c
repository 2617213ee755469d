#include "base/test.h"
#include "device/cpu/kernel_check.h"

static void check_all(const char *op, int count, const char *const *samples)
{
    tutti__kernel_check_op(op);
    for (int i = 0; i < count; i++)
        CHECK(tutti__kernel_check(op, samples[i], 2e-5) > 0);
}

#define CHECK_ALL(op, ...)                                                                         \
    check_all(op, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),                   \
              (const char *[]){__VA_ARGS__})

TUTTI_TEST(kernel_softmax_matches)
{
    CHECK_ALL("softmax", "f32[100,10]{-9:9}", "f32[3,5000]{-9:9}", "f32[40,70,3]{-9:9} | axis=1",
              "f32[300,200]{-9:9} | axis=0", "f32[7,1]", "f32[0,4]", "f32[2,3]{=1,2,-inf,0,1,2}",
              "f32[3]{=1,inf,-inf}", "f32[2,3,129] | axis=1");
    CHECK_ALL("log_softmax", "f32[100,10]{-9:9}", "f32[3,5000]{-9:9}",
              "f32[40,70,3]{-9:9} | axis=1", "f32[300,200]{-9:9} | axis=0", "f32[7,1]", "f32[0,4]",
              "f32[2,3]{=1e6}", "f32[3,20]{1e5:1.0001e5}", "f32[4,3,5]{=3e7} | axis=1");
}

TUTTI_TEST(kernel_losses_match)
{
    CHECK_ALL("softmax_cross_entropy", "f32[100,10]{-9:9} f32[100,10]{0:1}",
              "f32[3,5000]{-9:9} f32[3,5000]{0:1}", "f32[0,4] f32[0,4]",
              "f32[2,3]{=1e6} f32[2,3]{0:1}");
    CHECK_ALL("sparse_softmax_cross_entropy", "f32[100,10]{-9:9} i32[100]{0:10}",
              "f32[3,5000]{-9:9} i64[3]{0:5000}", "f32[9,7] u8[9]{0:7}", "f32[0,4] i32[0]",
              "f32[3,4]{=3e7} i32[3]{0:4}");
    CHECK_ALL("sparse_softmax_cross_entropy_backward",
              "f32[3,3]{=1,inf,2,-inf,-inf,-inf,0,-inf,1} i32[3]{=0,1,2}",
              "f32[100,10]{-9:9} i32[100]{0:10} f32[100]",
              "f32[3,5000]{-9:9} i64[3]{0:5000} f32[3]", "f32[64,10] i32[64]{0:10}");
}

TUTTI_TEST(kernel_losses_name_a_label_that_is_no_class)
{
    static const char *const ops[] = {"sparse_softmax_cross_entropy",
                                      "sparse_softmax_cross_entropy_backward"};
    for (size_t i = 0; i < TUTTI_COUNT(ops); i++)
        CHECK_CONTAINS(tutti__kernel_error(ops[i], "f32[2,3] i32[2]{=1,3}", TUTTI_OUT_OF_RANGE),
                       "label 3 in row 1");
}

TUTTI_TEST(kernel_norms_match)
{
    CHECK_ALL("layer_norm", "f32[100,64]{-2:2} f32[64] f32[64]",
              "f32[3,1001]{-2:2} f32[1001] f32[1001]", "f32[500,3]{2:4} f32[3] f32[3]",
              "f32[0,4] f32[4] f32[4]", "f32[3,1001]{=1000.7} f32[1001] f32[1001]");
    CHECK_ALL("rms_norm", "f32[100,64]{-2:2} f32[64]", "f32[3,1001]{-2:2} f32[1001]");
    CHECK_ALL("layer_norm_backward", "f32[100,64]{-2:2} f32[64] f32[100,64]",
              "f32[3,1001]{-2:2} f32[1001] f32[3,1001]", "f32[5000,5]{-2:2} f32[5] f32[5000,5]",
              "f32[0,4] f32[4] f32[0,4]");
    CHECK_ALL("rms_norm_backward", "f32[100,64]{-2:2} f32[64] f32[100,64]",
              "f32[3,1001]{-2:2} f32[1001] f32[3,1001]", "f32[5000,5]{-2:2} f32[5] f32[5000,5]");
    CHECK_ALL("batch_norm", "f32[2000,7]{1:3} f32[7] f32[7]",
              "f32[4,30,30,16]{-2:2} f32[16] f32[16]", "f32[1,5] f32[5] f32[5]",
              "f32[5000,19]{=1000.7} f32[19] f32[19]");
    CHECK_ALL("batch_norm_backward", "f32[2000,7]{-2:2} f32[7] f32[7] f32[7]{0.5:2} f32[2000,7]",
              "f32[4,30,30,16]{-2:2} f32[16] f32[16] f32[16]{0.5:2} f32[4,30,30,16]");
}
