/* rounded_test.c: convolutions by products of bf16, against the references. */
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "device/cpu/gemm/tile.h"
#include "device/cpu/kernel_check.h"
#include "program/kernel.h"

static const char *const skipped = "this CPU multiplies no bf16";

/* The kernel of bf16 that bids, or NULL. */
static const tutti_kernel *rounded_kernel(const tutti_kernel_query *query)
{
    const tutti_kernel *kernels[96];
    int count = tutti__kernel_list(query->node.op->name, "cpu", 96, kernels);
    for (int i = 0; i < count && i < 96; i++)
        if (strstr(kernels[i]->name, ".bf16") != NULL && kernels[i]->score(query) > 0)
            return kernels[i];
    return NULL;
}

static bool bids_rounded(const tutti_sample *sample)
{
    tutti_kernel_query query = {.node = tutti__sample_rule(sample), .threads = 3};
    return rounded_kernel(&query) != NULL;
}

/* Numbers of bf16 held in f32: rounding them changes nothing, so that the sums must be near. */
static void check_rounded(const char *op, const char *text)
{
    tutti_sample *narrow, *wide;
    CHECK_OK(tutti__sample_parse(tutti_op_find(op), text, 7, &narrow));
    CHECK_OK(tutti__sample_cast(narrow, TUTTI_BF16, TUTTI_F32, &wide));
    if (!bids_rounded(wide))
        tutti__test_fail(__FILE__, __LINE__, "no kernel of bf16 bids for %s \"%s\"", op, text);
    CHECK(tutti__kernel_check_sample(wide, 1e-3) > 1);
    tutti__sample_free(wide);
    tutti__sample_free(narrow);
}

TUTTI_TEST(rounded_convolutions_agree_with_their_references)
{
    static const char *const samples[] = {
        "bf16[3,28,28,16] bf16[3,3,16,16] | padding=same strides=[2,2] products=bf16",
        "bf16[2,14,14,16] bf16[3,3,16,16] | padding=same products=bf16",
        "bf16[1,10,14,13] bf16[3,3,13,21] | products=bf16",
        "bf16[5,4,4,64] bf16[3,3,64,64] | padding=same products=bf16",
        "bf16[2,9,13,9] bf16[3,3,9,17] | padding=same strides=[2,2] products=bf16",
        "bf16[2,9,8,16] bf16[1,1,16,40] | padding=same strides=[2,2] products=bf16",
        "bf16[1,11,8,8] bf16[5,3,8,10] | dilations=[2,2] padding=same products=bf16",
        "bf16[1,12,12,8] bf16[3,3,8,8] | strides=[3,2] dilations=[2,3] products=bf16",
        "bf16[1,8,7,12] bf16[3,3,12,12] | padding=explicit pads=[3,1,0,4] products=bf16",
        "bf16[1,6,5,160] bf16[3,3,160,33] | padding=same products=bf16", /* k in blocks */
        "bf16[1,70,9,96] bf16[3,3,96,8] | padding=same products=bf16",   /* rows in pieces */
        "bf16[2,5,20,8] bf16[2,7,8,9] | padding=explicit pads=[1,0,6,6] strides=[1,4] products=bf16",
    };
    if (tutti__gemm_bf16_tile() == NULL)
        SKIP("%s", skipped);
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
        check_rounded("conv2d", samples[i]);
}

TUTTI_TEST(rounded_gradients_of_inputs_agree_with_their_references)
{
    static const char *const samples[] = {
        "bf16[3,3,16,16] bf16[3,14,14,16] | padding=same strides=[2,2] size=[28,28] products=bf16",
        "bf16[3,3,16,16] bf16[2,13,9,16] | padding=same size=[13,9] products=bf16",
        "bf16[3,3,13,21] bf16[1,8,12,21] | size=[10,14] products=bf16",
        "bf16[1,1,16,16] bf16[2,5,4,16] | padding=same strides=[2,2] size=[9,8] products=bf16",
        "bf16[5,3,8,10] bf16[1,11,8,10] | dilations=[2,2] padding=same size=[11,8] products=bf16",
        "bf16[3,3,8,9] bf16[1,3,3,9] | strides=[3,2] dilations=[2,3] size=[12,12] products=bf16",
        "bf16[2,2,8,9] bf16[1,2,2,9] | strides=[4,3] size=[7,6] products=bf16",
        "bf16[5,3,9,8] bf16[1,8,6,8] | padding=explicit pads=[3,1,0,4] size=[8,4] products=bf16",
        "bf16[3,3,12,200] bf16[1,6,5,200] | padding=same size=[6,5] products=bf16",
    };
    if (tutti__gemm_bf16_tile() == NULL)
        SKIP("%s", skipped);
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
        check_rounded("conv2d_backward_input", samples[i]);
}

