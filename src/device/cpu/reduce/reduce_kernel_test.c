#include <stdio.h>
#include <string.h>

#include "base/test.h"
#include "device/cpu/kernel_check.h"
#include "tutti/tutti.h"

TUTTI_TEST(kernel_reductions_match)
{
    static const char *const ops[] = {"sum", "mean", "max", "min"};
    static const char *const samples[] = {
        "f32[100000]",
        "f32[3,40000] | axes=[1]",
        "f32[5000,7] | axes=[1]",
        "f32[5000,7] | axes=[0]",
        "f32[3000,2] | axes=[1]",
        "f32[3000,5] | axes=[1]",
        "f32[3000,8] | axes=[1]",
        "f32[9000,3] | axes=[0]",
        "f32[900,16] | axes=[0]",
        "f32[4,2]{=-0.0,0.0,nan,1,-0.0,-0.0,inf,nan} | axes=[1]",
        "f32[4,2]{=-0.0,0.0,nan,1,-0.0,-0.0,inf,nan} | axes=[0]",
        "f64[3000,3] | axes=[1]",
        "f64[4,2]{=-0.0,0.0,nan,1,-0.0,-0.0,inf,nan} | axes=[1]",
        "f32[40000,32] | axes=[0]",
        "f32[70,3000] | axes=[0]",
        "f32[200,1500] | axes=[0] keepdims=true",
        "f32[20,30,40] | axes=[1]",
        "f32[20,30,40] | axes=[0,2]",
        "f32[9,10,11,12] | axes=[0,2]",
        "f32[9,10,11,12] | axes=[1,3]",
        "f32[7,1,5,1] | axes=[1,3]",
        "f32[1,1] | axes=[0]",
        "f64[300,200] | axes=[0]",
        "f64[300,200] | axes=[1]",
        "f64[50000]",
        "f32[6]{=1,2,nan,4,5,6}",
        "f32[2,3]{=1,nan,2,3,4,5} | axes=[1]",
        "f32[3,20]{=-inf} | axes=[1]",
    };
    for (size_t o = 0; o < TUTTI_COUNT(ops); o++) {
        tutti__kernel_check_op(ops[o]);
        for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
            CHECK(tutti__kernel_check(ops[o], samples[i], 3e-4) > 0);
    }
}

/* Of floats in double: what leaves the range of f32 on the way comes back. */
TUTTI_TEST(kernel_products_match)
{
    static const char *const samples[] = {
        "f32[100000]{0.999:1.001}",
        "f32[3,40000]{0.999:1.001} | axes=[1]",
        "f32[5000,7]{-2:2} | axes=[1]",
        "f32[5000,7]{0.99:1.01} | axes=[0]",
        "f32[70,3000]{0.9:1.1} | axes=[0] keepdims=true",
        "f32[9,10,11,12]{0.9:1.1} | axes=[0,2]",
        "f32[9,10,11,12]{0.9:1.1} | axes=[1,3]",
        "f32[7,1,5,1] | axes=[1,3]",
        "f32[1,1] | axes=[0]",
        "f64[50000]{0.999:1.001}",
        "f64[300,200]{0.9:1.1} | axes=[0]",
        "f64[5,30,20,3]{0.9:1.1} | axes=[1,3]",
        "f32[1,4]{=1e30,1e30,1e-30,1e-30} | axes=[1]",
        "f32[4,3]{=1e30,1e30,1e30,1e30,1e30,1e30,1e-30,1e-30,1e-30,1e-30,1e-30,1e-30} | axes=[0]",
        "f32[2,2,2]{=1e30,1e-30,1e30,1e-30,1e30,1e-30,1e30,1e-30} | axes=[0,2]",
        "f32[6]{=1,2,nan,4,5,6}",
        "f32[5]{=1,-0.0,2,inf,1}",
        "f32[40]{=-0.0}",
    };
    tutti__kernel_check_op("prod");
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
        CHECK(tutti__kernel_check("prod", samples[i], 1e-6) > 0);
}

