/* limits_test.c: TensorFlow's operators at the ends of their types, at infinities, with places that
 * are named twice. The numbers are TensorFlow's. */
#include <math.h>

#include "bridge/graphdef/hand.h"

/* One node "y" of x [count] and, where given, z [count]. */
static void check_node(const char *op, int count, const float *x, const float *z,
                       const double *expected)
{
    tutti_text text = {0};
    hand_input in[] = {{"x", 1, {count}, x}, {"z", 1, {count}, z}};
    put_placeholder(&text, "x", 1, (int64_t[]){count});
    if (z)
        put_placeholder(&text, "z", 1, (int64_t[]){count});
    put(&text, "y", op, z ? "x z" : "x", "");
    check_runs(&text, z ? 2 : 1, in, "y", count, expected);
    tutti__text_free(&text);
}

TUTTI_TEST(graphdef_functions_are_right_far_out)
{
    check_node("Asinh", 3, (float[]){1e20F, -1e20F, 0}, NULL, (double[]){46.744849, -46.744849, 0});
    check_node("Acosh", 2, (float[]){1e20F, 1}, NULL, (double[]){46.744849, 0});
    check_node("Atan2", 6, (float[]){-0.0F, 0, -INFINITY, 1, 0, 1},
               (float[]){-1, -1, -INFINITY, -0.0F, 0, INFINITY},
               (double[]){-M_PI, M_PI, -0.75 * M_PI, M_PI / 2, 0, 0});
    /* 1e8 times what is left of 1, so that 1e-5 is near */
    tutti_text text = {0};
    put_placeholder(&text, "x", 1, (int64_t[]){3});
    put_const(&text, "scale", 1, 1, (int64_t[]){3}, 3, (float[]){1, 1e8F, 1e20F});
    put(&text, "rest", "Erfc", "x", "");
    put(&text, "y", "Mul", "rest scale", "");
    const hand_input x = {"x", 1, {3}, (float[]){-1, 4, 7}};
    check_runs(&text, 1, &x, "y", 3, (double[]){erfc(-1), 1e8 * erfc(4), 1e20 * erfc(7)});
    tutti__text_free(&text);
}

/* The same of integers, which are made of floats and end as floats. */
static void check_whole(const char *op, int count, const float *x, const float *z,
                        const double *expected)
{
    tutti_text text = {0};
    hand_input in[] = {{"x", 1, {count}, x}, {"z", 1, {count}, z}};
    put_placeholder(&text, "x", 1, (int64_t[]){count});
    put_placeholder(&text, "z", 1, (int64_t[]){count});
    put(&text, "a", "Cast", "x", "t:DstT=3");
    put(&text, "b", "Cast", "z", "t:DstT=3");
    put(&text, "c", op, "a b", "");
    put(&text, "y", "Cast", "c", "t:DstT=1");
    check_runs(&text, 2, in, "y", count, expected);
    tutti__text_free(&text);
}

TUTTI_TEST(graphdef_integers_are_divided_towards_zero)
{
    const float a[] = {-0x1p31F, 7, -7}, b[] = {4, -2, 2};
    check_whole("TruncateDiv", 3, a, b, (double[]){-0x1p29, -3, -3});
    check_whole("Div", 3, a, b, (double[]){-0x1p29, -3, -3});
    check_whole("TruncateMod", 3, a, b, (double[]){0, 1, -1});
    tutti_text text = {0};
    put_placeholder(&text, "x", 2, (int64_t[]){2, 2});
    put(&text, "whole", "Cast", "x", "t:DstT=3");
    put_whole(&text, "axis", 1);
    put(&text, "mean", "Mean", "whole axis", "");
    put(&text, "y", "Cast", "mean", "t:DstT=1");
    const hand_input x = {"x", 2, {2, 2}, (float[]){1, 2, 4, -9}};
    check_runs(&text, 1, &x, "y", 2, (double[]){1, -2});
    tutti__text_free(&text);
}

TUTTI_TEST(graphdef_images_of_integers_are_resized_as_floats)
{
    tutti_text text = {0};
    put_placeholder(&text, "x", 4, (int64_t[]){1, 1, 2, 1});
    put(&text, "bytes", "Cast", "x", "t:DstT=4");
    put_const(&text, "size", 3, 1, (int64_t[]){2}, 2, (float[]){1, 4});
    put(&text, "y", "ResizeBilinear", "bytes size", "");
    const hand_input x = {"x", 4, {1, 1, 2, 1}, (float[]){0, 3}};
    check_runs(&text, 1, &x, "y", 4, (double[]){0, 1.5, 3, 3});
    tutti__text_free(&text);
}

/* Of equal places the last stays, whatever dimensions are open. */
TUTTI_TEST(graphdef_scatters_the_last_update_of_a_place)
{
    for (int64_t dim = -1; dim <= 2; dim += 3) {
        tutti_text text = {0};
        put_placeholder(&text, "x", 2, (int64_t[]){dim, dim});
        put_const(&text, "at", 3, 2, (int64_t[]){2, 1}, 2, (float[]){1, 1});
        put_const(&text, "rows", 1, 2, (int64_t[]){2, 2}, 4, (float[]){5, 6, 7, 8});
        put(&text, "y", "TensorScatterUpdate", "x at rows", "");
        const hand_input x = {"x", 2, {2, 2}, (float[]){1, 2, 3, 4}};
        check_runs(&text, 1, &x, "y", 4, (double[]){1, 2, 7, 8});
        tutti__text_free(&text);
    }
}

