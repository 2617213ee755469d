/* rounded_test.c: recurrent networks by products of bf16. */
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/test.h"
#include "device/cpu/gemm/tile.h"
#include "device/cpu/kernel_check.h"
#include "program/kernel.h"

enum { MOST = 16 };

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

/* Numbers of bf16 held in f32: rounding them changes nothing, so what differs from the reference is
 * what was rounded since: states after the first step, and gradients of the gates. */
static tutti_sample *exact_sample(const char *op, const char *text)
{
    tutti_sample *narrow, *wide;
    CHECK_OK(tutti__sample_parse(tutti_op_find(op), text, 7, &narrow));
    CHECK_OK(tutti__sample_cast(narrow, TUTTI_BF16, TUTTI_F32, &wide));
    tutti__sample_free(narrow);
    if (!bids_rounded(wide))
        tutti__test_fail(__FILE__, __LINE__, "no kernel of bf16 bids for %s \"%s\"", op, text);
    return wide;
}

static void check_rounded(const char *op, const char *text, double tolerance)
{
    tutti_sample *sample = exact_sample(op, text);
    CHECK(tutti__kernel_check_sample(sample, tolerance) > 1);
    tutti__sample_free(sample);
}

/* In one step nothing is rounded that is not of bf16 already. */
TUTTI_TEST(rounded_steps_agree_with_their_references)
{
    if (tutti__gemm_bf16_tile() == NULL)
        SKIP("%s", skipped);
    check_rounded("lstm",
                  "bf16[19,1,5] bf16[19,33] bf16[19,33] bf16[5,132] bf16[33,132] bf16[132] | "
                  "products=bf16",
                  1e-5);
    check_rounded("gru",
                  "bf16[33,1,40] bf16[33,20] bf16[40,60] bf16[20,60] bf16[2,60] | "
                  "products=bf16",
                  1e-5);
    check_rounded("simple_rnn",
                  "bf16[1,1,3] bf16[1,70] bf16[3,70] bf16[70,70] bf16[70] | "
                  "products=bf16",
                  1e-5);
}

TUTTI_TEST(rounded_sequences_agree_with_their_references)
{
    static const char *const samples[][2] = {
        {"lstm", "bf16[19,7,5] bf16[19,33] bf16[19,33] bf16[5,132] bf16[33,132] bf16[132] | "
                 "products=bf16"},
        {"lstm", "bf16[32,5,16] bf16[32,64] bf16[32,64] bf16[16,256] bf16[64,256] bf16[256] | "
                 "reverse=true products=bf16"},
        {"lstm", "bf16[1,9,3] bf16[1,8] bf16[1,8] bf16[3,32] bf16[8,32] bf16[32] | products=bf16"},
        {"lstm", "bf16[20,6,4] bf16[20,10] bf16[20,10] bf16[4,40] bf16[10,40] bf16[40] "
                 "i32[20]{0:7} | products=bf16"},
        {"gru", "bf16[19,7,5] bf16[19,33] bf16[5,99] bf16[33,99] bf16[2,99] | products=bf16"},
        {"gru", "bf16[9,7,5] bf16[9,6] bf16[5,18] bf16[6,18] bf16[2,18] i64[9]{0:8} | "
                "reverse=true products=bf16"},
        {"simple_rnn",
         "bf16[19,7,5] bf16[19,33] bf16[5,33] bf16[33,33]{-0.2:0.2} bf16[33] | products=bf16"},
        {"simple_rnn",
         "bf16[1,3,40] bf16[1,32] bf16[40,32] bf16[32,32]{-0.2:0.2} bf16[32] | products=bf16"},
    };
    if (tutti__gemm_bf16_tile() == NULL)
        SKIP("%s", skipped);
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
        check_rounded(samples[i][0], samples[i][1], 0.02);
}