TUTTI_TEST(rounded_gradients_of_kernels_agree_with_their_references)
{
    static const char *const samples[] = {
        "bf16[19,28,28,16] bf16[19,14,14,16] | padding=same strides=[2,2] size=[3,3] products=bf16",
        "bf16[2,13,9,16] bf16[2,13,9,16] | padding=same size=[3,3] products=bf16",
        "bf16[40,4,4,64] bf16[40,4,4,64] | padding=same size=[3,3] products=bf16",
        "bf16[70,12,12,16] bf16[70,12,12,16] | padding=same size=[3,3] products=bf16",
        "bf16[3,10,14,13] bf16[3,8,12,21] | size=[3,3] products=bf16",
        "bf16[2,9,8,16] bf16[2,5,4,16] | padding=same strides=[2,2] size=[1,1] products=bf16",
        "bf16[5,11,8,8] bf16[5,11,8,10] | dilations=[2,2] padding=same size=[5,3] products=bf16",
        "bf16[2,8,7,12] bf16[2,10,9,12] | padding=explicit pads=[3,1,0,4] size=[3,3] products=bf16",
        "bf16[3,12,12,8] bf16[3,3,3,8] | strides=[3,2] dilations=[2,3] size=[3,3] products=bf16",
        "bf16[3,60,30,40] bf16[3,60,30,24] | padding=same size=[3,3] products=bf16", /* rows */
        "bf16[2,7,7,9] bf16[2,2,2,8] | strides=[4,4] size=[2,2] products=bf16",
    };
    if (tutti__gemm_bf16_tile() == NULL)
        SKIP("%s", skipped);
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
        check_rounded("conv2d_backward_kernel", samples[i]);
}

/* Without leave nothing is rounded. */
TUTTI_TEST(full_convolutions_are_not_rounded)
{
    tutti_sample *sample;
    CHECK_OK(tutti__sample_parse(tutti_op_find("conv2d"),
                                 "f32[2,14,14,16] f32[3,3,16,16] | padding=same", 7, &sample));
    CHECK(!bids_rounded(sample));
    tutti__sample_free(sample);
}

static tutti_view view_of(tutti_tensor *tensor)
{
    return (tutti_view){tutti_tensor_data(tensor), tutti_tensor_dtype(tensor),
                        tutti_tensor_rank(tensor), tutti_tensor_dims(tensor), NULL};
}

/* The sample's output by the kernel of bf16. */
static tutti_tensor *run_rounded(const tutti_sample *sample)
{
    tutti_kernel_query query = {.node = tutti__sample_rule(sample), .threads = 1};
    const tutti_kernel *kernel = rounded_kernel(&query);
    tutti_tensor *y;
    void *plan;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 4, sample->node->types[0].dims, &y));
    CHECK_OK(kernel->prepare(&query, &plan));
    void *workspace =
        aligned_alloc(64, (tutti__kernel_workspace(kernel, &query, plan) + 63) / 64 * 64);
    CHECK(workspace != NULL);
    tutti_view inputs[] = {view_of(sample->values[0]), view_of(sample->values[1])};
    tutti_view output = view_of(y);
    tutti_kernel_call call = {.op = sample->op,
                              .attrs = sample->attrs,
                              .attr_count = sample->attr_count,
                              .input_count = 2,
                              .output_count = 1,
                              .inputs = inputs,
                              .outputs = &output,
                              .workspace = workspace,
                              .plan = plan};
    CHECK_OK(kernel->run(&call));
    kernel->discard(plan);
    free(workspace);
    return y;
}

/* An image's result is the same, bit by bit, alone and beside others. `images`: which input. */
static void check_alone(const char *op, const char *many, const char *one, int images)
{
    tutti_sample *all, *alone;
    CHECK_OK(tutti__sample_parse(tutti_op_find(op), many, 7, &all));
    CHECK_OK(tutti__sample_parse(tutti_op_find(op), one, 7, &alone));
    for (int i = 0; i < 2; i++) { /* the kernel, and the last image */
        int64_t count = tutti_tensor_count(alone->values[i]);
        const float *from = tutti_tensor_data(all->values[i]);
        if (i == images)
            from += tutti_tensor_count(all->values[i]) - count;
        memcpy(tutti_tensor_data(alone->values[i]), from, (size_t)count * sizeof *from);
    }
    tutti_tensor *y = run_rounded(all), *last = run_rounded(alone);
    int64_t count = tutti_tensor_count(last);
    const float *end = (const float *)tutti_tensor_data(y) + tutti_tensor_count(y);
    CHECK(memcmp(end - count, tutti_tensor_data(last), (size_t)count * sizeof *end) == 0);
    tutti_tensor_release(y);
    tutti_tensor_release(last);
    tutti__sample_free(all);
    tutti__sample_free(alone);
}

TUTTI_TEST(rounded_images_do_not_depend_on_those_beside_them)
{
    if (tutti__gemm_bf16_tile() == NULL)
        SKIP("%s", skipped);
    check_alone("conv2d", "f32[17,15,13,20] f32[3,3,20,12] | padding=same products=bf16",
                "f32[1,15,13,20] f32[3,3,20,12] | padding=same products=bf16", 0);
    check_alone("conv2d_backward_input",
                "f32[3,3,12,20] f32[17,8,7,20] | padding=same strides=[2,2] size=[15,13] "
                "products=bf16",
                "f32[3,3,12,20] f32[1,8,7,20] | padding=same strides=[2,2] size=[15,13] "
                "products=bf16",
                1);
}
