#include "base/params.h"
#include "base/test.h"
#include "device/cpu/kernel_check.h"
#include "program/kernel.h"

TUTTI_TEST(kernel_matmul_matches_samples)
{
    tutti__kernel_check_op("matmul");
}

TUTTI_TEST(kernel_matmul_matches_larger_shapes)
{
    static const char *const samples[] = {
        "f32[64,100] f32[100,70]",
        "f32[100,64] f32[100,70] | transpose_a=true",
        "f32[64,100] f32[70,100] | transpose_b=true",
        "f32[100,64] f32[70,100] | transpose_a=true transpose_b=true",
        "f32[200,300] f32[300,150]",
        "f32[8,1500] f32[1500,9]",
        "f32[1,77] f32[77,1]",
        "f32[1,1500] f32[1500,9]", /* one row */
        "f32[1,900] f32[900,64]",
        "f32[1,900] f32[1003,900] | transpose_b=true",
        "f32[900,1] f32[900,130] | transpose_a=true",
        "f32[1,1,40] f32[40,133]",
        "f32[0,5] f32[5,3]",
        "f32[5,0] f32[0,3]",
        "f32[6,17,19] f32[6,19,23]",
        "f32[6,17,19] f32[19,23]",
        "f32[2,1,17,19] f32[3,19,5]",
        "f32[6,19,17] f32[19,23] | transpose_a=true",
        "f32[3,2,30,40] f32[3,2,50,40] | transpose_b=true",
        "f32[2,130,140] f32[2,140,150]",
        "bf16[33,65] bf16[65,34]",
        "bf16[65,33] bf16[65,34] | transpose_a=true",
        "bf16[33,65] bf16[34,65] | transpose_b=true",
        "bf16[65,33] bf16[34,65] | transpose_a=true transpose_b=true",
        "bf16[6,17,19] bf16[6,19,23]",
        "bf16[3,2,30,40] bf16[3,2,50,40] | transpose_b=true",
        "bf16[200,300] bf16[300,150]",
        "bf16[8,5000] bf16[5000,9]",
        "bf16[1,77] bf16[77,1]",
        "bf16[5,0] bf16[0,3]",
        "f64[33,65] f64[65,34]",
        "f64[2,33,65] f64[34,65] | transpose_b=true",
        "f64[65,33] f64[2,3,65,34] | transpose_a=true",
        "f64[70,600] f64[600,40]", /* several blocks along k */
        "f64[600,70] f64[40,600] | transpose_a=true transpose_b=true",
        "f64[3,600] f64[600,40]", /* few rows */
        "f64[1,300] f64[300,133]",
        "f64[2,3,50,65] f64[65,10]",
        "f64[0,50] f64[50,10]",
        "f16[3,33,65] f16[65,34]",
        "i8[33,65]{-128:128} i8[65,34]{-128:128}", /* integers wrap round */
        "u8[2,33,65]{0:256} u8[34,65]{0:256} | transpose_b=true",
        "i32[65,33]{-2e9:2e9} i32[2,3,65,34]{-2e9:2e9} | transpose_a=true",
        "i64[65,5]{-8e18:8e18} i64[7,65]{-8e18:8e18} | transpose_a=true transpose_b=true",
        "i64[2,1,3,4] i64[5,4,1]",
        "i32[0,5] i32[5,3]",
        "i32[5,0] i32[0,3]",
    };
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
        CHECK(tutti__kernel_check("matmul", samples[i], -1) > 0);
}

/* Dot products, in one piece and in several; what is not bids all the same. */
TUTTI_TEST(kernel_matmul_matches_dot_products)
{
    static const char *const samples[] = {
        "f32[1,1000] f32[1000,1]",
        "f32[70,1100] f32[1100,1]",
        "f32[3,5,300] f32[300,1]",
        "f32[70,1100] f32[1,1100] | transpose_b=true",
        "f32[1,1100] f32[70,1100] | transpose_b=true",
        "f32[1100,1] f32[70,1100] | transpose_a=true transpose_b=true",
        "f32[3,5000] f32[5000,3]",
        "f32[5000,3] f32[5000,8] | transpose_a=true",
        "f32[5000,8] f32[3,5000] | transpose_a=true transpose_b=true",
        "f32[1,70000] f32[70000,1]",
        "bf16[70,1100] bf16[1100,1]",
        "bf16[1,1100] bf16[70,1100] | transpose_b=true",
        "bf16[5000,3] bf16[5000,4] | transpose_a=true",
        "f16[70,1100] f16[1100,1]",
        "f16[5000,3] f16[5000,4] | transpose_a=true",
        "f64[70,1101] f64[1101,1]",
        "f64[5000,3] f64[5000,4] | transpose_a=true",
        "i8[70,1100]{-128:128} i8[1100,1]{-128:128}",
        "u8[1,1100]{0:256} u8[70,1100]{0:256} | transpose_b=true",
        "i32[5000,3]{-2e9:2e9} i32[5000,4]{-2e9:2e9} | transpose_a=true",
        "i64[70,1100]{-8e18:8e18} i64[1100,1]{-8e18:8e18}",
    };
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
        CHECK(tutti__kernel_check("matmul", samples[i], -1) > 1);
}

/* They round as the tiles do; `gemm_test.c` says what tiles give. */
TUTTI_TEST(kernel_matmul_matches_batches_of_small_products)
{
    static const char *const samples[] = {
        "f32[1000,3,3] f32[1000,3,3]",
        "f32[1000,3,3] f32[1000,3,1]",
        "f32[2,5,4,4] f32[5,4,4]",
        "f32[3,1,4,2] f32[7,2,1]",
        "f32[70,8,7] f32[70,7,5]",
        "f32[70,7,8] f32[70,7,5] | transpose_a=true",
        "f32[70,8,7] f32[70,5,7] | transpose_b=true",
        "f32[70,4,4] f32[70,4,4] | transpose_a=true transpose_b=true",
        "f32[1,3,3] f32[2000,3,4]",
    };
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
        CHECK(tutti__kernel_check("matmul", samples[i], -1) > 1);
}

TUTTI_TEST(kernel_matmul_names_a_library_that_is_unknown)
{
    tutti_sample *sample;
    CHECK_OK(tutti__sample_parse(tutti_op_find("matmul"), "f32[2,3] f32[3,2]", 1, &sample));
    CHECK_OK(tutti__param_set("GEMM", "abacus"));
    const tutti_kernel *kernels[8];
    CHECK(tutti__kernel_list("matmul", "cpu", 8, kernels) > 0);
    tutti_kernel_query query = {.node = tutti__sample_rule(sample), .threads = 1};
    void *plan = NULL;
    CHECK_STATUS(kernels[0]->prepare(&query, &plan), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "abacus");
    CHECK_OK(tutti__param_set("GEMM", NULL));
    tutti__sample_free(sample);
}
