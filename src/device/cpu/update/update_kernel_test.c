/* update_kernel_test.c: optimizers' updates against their references. */
#include <math.h>
#include <stdio.h>

#include "base/test.h"
#include "device/cpu/kernel_check.h"
#include "tables/update_rule.h"
#include "tutti/tutti.h"

/* Every operator of every rule, in all its samples. */
TUTTI_TEST(kernel_updates_match)
{
    char name[64];
    for (const tutti_update_rule *const *rule = tutti__update_rule_table; *rule; rule++) {
        snprintf(name, sizeof name, "%s_update", (*rule)->name);
        tutti__kernel_check_op(name);
        snprintf(name, sizeof name, "%s_update_rows", (*rule)->name);
        if (tutti_op_find(name))
            tutti__kernel_check_op(name);
    }
}

static void check(const char *op, const char *text)
{
    CHECK(tutti__kernel_check(op, text, 1e-5) > 0);
}

/* Several pieces and a rest that fills no register. */
TUTTI_TEST(kernel_updates_match_over_many_pieces)
{
#define MANY "f32[40003]"
    check("sgd_update", "&" MANY " " MANY " f32[]{0.1:0.2}");
    check("sgd_update", "&" MANY " &" MANY " " MANY " f32[]{0.1:0.2} | momentum=0.9 nesterov=true");
    check("adam_update", "&" MANY " &" MANY " &" MANY "{0.1:1} " MANY " f32[]{0.1:0.2} i64[]{=3}");
    check("adagrad_update", "&" MANY " &" MANY "{0.1:1} " MANY " f32[]{0.1:0.2}");
    check("adadelta_update", "&" MANY " &" MANY "{0.1:1} &" MANY "{0.1:1} " MANY " f32[]{0.1:0.2}");
    check("rmsprop_update",
          "&" MANY " &" MANY "{0.1:1} &" MANY " " MANY " f32[]{0.1:0.2} | momentum=0.9");
    check("adamax_update",
          "&" MANY " &" MANY " &" MANY "{0.1:1} " MANY " f32[]{0.1:0.2} i64[]{=3}");
    check("nadam_update", "&" MANY " &" MANY " &" MANY "{0.1:1} " MANY " f32[]{0.1:0.2} i64[]{=3}");
    check("lamb_update", "&" MANY " &" MANY " &" MANY "{0.1:1} " MANY
                         " f32[]{0.1:0.2} i64[]{=3} | weight_decay=0.1");
    check("lars_update", "&" MANY " &" MANY " " MANY " f32[]{0.1:0.2} | weight_decay=0.1 trust=1");
    check("lion_update", "&" MANY " &" MANY " " MANY " f32[]{0.1:0.2}");
    check("ema_update", "&" MANY " " MANY " i64[]{=3}");
}

/* Groups of equal rows that lie across pieces. */
TUTTI_TEST(kernel_updates_match_over_many_rows)
{
    check("sgd_update_rows", "&f32[7,13] i64[300]{0:7} f32[300,13] f32[]{0.1:0.2}");
    check("sgd_update_rows", "&f32[3,8] i64[200]{0:1} f32[200,8] f32[]{0.1:0.2}");
    check("adam_update_rows", "&f32[90,33] &f32[90,33] &f32[90,33]{0.1:1} i64[10,20]{0:90} "
                              "f32[10,20,33] f32[]{0.1:0.2} i64[]{=3}");
    check("adagrad_update_rows", "&f32[90] &f32[90]{0.1:1} i32[200]{0:90} f32[200] f32[]{0.1:0.2}");
}

TUTTI_TEST(kernel_updates_of_rows_check_indices)
{
    CHECK_CONTAINS(tutti__kernel_error("adagrad_update_rows",
                                       "&f32[3,2] &f32[3,2]{0.1:1} i64[2]{=0,3} f32[2,2] f32[]",
                                       TUTTI_OUT_OF_RANGE),
                   "index 3");
}

TUTTI_TEST(kernel_all_finite_finds_one_among_many)
{
    tutti__kernel_check_op("all_finite");
    CHECK(tutti__kernel_check("all_finite", "f32[70001] f32[200]", 0) > 0);
    tutti_sample *sample;
    CHECK_OK(tutti__sample_parse(tutti_op_find("all_finite"), "f32[70001] f32[19]", 7, &sample));
    static const double bad[] = {INFINITY, -INFINITY, NAN};
    for (int64_t at = 69990; at < 70001; at++) {
        tutti_tensor_set(sample->values[0], at, bad[at % 3]);
        CHECK(tutti__kernel_check_sample(sample, 0) > 0);
        tutti_tensor_set(sample->values[0], at, 3e38);
        CHECK(tutti__kernel_check_sample(sample, 0) > 0);
    }
    tutti__sample_free(sample);
}