TUTTI_TEST(rounded_gradients_agree_with_their_references)
{
    static const char *const samples[][2] = {
        {"lstm_backward", "bf16[19,7,5] bf16[19,9] bf16[19,9] bf16[5,36] bf16[9,36] bf16[19,7,9] "
                          "bf16[19,7,45]{0.1:0.9} bf16[19,7,9] i32[19]{0:8} | grads=1 "
                          "products=bf16"},
        {"lstm_backward",
         "bf16[33,3,20] bf16[33,32] bf16[33,32] bf16[20,128] bf16[32,128] bf16[33,3,32] "
         "bf16[33,3,160]{0.1:0.9} bf16[33,3,32] bf16[33,32] bf16[33,32] bf16[33,3,160] | "
         "products=bf16"},
        {"lstm_backward", "bf16[1,1,2] bf16[1,3] bf16[1,3] bf16[2,12] bf16[3,12] bf16[1,1,3] "
                          "bf16[1,1,15]{0.1:0.9} bf16[1,3] | grads=2 products=bf16"},
        {"gru_backward", "bf16[19,7,5] bf16[19,9] bf16[5,27] bf16[9,27] bf16[19,7,9] "
                         "bf16[19,7,36]{0.1:0.9} bf16[19,7,9] bf16[19,9] | grads=3 reverse=true "
                         "products=bf16"},
        {"gru_backward", "bf16[5,4,40] bf16[5,33] bf16[40,99] bf16[33,99] bf16[5,4,33] "
                         "bf16[5,4,132]{0.1:0.9} bf16[5,33] i64[5]{0:4} | grads=2 products=bf16"},
        {"simple_rnn_backward",
         "bf16[18,5,7] bf16[18,40] bf16[7,40] bf16[40,40]{-0.2:0.2} bf16[18,5,40] "
         "bf16[18,5,40] bf16[18,40] | grads=3 products=bf16"},
    };
    if (tutti__gemm_bf16_tile() == NULL)
        SKIP("%s", skipped);
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
        check_rounded(samples[i][0], samples[i][1], 0.02);
}

/* Without leave nothing is rounded. */
TUTTI_TEST(full_recurrent_networks_are_not_rounded)
{
    static const char *const text =
        "f32[32,5,16] f32[32,64] f32[32,64] f32[16,256] f32[64,256] f32[256]";
    tutti_sample *sample;
    CHECK_OK(tutti__sample_parse(tutti_op_find("lstm"), text, 7, &sample));
    CHECK(!bids_rounded(sample));
    tutti__sample_free(sample);
}

static tutti_view view_of(tutti_tensor *tensor)
{
    return (tutti_view){tutti_tensor_data(tensor), tutti_tensor_dtype(tensor),
                        tutti_tensor_rank(tensor), tutti_tensor_dims(tensor), NULL};
}

/* The sample's outputs by the kernel of bf16 on a device of so many threads. */
static void run_rounded(const tutti_sample *sample, int threads, tutti_tensor **ret)
{
    tutti_kernel_query query = {.node = tutti__sample_rule(sample), .threads = threads};
    const tutti_kernel *kernel = rounded_kernel(&query);
    tutti_view inputs[MOST], outputs[MOST];
    tutti_pool *pool;
    void *plan;
    CHECK(kernel != NULL);
    CHECK_OK(tutti__pool_create(threads, -1, &pool));
    CHECK_OK(kernel->prepare(&query, &plan));
    void *workspace =
        aligned_alloc(64, (tutti__kernel_workspace(kernel, &query, plan) + 63) / 64 * 64);
    CHECK(workspace != NULL);
    for (int i = 0; i < sample->input_count; i++)
        inputs[i] = view_of(sample->values[i]);
    for (int i = 0; i < sample->output_count; i++) {
        const tutti_type *type = &sample->node->types[i];
        CHECK_OK(tutti_tensor_create(type->dtype, type->rank, type->dims, &ret[i]));
        outputs[i] = view_of(ret[i]);
    }
    tutti_kernel_call call = {.op = sample->op,
                              .attrs = sample->attrs,
                              .attr_count = sample->attr_count,
                              .input_count = sample->input_count,
                              .output_count = sample->output_count,
                              .inputs = inputs,
                              .outputs = outputs,
                              .workspace = workspace,
                              .plan = plan,
                              .pool = pool};
    CHECK_OK(kernel->run(&call));
    kernel->discard(plan);
    free(workspace);
    tutti__pool_destroy(pool);
}

