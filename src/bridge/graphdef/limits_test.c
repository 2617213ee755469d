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
        const hand_input x = {"x", 1, {4}, (float[]){-500, 0, 500, 500}};
        check_runs(&text, 1, &x, "y", 4, (double[]){-500, 0, 500, 500 + M_LN2});
        check_runs(&text, 1, &x, "back", 4, (double[]){500 + M_LN2, 500 + M_LN2, 500 + M_LN2, 500});
        tutti__text_free(&text);
    }
}