TUTTI_TEST(kernel_check_numerics_matches)
{
    tutti__kernel_check_op("check_numerics");
    CHECK(tutti__kernel_check("check_numerics", "f32[140001]", 0) > 0);
    CHECK(tutti__kernel_check("check_numerics", "f64[9000,2]", 0) > 0);
    CHECK(tutti__kernel_check("check_numerics", "f16[70001]", 0) > 0);
    CHECK(tutti__kernel_check("check_numerics", "bf16[5]{=3e38}", 0) > 0);
}

/* The last of many elements, in every float type. */
TUTTI_TEST(kernel_check_numerics_finds_one_among_many)
{
    static const tutti_dtype types[] = {TUTTI_F32, TUTTI_F64, TUTTI_F16, TUTTI_BF16};
    static const double bad[] = {INFINITY, -INFINITY, NAN};
    int64_t count = 70001;
    for (size_t i = 0; i < TUTTI_COUNT(types) * TUTTI_COUNT(bad); i++) {
        tutti_graph *g;
        tutti_session *s;
        tutti_tensor *value, *y = NULL;
        tutti_dtype type = types[i % TUTTI_COUNT(types)];
        CHECK_OK(tutti_tensor_create(type, 1, &count, &value));
        for (int64_t k = 0; k < count; k++)
            tutti_tensor_set(value, k, 0);
        CHECK_OK(tutti_graph_create(&g));
        tutti_sym x = tutti_placeholder(g, type, count), checked = tutti_check_numerics(x, "loss");
        CHECK_OK(tutti_session_open(&s, g));
        CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, value}), .fetch = TUTTI_FETCH({checked, &y})));
        tutti_tensor_release(y);
        tutti_tensor_set(value, count - 1, bad[i % TUTTI_COUNT(bad)]);
        CHECK_STATUS(
            tutti_run(s, .feed = TUTTI_FEED({x, value}), .fetch = TUTTI_FETCH({checked, &y})),
            TUTTI_CHECK_FAILED);
        CHECK_CONTAINS(tutti_error_message(), "element [70000] is ");
        tutti_tensor_release(value);
        tutti_session_close(s);
        tutti_graph_destroy(g);
    }
}

TUTTI_TEST(kernel_square_sum_matches)
{
    tutti__kernel_check_op("square_sum");
    CHECK(tutti__kernel_check("square_sum", "f32[70001] f32[19] f32[3,32768]", 1e-6) > 0);
}

TUTTI_TEST(kernel_combine_rows_matches)
{
    tutti__kernel_check_op("combine_rows");
    CHECK(tutti__kernel_check("combine_rows", "f32[300,13] i64[300]{0:7}", 1e-5) > 0);
    CHECK(tutti__kernel_check("combine_rows", "f32[20,30] i32[20,30]{0:100000}", 1e-5) > 0);
}

TUTTI_TEST(kernel_rows_to_dense_matches)
{
    tutti__kernel_check_op("rows_to_dense");
    CHECK(tutti__kernel_check("rows_to_dense", "f32[300,13] i64[300]{0:7} f32[9,13]", 1e-5) > 0);
    CHECK(tutti__kernel_check("rows_to_dense", "f32[1300,3] i32[1300]{0:7} f32[9,3]", 1e-5) > 0);
    CHECK(tutti__kernel_check("rows_to_dense", "f32[1300] i64[1300]{0:900} f32[901]", 1e-5) > 0);
    CHECK(tutti__kernel_check("rows_to_dense", "f32[0,13] i64[0] f32[9,13]", 0) > 0);
    CHECK(tutti__kernel_check("rows_to_dense", "f32[20,30,129] i32[20,30]{0:999} f32[1000,129]",
                              1e-5) > 0);
    CHECK_CONTAINS(
        tutti__kernel_error("rows_to_dense", "f32[2,2] i64[2]{=0,3} f32[3,2]", TUTTI_OUT_OF_RANGE),
        "index 3");
}
