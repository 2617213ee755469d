#include "program/kernel.h"

#include <stdio.h>
#include <string.h>

#include "base/params.h"
#include "base/test.h"
#include "ops/sample.h"

TUTTI_TEST(an_unknown_isa_is_refused)
{
    CHECK_OK(tutti__param_set("ISA", "abacus"));
    CHECK_STATUS(tutti__isa_check_setting(), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "TUTTI_ISA is 'abacus', needs base, avx2");
    CHECK_OK(tutti__param_set("ISA", ""));
    CHECK_OK(tutti__isa_check_setting());
    CHECK_OK(tutti__param_set("ISA", "avx512")); /* known, if not to this CPU */
    CHECK_OK(tutti__isa_check_setting());
    CHECK_OK(tutti__param_set("ISA", NULL));
}

TUTTI_TEST(isa_parameter_hides_better_sets)
{
    static const char *const sets[] = {"avx2", "avx512", "sve"};
    CHECK(tutti__isa_present("base"));
    CHECK(!tutti__isa_present("abacus"));
    CHECK_OK(tutti__param_set("ISA", "base"));
    for (size_t i = 0; i < TUTTI_COUNT(sets); i++)
        CHECK(!tutti__isa_present(sets[i]));
    CHECK(tutti__isa_present("base"));
    CHECK_OK(tutti__param_set("ISA", "avx512vnni"));
    CHECK(!tutti__isa_present("avx512bf16"));
    CHECK_OK(tutti__param_set("ISA", NULL));
}

TUTTI_TEST(kernel_list_puts_an_operators_own_kernels_first)
{
    enum { MOST = 64 };
    const tutti_kernel *kernels[MOST] = {0};
    int count = tutti__kernel_list("matmul", "cpu", MOST, kernels);
    CHECK(count > 0 && count <= MOST);
    CHECK_INT(tutti__kernel_list("matmul", "cpu", 0, kernels), count);
    CHECK_INT(tutti__kernel_list("matmul", "no such target", MOST, kernels), 0);
    CHECK_INT(tutti__kernel_list("no such operator", "cpu", MOST, kernels), 0);
    count = tutti__kernel_list("add", "cpu", MOST, kernels);
    CHECK(count > 0);
    for (int i = 0; i < count && i < MOST; i++)
        CHECK(strcmp(kernels[i]->op, "add") == 0 || kernels[i]->op[0] == '*');
}

static bool is_listed(const char *op, const char *kernel)
{
    const tutti_kernel *kernels[64];
    int count = tutti__kernel_list(op, "cpu", 64, kernels);
    CHECK(count <= 64);
    for (int i = 0; i < count; i++)
        if (strcmp(kernels[i]->name, kernel) == 0)
            return true;
    return false;
}

TUTTI_TEST(kernel_list_leaves_out_general_kernels_that_never_bid)
{
    CHECK(is_listed("add", "elementwise.integer") && is_listed("add", "elementwise.direct"));
    CHECK(!is_listed("exp", "elementwise.integer") && is_listed("exp", "elementwise.tile"));
    CHECK(is_listed("cast", "elementwise.integer") && is_listed("cast", "elementwise.tile"));
    CHECK(!is_listed("bitwise_or", "elementwise.tile") &&
          !is_listed("bitwise_or", "elementwise.direct"));
    CHECK(is_listed("layer_norm", "widened") && !is_listed("reshape", "widened"));
    CHECK(!is_listed("send", "widened") && !is_listed("no_op", "widened"));
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
    CHECK_STR(pick("add", "i32[4] i32[4]", false)->name, "elementwise.integer");
    CHECK(pick("unique", "i32[4]", false) == NULL);
    CHECK_STR(pick("matmul", "f32[4,3] f32[3,2]", false)->name, "matmul.gemm");
}

TUTTI_TEST(kernel_pick_is_row_invariant_when_deterministic)
{
    const tutti_kernel *kernel = pick("matmul", "f32[4,3] f32[3,2]", true);
    CHECK(kernel != NULL && kernel->flags & TUTTI_KERNEL_ROW_INVARIANT);
    kernel = pick("layer_norm_backward", "f32[3,5] f32[5] f32[3,5]", true);
    CHECK(kernel == NULL || kernel->flags & TUTTI_KERNEL_ROW_INVARIANT);
}

/* A query that is read a second time may find no memory, or another kernel inside. */
static void check_room(const char *op, const char *text, const char *name)
{
    tutti_sample *sample;
    void *plan;
    CHECK_OK(tutti__sample_parse(tutti_op_find(op), text, 1, &sample));
    tutti_kernel_query query = {.node = tutti__sample_rule(sample), .threads = 2};
    const tutti_kernel *kernel = tutti__kernel_pick("cpu", &query);
    CHECK_STR(kernel->name, name);
    CHECK_OK(kernel->prepare(&query, &plan));
    CHECK(tutti__kernel_workspace(kernel, NULL, plan) > 0);
    kernel->discard(plan);
    tutti__sample_free(sample);
}

TUTTI_TEST(kernel_plans_that_are_compiled_know_their_workspace)
{
    check_room("add", "bf16[4,3] bf16[3]", "elementwise.tile");
    check_room("softmax", "f16[130,17]", "widened");
}