TUTTI_TEST(kernel_of_top_k_matches)
{
    static const char *const samples[] = {
        "f32[7,1000] | k=5",
        "f32[7,1000] | k=1",
        "f32[7,1000] | k=1000",
        "f32[300,97] | k=64",
        "f32[2,3,33] | k=32",
        "f32[40000] | k=3000",
        "f32[1,1] | k=1",
        "f32[500]{=3} | k=40", /* of equals the first */
        "f32[8]{=-0.0,0.0,0.0,-0.0,-1.0,nan,0.0,nan} | k=6",
        "f32[5]{=nan} | k=3",
        "f32[6]{=-inf,inf,1.0,-inf,inf,nan} | k=6",
        "f32[4,70000]{0:3} | k=9",
    };
    tutti__kernel_check_op("top_k");
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
        CHECK(tutti__kernel_check("top_k", samples[i], 0) > 0);
    static const char *const more[] = {
        "f64[7,1000] | k=5",
        "f64[8]{=-0.0,0.0,0.0,-0.0,-1.0,nan,0.0,nan} | k=6",
        "f64[6]{=-inf,inf,1.0,-inf,inf,nan} | k=6",
        "f64[3]{=1,1.00000000000001,1.00000000000002} | k=3",
        "i8[7,1000]{-128:127} | k=20",
        "u8[7,1000]{0:255} | k=20",
        "i32[4]{=-2147483648,2147483647,-1,0} | k=4",
        "i32[7,1000]{-999999:999999} | k=1000",
        "i64[4]{=-9223372036854775808,9223372036854775807,-1,0} | k=4",
        "i64[300,97]{-999999:999999} | k=64",
    };
    for (size_t i = 0; i < TUTTI_COUNT(more); i++)
        CHECK(tutti__kernel_check("top_k", more[i], 0) > 0);
}

static const char *const shapes[] = {
    "[100000]",
    "[3,40000] | axes=[1]",
    "[5000,7] | axes=[1]",
    "[40000,3] | axes=[0]",
    "[3000,2] | axes=[1]",
    "[3000,3] | axes=[1]",
    "[3000,8] | axes=[1]",
    "[70,3000] | axes=[0] keepdims=true",
    "[20,30,40] | axes=[1]",
    "[9,10,11,12] | axes=[0,2]",
    "[7,1,5,1] | axes=[1,3]",
    "[1,1] | axes=[0]",
};

/* Texts "f32[2,3]{0:1} | axes=[1]" of a type, its elements and a shape. */
static const char *sample_text(const char *type, const char *elements, const char *shape)
{
    static char text[100];
    int dims = (int)strcspn(shape, "]") + 1;
    snprintf(text, sizeof text, "%s%.*s%s%s", type, dims, shape, elements, shape + dims);
    return text;
}

TUTTI_TEST(kernel_reductions_of_integers_match)
{
    static const char *const ops[] = {"sum", "prod", "max", "min"};
    static const char *const types[][2] = {{"i8", "{-128:128}"},
                                           {"u8", "{0:256}"},
                                           {"i32", "{-2e9:2e9}"},
                                           {"i64", "{-8e18:8e18}"},
                                           {"i64", "{-1:2}"}};
    for (size_t o = 0; o < TUTTI_COUNT(ops); o++)
        for (size_t t = 0; t < TUTTI_COUNT(types); t++)
            for (size_t i = 0; i < TUTTI_COUNT(shapes); i++)
                CHECK(tutti__kernel_check(ops[o], sample_text(types[t][0], types[t][1], shapes[i]),
                                          0) > 0);
}

TUTTI_TEST(kernel_any_and_all_match)
{
    static const char *const ops[] = {"any", "all"}, *const fills[] = {"", "{=0}", "{=1}"};
    for (size_t o = 0; o < TUTTI_COUNT(ops); o++) {
        tutti__kernel_check_op(ops[o]);
        CHECK(tutti__kernel_check(ops[o], "bool[3,4]{=1,1,1,1,0,0,0,0,0,1,0,0} | axes=[1]", 0) > 0);
        for (size_t f = 0; f < TUTTI_COUNT(fills); f++)
            for (size_t i = 0; i < TUTTI_COUNT(shapes); i++)
                CHECK(tutti__kernel_check(ops[o], sample_text("bool", fills[f], shapes[i]), 0) > 0);
    }
}

