/* selftest_test.c: tutti_op_selftest passes a sound operator and finds what is wrong with others.
 */
#include "base/test.h"
#include "tutti/ops.h"

static tutti_op swish(void)
{
    static const char *const samples[] = {"f32[2,3]", "f32[5]{-3:3}", NULL};
    tutti_op op = *tutti_op_find("silu");
    op.name = "mine.swish";
    op.samples = samples;
    return op;
}

TUTTI_TEST(selftest_passes_a_sound_operator)
{
    tutti_op op = swish();
    CHECK_OK(tutti_op_selftest(&op));
}

static void expect(const tutti_op *op, tutti_status status, const char *part)
{
    CHECK_STATUS(tutti_op_selftest(op), status);
    CHECK_CONTAINS(tutti_error_message(), part);
}

static tutti_status half_gradient(tutti_gradient_call *node)
{
    node->input_grads[0] = tutti_mul(node->output_grads[0], 0.5);
    return TUTTI_OK;
}

/* Forgets the last element. */
static tutti_status lazy_kernel(const tutti_kernel_call *call)
{
    for (int64_t i = 0; i + 1 < tutti_view_count(&call->outputs[0]); i++)
        tutti_view_set(&call->outputs[0], i, tutti_view_get(&call->inputs[0], i));
    return TUTTI_OK;
}

static tutti_status greedy_kernel(const tutti_kernel_call *call)
{
    TUTTI_TRY(lazy_kernel(call));
    tutti_view_set(&call->outputs[0], tutti_view_count(&call->outputs[0]) - 1, 1);
    tutti_view_set(&call->inputs[0], 0, 7);
    return TUTTI_OK;
}

static int reversed_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    if (capacity > 0)
        ret[0] = (tutti_split){.inputs = {0}, .outputs = {TUTTI_PARTIAL_SUM}};
    return 1;
}

TUTTI_TEST(selftest_finds_what_is_wrong)
{
    static const char *const none[] = {NULL};
    tutti_op op = swish();
    op.struct_size = 8;
    expect(&op, TUTTI_INVALID, "struct_size is 8");
    op = swish();
    op.samples = none;
    expect(&op, TUTTI_INVALID, "has no samples");
    op = swish();
    op.gradient = half_gradient;
    expect(&op, TUTTI_CHECK_FAILED, "selftest of mine.swish, sample \"f32[2,3]\"");
    expect(&op, TUTTI_CHECK_FAILED, "the rule gives");
    op = swish();
    op.split = reversed_split;
    expect(&op, TUTTI_CHECK_FAILED, "way 0 in 2 pieces");
    op = swish();
    op.reference = greedy_kernel;
    expect(&op, TUTTI_CHECK_FAILED, "the kernel changed input 0");
    op = swish();
    op.reference = lazy_kernel;
    expect(&op, TUTTI_CHECK_FAILED, "two runs differ in output 0");
}

/* v = 2 v, written into the variable only, as devices that give both one memory would forgive. */
static tutti_status double_in_place(const tutti_kernel_call *call)
{
    for (int64_t i = 0; i < tutti_view_count(&call->inputs[0]); i++)
        tutti_view_set(&call->inputs[0], i, 2 * tutti_view_get(&call->inputs[0], i));
    return TUTTI_OK;
}

static tutti_status double_both(const tutti_kernel_call *call)
{
    TUTTI_TRY(double_in_place(call));
    for (int64_t i = 0; i < tutti_view_count(&call->outputs[0]); i++)
        tutti_view_set(&call->outputs[0], i, tutti_view_get(&call->inputs[0], i));
    return TUTTI_OK;
}

static tutti_status infer_doubled(tutti_infer *node)
{
    node->outputs[0] = node->inputs[0];
    node->outputs[0].handle = false;
    return TUTTI_OK;
}

TUTTI_TEST(selftest_finds_updates_that_write_one_place_only)
{
    static const char *const samples[] = {"&f32[2,3]", NULL};
    tutti_op op = {.struct_size = sizeof op,
                   .name = "mine.double",
                   .version = 1,
                   .doc = "double(v): v = 2 v; y = v",
                   .category = "mine",
                   .flags = TUTTI_OP_STATEFUL | TUTTI_OP_UPDATES | TUTTI_OP_TAKES_HANDLE,
                   .min_inputs = 1,
                   .max_inputs = 1,
                   .outputs = 1,
                   .infer = infer_doubled,
                   .reference = double_both,
                   .samples = samples};
    CHECK_OK(tutti_op_selftest(&op));
    op.reference = double_in_place;
    expect(&op, TUTTI_CHECK_FAILED, "output 0");
}
