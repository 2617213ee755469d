/* operators_test.c: which operators have a kernel, and that the text of every element-wise one
 * compiles. What kernels compute is shown by lab/operators.c, on a GPU or an emulated one. */
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "device/cuda/compile/compile.h"
#include "device/cuda/driver/load.h"
#include "device/cuda/operators/body.h"
#include "ops/sample.h"
#include "tables/op.h"

TUTTI_TEST(cuda_has_a_text_for_every_element_wise_operator)
{
    for (int i = 0; tutti__op_table[i]; i++)
        if (tutti__op_table[i]->flags & TUTTI_OP_ELEMENTWISE &&
            !tutti__cuda_has_text(tutti__op_table[i]))
            tutti__test_fail(__FILE__, __LINE__, "elementwise.cuh has no op_%s",
                             tutti__op_table[i]->name);
}

/* What runs on the host, or waits for others, needs none. */
static bool is_for_kernels(const tutti_op *op)
{
    static const uint32_t elsewhere = TUTTI_OP_CONTROL | TUTTI_OP_COLLECTIVE | TUTTI_OP_BLOCKING |
                                      TUTTI_OP_HANDLE | TUTTI_OP_HOST | TUTTI_OP_DYNAMIC;
    return !(op->flags & elsewhere) && op->reference && strcmp(op->category, "state") != 0 &&
           strcmp(op->category, "text") != 0;
}

static bool has_kernel(const tutti_op *op)
{
    for (const tutti_cuda_kernel *const *kernel = tutti__cuda_kernels(); *kernel; kernel++)
        if (tutti__cuda_kernel_covers(*kernel, op))
            return true;
    return false;
}

/* Run on the CPU so far; a kernel for one of them takes its name out of here. */
static const char *const without[] = {
#include "device/cuda/operators/without.h"
};

TUTTI_TEST(cuda_has_a_kernel_for_every_operator_but_those_listed)
{
    for (int i = 0; tutti__op_table[i]; i++) {
        const tutti_op *op = tutti__op_table[i];
        bool listed = false;
        for (size_t k = 0; k < TUTTI_COUNT(without); k++)
            listed |= strcmp(without[k], op->name) == 0;
        if (is_for_kernels(op) && has_kernel(op) == listed)
            tutti__test_fail(__FILE__, __LINE__,
                             listed ? "%s has a kernel: it need not be listed any more"
                                    : "%s has no kernel for a GPU",
                             op->name);
    }
}

/* Every fourth element-wise operator, in the type of its first sample: for one chip, since what
 * differs between chips is not in these texts. */
static void compile_fourth(int first)
{
    const tutti_nvrtc *nvrtc;
    int count = 0;
    if (tutti__cuda_nvrtc(&nvrtc) != TUTTI_OK)
        SKIP("kernels are not compiled here: %s", tutti_error_message());
    for (int i = 0; tutti__op_table[i]; i++) {
        const tutti_op *op = tutti__op_table[i];
        tutti_sample *sample;
        tutti_text text = {0};
        void *cubin;
        size_t size;
        if (!(op->flags & TUTTI_OP_ELEMENTWISE) || count++ % 4 != first)
            continue;
        CHECK_OK(tutti__sample_parse(op, op->samples[0], 7, &sample));
        tutti_kernel_query query = {.node = tutti__sample_rule(sample), .threads = 1};
        CHECK_OK(tutti__cuda_elementwise_text(&query, &text));
        const tutti_cuda_job job = {op->name, text.data, "--fmad=false", 80, NULL};
        CHECK_OK(tutti__cuda_compile(&job, &cubin, &size, NULL));
        free(cubin);
        tutti__text_free(&text);
        tutti__sample_free(sample);
    }
}

TUTTI_TEST(cuda_element_wise_texts_compile_1_of_4)
{
    compile_fourth(0);
}

TUTTI_TEST(cuda_element_wise_texts_compile_2_of_4)
{
    compile_fourth(1);
}

TUTTI_TEST(cuda_element_wise_texts_compile_3_of_4)
{
    compile_fourth(2);
}

TUTTI_TEST(cuda_element_wise_texts_compile_4_of_4)
{
    compile_fourth(3);
}
