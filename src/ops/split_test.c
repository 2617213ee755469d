/* split_test.c: the check of split rules finds wrong ones. ops_test.c runs it on every operator. */
#include "base/test.h"
#include "ops/sample.h"

static int cuts_of(const char *op, const char *text)
{
    tutti_sample *sample = NULL;
    int cuts = -1;
    CHECK_OK(tutti__sample_parse(tutti_op_find(op), text, 2, &sample));
    CHECK_OK(tutti__split_check(sample, &cuts));
    tutti__sample_free(sample);
    return cuts;
}

TUTTI_TEST(split_check_tries_every_axis_in_2_and_3_pieces)
{
    CHECK_INT(cuts_of("add", "f32[5,3] f32[3]"), 4);
    CHECK_INT(cuts_of("add", "f32[5,2] f32[5,2]"), 3); /* 2 does not cut into 3 */
    CHECK_INT(cuts_of("add", "f32[5,1] f32[1,3]"), 4);
    CHECK_INT(cuts_of("add", "f32[] f32[]"), 0);
    CHECK_INT(cuts_of("where", "bool[4,1] f32[3] f32[]"), 4);
}

static int cut_first_and_last(const tutti_infer *node, int capacity, tutti_split *ret)
{
    if (capacity > 0)
        ret[0] = (tutti_split){.inputs = {0, 1}, .outputs = {0}};
    return 1;
}

static int cut_and_sum(const tutti_infer *node, int capacity, tutti_split *ret)
{
    if (capacity > 0)
        ret[0] = (tutti_split){.inputs = {0, 0}, .outputs = {TUTTI_PARTIAL_SUM}};
    return 1;
}

static int cut_missing_axis(const tutti_infer *node, int capacity, tutti_split *ret)
{
    if (capacity > 0)
        ret[0] = (tutti_split){.inputs = {2, 2}, .outputs = {0}};
    return 1;
}

static void expect_wrong(int (*split)(const tutti_infer *, int, tutti_split *), const char *part)
{
    tutti_op op = *tutti_op_find("add");
    tutti_sample *sample = NULL;
    op.split = split;
    CHECK_OK(tutti__sample_parse(&op, "f32[4,4] f32[4,4]", 1, &sample));
    CHECK(tutti__split_check(sample, NULL) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), "split of add \"f32[4,4] f32[4,4]\", way 0 in 2 pieces");
    CHECK_CONTAINS(tutti_error_message(), part);
    tutti__sample_free(sample);
}

TUTTI_TEST(split_check_finds_wrong_rules)
{
    expect_wrong(cut_first_and_last, "piece 0");
    expect_wrong(cut_and_sum, "expected f32[4,4]");
    expect_wrong(cut_missing_axis, "has no axis 2");
}

static tutti_status wrong_gradient(tutti_gradient_call *node)
{
    node->input_grads[0] = node->input_grads[1] = node->output_grads[0];
    return TUTTI_OK;
}

TUTTI_TEST(gradient_check_finds_a_wrong_rule)
{
    tutti_op op = *tutti_op_find("sub");
    tutti_sample *sample = NULL;
    op.gradient = wrong_gradient;
    CHECK_OK(tutti__sample_parse(&op, "f32[3] f32[3]", 1, &sample));
    CHECK_STATUS(tutti__gradient_check(sample, 1), TUTTI_CHECK_FAILED);
    CHECK_CONTAINS(tutti_error_message(),
                   "gradient of sub \"f32[3] f32[3]\": order 1, input 1, element 0");
    tutti__sample_free(sample);
}
