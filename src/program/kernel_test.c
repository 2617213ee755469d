#include "program/kernel.h"

#include <string.h>

#include "base/params.h"
#include "base/test.h"
#include "ops/sample.h"

TUTTI_TEST(isa_parameter_hides_better_sets)
{
    static const char *const sets[] = {"avx2", "avx512", "sve"};
    CHECK(tutti__isa_present("base"));
    CHECK(!tutti__isa_present("abacus"));
    CHECK_OK(tutti__param_set("ISA", "base"));
    for (size_t i = 0; i < TUTTI_COUNT(sets); i++)
        CHECK(!tutti__isa_present(sets[i]));
    CHECK(tutti__isa_present("base"));
    CHECK_OK(tutti__param_set("ISA", NULL));
}

TUTTI_TEST(kernel_list_puts_an_operators_own_kernels_first)
{
    const tutti_kernel *kernels[16];
    int count = tutti__kernel_list("matmul", "cpu", 16, kernels);
    CHECK(count > 0 && count <= 16);
    CHECK_INT(tutti__kernel_list("matmul", "cpu", 0, kernels), count);
    CHECK_INT(tutti__kernel_list("matmul", "no such target", 16, kernels), 0);
    CHECK_INT(tutti__kernel_list("no such operator", "cpu", 16, kernels), 0);
    count = tutti__kernel_list("add", "cpu", 16, kernels);
    CHECK(count > 0);
    for (int i = 0; i < count && i < 16; i++)
        CHECK(strcmp(kernels[i]->op, "add") == 0 || kernels[i]->op[0] == '*');
}

static const tutti_kernel *pick(const char *op, const char *text, bool deterministic)
{
    tutti_sample *sample;
    CHECK_OK(tutti__sample_parse(tutti_op_find(op), text, 1, &sample));
    tutti_kernel_query query = {
        .node = tutti__sample_rule(sample), .threads = 1, .deterministic = deterministic};
    const tutti_kernel *kernel = tutti__kernel_pick("cpu", &query);
    tutti__sample_free(sample);
    return kernel;
}

TUTTI_TEST(kernel_pick_takes_the_highest_bid)
{
    CHECK_STR(pick("add", "f32[4] f32[4]", false)->name, "elementwise.direct");
    CHECK_STR(pick("add", "f32[4,3] f32[3]", false)->name, "elementwise.tile");
    CHECK(pick("add", "i32[4] i32[4]", false) == NULL);
    CHECK_STR(pick("matmul", "f32[4,3] f32[3,2]", false)->name, "matmul.gemm");
}

TUTTI_TEST(kernel_pick_is_row_invariant_when_deterministic)
{
    const tutti_kernel *kernel = pick("matmul", "f32[4,3] f32[3,2]", true);
    CHECK(kernel != NULL && kernel->flags & TUTTI_KERNEL_ROW_INVARIANT);
    kernel = pick("layer_norm_backward", "f32[3,5] f32[5] f32[3,5]", true);
    CHECK(kernel == NULL || kernel->flags & TUTTI_KERNEL_ROW_INVARIANT);
}