TUTTI_TEST(graphdef_segments_leave_out_negative_ids)
{
    tutti_text text = {0};
    put_placeholder(&text, "x", 1, (int64_t[]){4});
    put_const(&text, "ids", 3, 1, (int64_t[]){4}, 4, (float[]){0, -1, 2, 0});
    put_whole(&text, "count", 3);
    put(&text, "y", "UnsortedSegmentSum", "x ids count", "");
    const hand_input x = {"x", 1, {4}, (float[]){1, 10, 100, 1000}};
    check_runs(&text, 1, &x, "y", 3, (double[]){1001, 0, 100});
    tutti__text_free(&text);
}

TUTTI_TEST(graphdef_select_takes_rows)
{
    tutti_text text = {0};
    put_placeholder(&text, "x", 2, (int64_t[]){2, 2});
    put_const(&text, "levels", 1, 1, (int64_t[]){2}, 2, (float[]){1, -1});
    put_const(&text, "none", 1, 1, (int64_t[]){2}, 2, (float[]){0, 0});
    put(&text, "which", "Greater", "levels none", "");
    put(&text, "other", "Neg", "x", "");
    put(&text, "y", "Select", "which x other", "");
    const hand_input x = {"x", 2, {2, 2}, (float[]){1, 2, 3, 4}};
    check_runs(&text, 1, &x, "y", 4, (double[]){1, 2, -3, -4});
    tutti__text_free(&text);
}

/* Numbers so far from each other that the largest alone would hide the first. */
TUTTI_TEST(graphdef_running_logarithms_of_sums)
{
    for (int64_t dim = -1; dim <= 4; dim += 5) {
        tutti_text text = {0};
        put_placeholder(&text, "x", 1, (int64_t[]){dim});
        put_whole(&text, "axis", 0);
        put(&text, "y", "CumulativeLogsumexp", "x axis", "");
        put(&text, "back", "CumulativeLogsumexp", "x axis", "b:reverse=1");
        put(&text, "other", "CumulativeLogsumexp", "x axis", "b:exclusive=1");
        put(&text, "others", "Atan", "other", "");
        const hand_input x = {"x", 1, {4}, (float[]){-500, 0, 500, 500}};
        check_runs(&text, 1, &x, "y", 4, (double[]){-500, 0, 500, 500 + M_LN2});
        check_runs(&text, 1, &x, "back", 4, (double[]){500 + M_LN2, 500 + M_LN2, 500 + M_LN2, 500});
        check_runs(&text, 1, &x, "others", 4, (double[]){-M_PI / 2, atan(-500), 0, atan(500)});
        tutti__text_free(&text);
    }
}

TUTTI_TEST(graphdef_splits_with_a_size_that_is_the_rest)
{
    for (int64_t dim = -1; dim <= 5; dim += 6) {
        static const double expected[][3] = {{1}, {2, 3}, {4, 5}};
        static const char *const names[] = {"a", "b", "c"};
        tutti_text text = {0};
        put_placeholder(&text, "x", 1, (int64_t[]){dim});
        put_const(&text, "sizes", 3, 1, (int64_t[]){3}, 3, (float[]){1, -1, 2});
        put_whole(&text, "axis", 0);
        put(&text, "pieces", "SplitV", "x sizes axis", "i:num_split=3");
        put(&text, "a", "Identity", "pieces", "");
        put(&text, "b", "Identity", "pieces:1", "");
        put(&text, "c", "Identity", "pieces:2", "");
        const hand_input x = {"x", 1, {5}, (float[]){1, 2, 3, 4, 5}};
        for (int i = 0; i < 3; i++)
            check_runs(&text, 1, &x, names[i], i == 0 ? 1 : 2, expected[i]);
        tutti__text_free(&text);
    }
}

/* Output 2 is the variance with one less in the denominator. */
TUTTI_TEST(graphdef_batch_norm_gives_the_moments_of_its_batch)
{
    tutti_text text = {0};
    put_placeholder(&text, "x", 4, (int64_t[]){-1, 1, 1, 1});
    put_const(&text, "one", 1, 1, (int64_t[]){1}, 1, (float[]){1});
    put(&text, "norm", "FusedBatchNormV3", "x one one one one", "b:is_training=1 g:epsilon=0.25");
    put(&text, "y", "Identity", "norm", "");
    put(&text, "mean", "Identity", "norm:1", "");
    put(&text, "variance", "Identity", "norm:2", "");
    const hand_input x = {"x", 4, {4, 1, 1, 1}, (float[]){1, 2, 3, 4}};
    double root = sqrt(1.25 + 0.25);
    check_runs(&text, 1, &x, "y", 4,
               (double[]){1 - 1.5 / root, 1 - 0.5 / root, 1 + 0.5 / root, 1 + 1.5 / root});
    check_runs(&text, 1, &x, "mean", 1, (double[]){2.5});
    check_runs(&text, 1, &x, "variance", 1, (double[]){5.0 / 3});
    tutti__text_free(&text);
}