/* Groups of rows are smaller where there are more threads; the bits are the same. */
static void check_threads(const char *op, const char *text)
{
    tutti_sample *sample;
    CHECK_OK(tutti__sample_parse(tutti_op_find(op), text, 7, &sample));
    tutti_tensor *one[MOST];
    run_rounded(sample, 1, one);
    for (int threads = 2; threads <= 8; threads *= 2) {
        tutti_tensor *many[MOST];
        run_rounded(sample, threads, many);
        for (int i = 0; i < sample->output_count; i++) {
            CHECK(tutti_tensor_same(one[i], many[i]));
            tutti_tensor_release(many[i]);
        }
    }
    for (int i = 0; i < sample->output_count; i++)
        tutti_tensor_release(one[i]);
    tutti__sample_free(sample);
}

TUTTI_TEST(rounded_recurrent_networks_have_the_same_bits_on_any_number_of_threads)
{
    if (tutti__gemm_bf16_tile() == NULL)
        SKIP("%s", skipped);
    check_threads("lstm", "f32[37,6,50] f32[37,40] f32[37,40] f32[50,160] f32[40,160] f32[160] "
                          "i32[37]{0:7} | products=bf16");
    check_threads("lstm_backward",
                  "f32[37,6,50] f32[37,40] f32[37,40] f32[50,160] f32[40,160] f32[37,6,40] "
                  "f32[37,6,200]{0.1:0.9} f32[37,6,40] f32[37,40] i32[37]{0:7} | grads=3 "
                  "products=bf16");
    check_threads("gru_backward", "f32[37,6,50] f32[37,40] f32[50,120] f32[40,120] f32[37,6,40] "
                                  "f32[37,6,160]{0.1:0.9} f32[37,6,40] | grads=1 products=bf16");
}

/* The last row's sequence is the same, bit by bit, alone and beside others. */
TUTTI_TEST(rounded_rows_do_not_depend_on_those_beside_them)
{
    tutti_sample *all, *alone;
    tutti_tensor *many[MOST], *one[MOST];
    if (tutti__gemm_bf16_tile() == NULL)
        SKIP("%s", skipped);
    CHECK_OK(tutti__sample_parse(
        tutti_op_find("lstm"),
        "f32[21,4,9] f32[21,40] f32[21,40] f32[9,160] f32[40,160] f32[160] | products=bf16", 7,
        &all));
    CHECK_OK(tutti__sample_parse(
        tutti_op_find("lstm"),
        "f32[1,4,9] f32[1,40] f32[1,40] f32[9,160] f32[40,160] f32[160] | products=bf16", 7,
        &alone));
    for (int i = 0; i < alone->input_count; i++) {
        int64_t count = tutti_tensor_count(alone->values[i]);
        const float *end =
            (const float *)tutti_tensor_data(all->values[i]) + tutti_tensor_count(all->values[i]);
        memcpy(tutti_tensor_data(alone->values[i]), end - count, (size_t)count * sizeof *end);
    }
    run_rounded(all, 1, many);
    run_rounded(alone, 1, one);
    for (int i = 0; i < alone->output_count; i++) {
        int64_t count = tutti_tensor_count(one[i]);
        const float *end = (const float *)tutti_tensor_data(many[i]) + tutti_tensor_count(many[i]);
        CHECK(memcmp(end - count, tutti_tensor_data(one[i]), (size_t)count * sizeof *end) == 0);
        tutti_tensor_release(many[i]);
        tutti_tensor_release(one[i]);
    }
    tutti__sample_free(all);
    tutti__sample_free(alone);
}
