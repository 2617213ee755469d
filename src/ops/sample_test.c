/* sample_test.c: the text form of samples. */
#include "ops/sample.h"

#include <math.h>

#include "base/test.h"

static tutti_sample *parse(const char *op, const char *text)
{
    tutti_sample *sample = NULL;
    CHECK_OK(tutti__sample_parse(tutti_op_find(op), text, 1, &sample));
    return sample;
}

TUTTI_TEST(sample_reads_types_ranges_and_values)
{
    tutti_sample *sample = parse("where", "bool[2,1]{=true,0} f32[3]{2:4} f32[2,3]{=0.5}");
    CHECK_INT(sample->input_count, 3);
    CHECK_INT(tutti_tensor_get_int(sample->values[0], 0), 1);
    CHECK_INT(tutti_tensor_get_int(sample->values[0], 1), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_NEAR(tutti_tensor_get(sample->values[1], i), 3, 1);
        CHECK_NEAR(tutti_tensor_get(sample->values[2], i + 3), 0.5, 0);
    }
    CHECK_INT(sample->node->types[0].rank, 2);
    CHECK_INT(sample->node->types[0].dims[1], 3);
    tutti__sample_free(sample);
}

TUTTI_TEST(sample_draws_away_from_zero_and_the_same_every_time)
{
    tutti_sample *a = parse("abs", "f32[100]"), *b = parse("abs", "f32[100]");
    for (int i = 0; i < 100; i++) {
        double x = tutti_tensor_get(a->values[0], i);
        CHECK(fabs(x) >= 0.05 && fabs(x) <= 1);
    }
    CHECK(tutti_tensor_same(a->values[0], b->values[0]));
    tutti__sample_free(a);
    tutti__sample_free(b);
    a = parse("abs", "i32[100]{-4:2}");
    int64_t low = 0, high = 0;
    for (int i = 0; i < 100; i++) {
        int64_t k = tutti_tensor_get_int(a->values[0], i);
        low = k < low ? k : low;
        high = k > high ? k : high;
    }
    CHECK_INT(low, -4);
    CHECK_INT(high, 1);
    tutti__sample_free(a);
}

TUTTI_TEST(sample_reads_attributes_and_fills_in_defaults)
{
    tutti_sample *sample = parse("clip", "f32[2] | min=-inf max=0.5");
    CHECK(isinf(tutti_attr_float(sample->attrs, sample->attr_count, "min")));
    CHECK_NEAR(tutti_attr_float(sample->attrs, sample->attr_count, "max"), 0.5, 0);
    tutti__sample_free(sample);
    sample = parse("gelu", "f32[2]");
    CHECK_INT(tutti_attr_int(sample->attrs, sample->attr_count, "approximate"), 0);
    tutti__sample_free(sample);
    sample = parse("cast", "i64[1]{=9007199254740993} | dtype=i64,");
    CHECK_INT(tutti_attr_int(sample->attrs, sample->attr_count, "dtype"), TUTTI_I64);
    CHECK_INT(tutti_tensor_get_int(sample->values[0], 0), 9007199254740993);
    tutti__sample_free(sample);
}

TUTTI_TEST(sample_casts_inputs_and_asks_the_shape_rule)
{
    tutti_sample *sample = parse("where", "bool[2] f32[2]{=1,2} f32[]"), *wide = NULL;
    CHECK_OK(tutti__sample_cast(sample, TUTTI_F32, TUTTI_F64, &wide));
    CHECK_INT(wide->types[0].dtype, TUTTI_BOOL);
    CHECK_INT(wide->node->types[0].dtype, TUTTI_F64);
    CHECK_NEAR(tutti_tensor_get(wide->values[1], 1), 2, 0);
    tutti__sample_free(wide);
    tutti__sample_free(sample);
    sample = parse("exp", "f32[2]");
    CHECK_STATUS(tutti__sample_cast(sample, TUTTI_F32, TUTTI_I32, &wide), TUTTI_INVALID);
    tutti__sample_free(sample);
}

static void refuse(const char *op, const char *text, const char *part)
{
    tutti_sample *sample = NULL;
    CHECK(tutti__sample_parse(tutti_op_find(op), text, 1, &sample) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), part);
    CHECK_CONTAINS(tutti_error_message(), text);
}

TUTTI_TEST(sample_refuses_bad_text)
{
    refuse("abs", "f31[2]", "f31");
    refuse("abs", "f32", "needs [dimensions]");
    refuse("abs", "f32[2", "needs a dimension");
    refuse("abs", "f32[2]{=1,2,3}", "more values");
    refuse("abs", "f32[3]{=1,2}", "fewer values");
    refuse("abs", "f32[3]{=1,2", "needs }");
    refuse("abs", "f32[3]{2:1}", "low <= high");
    refuse("abs", "f32[1048576,1048576]", "too many elements");
    refuse("clip", "f32[2] | min=0 max=1 mean=3", "no such attribute");
    refuse("clip", "f32[2] | min=0", "max");
    refuse("abs", "f32[2] f32[2]", "inputs");
}