TUTTI_TEST(kernel_running_sums_and_products_match)
{
    static const char *const ops[] = {"cumsum", "cumprod"};
    static const char *const types[][2] = {{"f32", "{0.9:1.1}"},  {"f64", "{0.9:1.1}"},
                                           {"i8", "{-128:128}"},  {"u8", "{0:256}"},
                                           {"i32", "{-2e9:2e9}"}, {"i64", "{-8e18:8e18}"}};
    static const char *const axes[] = {"[40000] | axis=0",
                                       "[300,200] | axis=1 exclusive=true",
                                       "[300,200] | axis=0 reverse=true",
                                       "[7,1000,3] | axis=1 exclusive=true reverse=true",
                                       "[5,1,130] | axis=-2",
                                       "[6,5,65] | axis=0",
                                       "[1] | axis=0 exclusive=true"};
    for (size_t o = 0; o < TUTTI_COUNT(ops); o++) {
        tutti__kernel_check_op(ops[o]);
        for (size_t t = 0; t < TUTTI_COUNT(types); t++)
            for (size_t i = 0; i < TUTTI_COUNT(axes); i++)
                CHECK(tutti__kernel_check(ops[o], sample_text(types[t][0], types[t][1], axes[i]),
                                          0) > 0);
    }
}

/* Lines of more than one level of blocks; where one element is 0, where two are. */
TUTTI_TEST(kernel_products_of_all_others_match)
{
    static const char *const samples[] = {
        "f32[40000]{0.99:1.01} | axis=0",
        "f32[300,200]{0.9:1.1} | axis=1",
        "f32[300,200]{0.9:1.1} | axis=0",
        "f32[7,5000,3]{0.99:1.01} | axis=1",
        "f32[6,5,65] | axis=-3",
        "f32[5,1,130] | axis=1",
        "f64[3000,2]{0.99:1.01} | axis=0",
        "f64[5,2200]{0.9:1.1} | axis=1",
        "f32[6]{=2,0,3,nan,inf,1} | axis=0",
        "f32[2,3]{=1e30,1e30,1e-30,0,-0.0,5} | axis=1",
        "f32[4]{=1e38,1e38,1e-38,1} | axis=0",
    };
    tutti__kernel_check_op("prod_except");
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
        CHECK(tutti__kernel_check("prod_except", samples[i], 0) > 0);
}

static void check_others(int zeros)
{
    enum { COUNT = 3000, FIRST = 700 };
    int64_t count = COUNT;
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *value, *y;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, &count, &value));
    float *values = tutti_tensor_data(value);
    for (int i = 0; i < COUNT; i++)
        values[i] = i % 2 ? 2 : 0.5f;
    for (int i = 0; i < zeros; i++)
        values[FIRST + 1501 * i] = 0;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, COUNT), others = tutti_prod_except(x, 0);
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, value}), .fetch = TUTTI_FETCH({others, &y})));
    for (int i = 0; i < COUNT; i++)
        CHECK_NEAR(tutti_tensor_get(y, i),
                   zeros == 0                 ? 1 / (double)values[i]
                   : zeros == 1 && i == FIRST ? 2
                                              : 0,
                   0);
    tutti_tensor_release(y);
    tutti_tensor_release(value);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(products_of_all_others_know_zeros_in_long_lines)
{
    for (int zeros = 0; zeros < 3; zeros++)
        check_others(zeros);
}

