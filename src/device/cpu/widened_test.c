#include <string.h>

#include "base/test.h"
#include "device/cpu/kernel_check.h"
#include "program/kernel.h"

static const char *chosen(const char *op, const char *text)
{
    tutti_sample *sample;
    CHECK_OK(tutti__sample_parse(tutti_op_find(op), text, 1, &sample));
    tutti_kernel_query query = {.node = tutti__sample_rule(sample), .threads = 2};
    const tutti_kernel *kernel = tutti__kernel_pick("cpu", &query);
    tutti__sample_free(sample);
    return kernel == NULL ? "reference" : kernel->name;
}

TUTTI_TEST(kernel_widened_runs_what_has_no_kernel_of_16_bits)
{
    CHECK_STR(chosen("layer_norm", "bf16[4,8] bf16[8] bf16[8] | epsilon=0.001"), "widened");
    CHECK_STR(chosen("sum", "f16[4,8] | axes=[0]"), "widened");
}

TUTTI_TEST(kernel_widened_leaves_the_rest)
{
    CHECK(strcmp(chosen("matmul", "bf16[4,8] bf16[8,3]"), "widened") != 0);
    CHECK(strcmp(chosen("relu", "bf16[4,8]"), "widened") != 0);
    CHECK(strcmp(chosen("layer_norm", "f32[4,8] f32[8] f32[8] | epsilon=0.001"), "widened") != 0);
}

TUTTI_TEST(kernel_widened_matches_the_reference)
{
    CHECK(tutti__kernel_check("layer_norm", "bf16[130,64] bf16[64] bf16[64] | epsilon=0.001", -1) >
          0);
    CHECK(tutti__kernel_check("sum", "bf16[300,70] | axes=[0]", -1) > 0);
    CHECK(tutti__kernel_check("softmax", "f16[130,17]", -1) > 0);
}
