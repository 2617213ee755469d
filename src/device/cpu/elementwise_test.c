#include <string.h>

#include "base/test.h"
#include "device/cpu/kernel_check.h"

TUTTI_TEST(kernel_elementwise_matches_every_operator)
{
    const tutti_op *ops[512];
    size_t count = tutti_op_list(TUTTI_COUNT(ops), ops);
    int checked = 0;
    for (size_t i = 0; i < count && i < TUTTI_COUNT(ops); i++)
        if (strcmp(ops[i]->category, "element-wise") == 0) {
            tutti__kernel_check_op(ops[i]->name);
            checked++;
        }
    CHECK(checked >= 50);
    for (int i = 0; i < 4; i++)
        CHECK(tutti__kernel_check(
                  i < 2 ? "gelu" : "gelu_slope",
                  i % 2 ? "f64[5]{=-inf,-100,0,100,nan}" : "f32[5]{=-inf,-100,0,100,nan}", -1) > 0);
    tutti__kernel_check_op("sigmoid_cross_entropy");
    for (int wide = 0; wide < 2; wide++)
        CHECK(tutti__kernel_check("sigmoid_cross_entropy",
                                  wide ? "f64[9]{=inf,inf,inf,-inf,-inf,-inf,nan,nan,3e38} "
                                         "f64[9]{=0,0.3,1,0,0.3,1,0,1,1}"
                                       : "f32[9]{=inf,inf,inf,-inf,-inf,-inf,nan,nan,3e38} "
                                         "f32[9]{=0,0.3,1,0,0.3,1,0,1,1}",
                                  -1) > 0);
}

TUTTI_TEST(kernel_elementwise_broadcasts)
{
    static const char *const shapes[] = {
        "f32[20000] f32[20000]",   "f32[300,70] f32[70]",
        "f32[300,70] f32[300,1]",  "f32[7,1000] f32[1000]",
        "f32[3,5000] f32[3,1]",    "f32[5000,3] f32[3]",
        "f32[4,1,300] f32[50,1]",  "f32[] f32[3000]",
        "f32[2,3,4,5] f32[3,1,5]", "f32[1,1] f32[1]",
        "f32[0,7] f32[7]",         "f32[1025] f32[1025]",
        "f64[3,600] f64[600]",     "bf16[40,70] bf16[70]",
        "f16[900,2] f16[900,1]",   "f32[33,31,17] f32[33,1,17]",
        "f32[65,64,3] f32[64,1]",
    };
    for (size_t i = 0; i < TUTTI_COUNT(shapes); i++) {
        CHECK(tutti__kernel_check("add", shapes[i], -1) > 0);
        CHECK(tutti__kernel_check("sub", shapes[i], -1) > 0);
        CHECK(tutti__kernel_check("greater", shapes[i], -1) > 0);
    }
}

TUTTI_TEST(kernel_elementwise_converts)
{
    static const char *const casts[] = {
        "f32[3000] | dtype=bf16",
        "bf16[3000] | dtype=f32",
        "f32[3000] | dtype=f16",
        "f16[3000] | dtype=f64",
        "i32[2000] | dtype=f32",
        "f32[2000]{-9:9} | dtype=i32",
        "u8[5,700] | dtype=f32",
        "bool[2000] | dtype=f32",
        "f32[2000]{-300:300} | dtype=u8",
        "f64[100] | dtype=i64",
        "i64[100] | dtype=f64",
        "f32[50]{=3e9} | dtype=i32",
        "f32[3]{=nan,inf,-inf} | dtype=i32",
        "f32[3]{=nan,inf,-inf} | dtype=i64",
    };
    for (size_t i = 0; i < TUTTI_COUNT(casts); i++)
        CHECK(tutti__kernel_check("cast", casts[i], -1) > 0);
    CHECK(tutti__kernel_check("where", "bool[40,50] f32[50] f32[40,1]", 0) > 0);
    CHECK(tutti__kernel_check("where", "bool[40,1] bf16[50] bf16[]", 0) > 0);
}