TUTTI_TEST(kernel_positions_match)
{
    static const char *const ops[] = {"argmax", "argmin"};
    static const char *const samples[] = {
        "f32[1000,10] | axis=1",
        "f32[300,40] | axis=0",
        "f32[7,30,5] | axis=1",
        "f32[6]{=3,nan,5,nan,1,9} | axis=0",
        "f32[5]{=2} | axis=0",
        "f32[4]{=-inf} | axis=0",
        "f32[70,300] | axis=1",
        "f32[3,37]{=2} | axis=1",
        "f32[3,50]{=-inf} | axis=1",
        "f32[37]{=1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7} | axis=0",
        "f32[37]{=1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,nan,2,3,4,5,6,7,8,9,0,1,2,3,nan,5,6,7} | axis=0",
        "f32[37]{=1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,inf,inf} | axis=0",
    };
    static const char *const types[] = {"f32", "f64", "i8", "u8", "i32", "i64"};
    static const char *const shapes_of_all[] = {
        "[1000,10]{0:99} | axis=1", "[300,40]{0:99} | axis=0",  "[7,30,5]{0:99} | axis=1",
        "[9,1000]{0:127} | axis=1", "[3,300]{=2} | axis=1",     "[2,64]{0:127} | axis=1",
        "[2,65]{0:127} | axis=1",   "[70,300]{0:127} | axis=0", "[1,1]{0:9} | axis=0",
    };
    for (size_t o = 0; o < TUTTI_COUNT(ops); o++) {
        tutti__kernel_check_op(ops[o]);
        for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
            CHECK(tutti__kernel_check(ops[o], samples[i], 0) > 0);
        for (size_t t = 0; t < TUTTI_COUNT(types); t++)
            for (size_t i = 0; i < TUTTI_COUNT(shapes_of_all); i++) {
                char text[80];
                snprintf(text, sizeof text, "%s%s", types[t], shapes_of_all[i]);
                CHECK(tutti__kernel_check(ops[o], text, 0) > 0);
            }
        CHECK(tutti__kernel_check(ops[o], "f64[6]{=3,nan,5,nan,1,9} | axis=0", 0) > 0);
        CHECK(tutti__kernel_check(ops[o], "f64[3,2]{=3,nan,5,nan,nan,9} | axis=0", 0) > 0);
        CHECK(tutti__kernel_check(ops[o], "i64[3]{=5,-9223372036854775808,9} | axis=0", 0) > 0);
    }
}

/* Equal numbers, whose roundings all go one way: the mean is theirs within twenty last places,
 * however long the axis is. */
static void check_mean(int64_t rows, int64_t columns, int axis, bool fused, bool deterministic)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *value, *mean;
    int64_t dims[] = {rows, columns};
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, dims, &value));
    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)tutti_tensor_data(value))[i] = 0.1F;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, rows, columns);
    tutti_sym y = fused ? tutti_neg(tutti_mul(x, -1)) : x;
    y = tutti_mean(y, .axes = TUTTI_AXES(axis));
    CHECK_OK(tutti_session_open(&s, g, .deterministic = deterministic));
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, value}), .fetch = TUTTI_FETCH({y, &mean})));
    for (int64_t i = 0; i < tutti_tensor_count(mean); i++)
        CHECK_NEAR(tutti_tensor_get(mean, i), (double)0.1F, 20 * 0x1p-27);
    tutti_tensor_release(mean);
    tutti_tensor_release(value);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(means_over_long_axes_are_exact)
{
    const int64_t sizes[][2] = {{1, 30000}, {100000, 1}, {3, 200000}, {100000, 3}, {20000, 1030}};
    for (size_t i = 0; i < TUTTI_COUNT(sizes); i++)
        for (int how = 0; how < 4; how++)
            check_mean(sizes[i][0], sizes[i][1], sizes[i][0]<sizes[i][1], how % 2, how> 1);
}

/* Of rows of `count` elements, once by the kernel of sums, once by one that does more. */
static void check_short_sums(int64_t count)
{
    enum { ROWS = 100 };
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *value, *alone, *fused;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){ROWS, count}, &value));
    float *x = tutti_tensor_data(value);
    for (int64_t i = 0; i < ROWS * count; i++)
        x[i] = i < count ? -0.0F : 1.0F / (float)(i % 23 - 11.5);
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym in = tutti_placeholder(g, TUTTI_F32, ROWS, count);
    tutti_sym y = tutti_sum(in, .axes = TUTTI_AXES(1));
    tutti_sym z = tutti_sum(tutti_neg(tutti_mul(in, -1)), .axes = TUTTI_AXES(1));
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({in, value}),
                       .fetch = TUTTI_FETCH({y, &alone}, {z, &fused})));
    CHECK(memcmp(tutti_tensor_data(alone), tutti_tensor_data(fused), ROWS * sizeof(float)) == 0);
    tutti_tensor_release(alone);
    tutti_tensor_release(fused);
    tutti_tensor_release(value);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(sums_of_short_rows_have_the_same_bits_fused_or_not)
{
    for (int64_t count = 1; count < 20; count++)
        check_short_sums(count);
}
