/* elements_test.c: gather and scatter of elements, triangles, running products, and the newer
 * activations, against numbers of PyTorch and of ONNX's reference. */
#include <stdlib.h>
#include <string.h>

#include "ops/build.h"
#include "ops/network/network_test.h"
#include "ops/shape/move.h"

#define DATA "f32[3,5]{=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15} "
#define ROWS DATA "i64[3,2]{=0,3,4,-2,1,2} f32[3,2]{=1.5,-2,3,4,-5,6} | axis=1 reduction="
#define COLUMNS DATA "i64[2,4]{=0,0,2,-1,0,1,2,2} f32[2,4]{=1,2,3,4,5,6,7,8} | reduction="

TUTTI_TEST(scatter_elements_as_onnx)
{
    CHECK_OP("scatter_elements", ROWS "none", 0, 1.5, 2, 3, -2, 5, 6, 7, 8, 4, 3, 11, -5, 6, 14,
             15);
    CHECK_OP("scatter_elements", ROWS "add", 0, 2.5, 2, 3, 2, 5, 6, 7, 8, 13, 13, 11, 7, 19, 14,
             15);
    CHECK_OP("scatter_elements", ROWS "mul", 0, 1.5, 2, 3, -8, 5, 6, 7, 8, 36, 30, 11, -60, 78, 14,
             15);
    CHECK_OP("scatter_elements", ROWS "max", 0, 1.5, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
             15);
    CHECK_OP("scatter_elements", ROWS "min", 0, 1, 2, 3, -2, 5, 6, 7, 8, 4, 3, 11, -5, 6, 14, 15);
    CHECK_OP("scatter_elements", COLUMNS "add", 0, 7, 4, 3, 4, 5, 6, 13, 8, 9, 10, 11, 12, 23, 26,
             15);
    CHECK_OP("scatter_elements", COLUMNS "mul", 0, 5, 4, 3, 4, 5, 6, 42, 8, 9, 10, 11, 12, 273, 448,
             15);
    CHECK_OP("scatter_elements", COLUMNS "max", 0, 5, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
             15);
    CHECK_OP("scatter_elements", COLUMNS "min", 0, 1, 2, 3, 4, 5, 6, 6, 8, 9, 10, 11, 12, 3, 4, 15);
    CHECK_REFUSES("scatter_elements", "f32[3] i32[1]{=3} f32[1]", TUTTI_OUT_OF_RANGE,
                  "indices run from -3 to 2");
    CHECK_REFUSES("scatter_elements", "f32[3] i32[2]{=0,1} f32[1]", TUTTI_INVALID, "must agree");
    CHECK_REFUSES("scatter_elements", "f32[3] i32[1]{=0} f32[1] | reduction=sum", TUTTI_INVALID,
                  "knows none, add");
}

/* Of equal indices the last stays, so the others change nothing. */
TUTTI_TEST(updates_that_were_replaced_have_no_gradient)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti_range(g, 1, 5, 1, TUTTI_F64), u = tutti_range(g, 1, 4, 1, TUTTI_F64);
    tutti_sym y = tutti_scatter_elements(x, tutti_ints(g, 1, -3, 1), u, 0, NULL);
    tutti_sym loss = tutti_sum(tutti_mul(tutti_square(y), tutti_range(g, 1, 5, 1, TUTTI_F64)));
    tutti_sym du = tutti_gradient(loss, u), dx = tutti_gradient(loss, x);
    CHECK_SYM(y, 1, 3, 3, 4);
    CHECK_SYM(du, 0, 0, 12); /* 2 weight y */
    CHECK_SYM(dx, 2, 0, 18, 32);
    CHECK_SYM(tutti_gradient(tutti_sum(du), u), 0, 0, 4);
    CHECK_SYM(tutti_gradient(tutti_sum(dx), x), 2, 0, 6, 8);
    tutti_sym rows = tutti_reshape(tutti_range(g, 1, 9, 1, TUTTI_F32), 2, 4);
    tutti_sym few = tutti_reshape(tutti_range(g, 1, 7, 1, TUTTI_F32), 2, 3);
    tutti_sym at = tutti_reshape(tutti_ints(g, 0, 3, 0, 2, 2, -2), 2, 3);
    y = tutti_scatter_elements(rows, at, few, 1, "none");
    CHECK_SYM(tutti_gradient(tutti_sum(tutti_mul(y, rows)), few), 0, 4, 1, 0, 0, 7);
    tutti_graph_destroy(g);
}

TUTTI_TEST(gather_elements_as_onnx)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti_reshape(tutti_range(g, 1, 16, 1, TUTTI_F32), 3, 5);
    tutti_sym at = tutti_reshape(tutti_ints(g, 0, 3, 4, -2, 1, 2), 3, 2);
    CHECK_SYM(tutti_gather_elements(x, at, 1), 1, 4, 10, 9, 12, 13);
    tutti_sym few = tutti_reshape(tutti_ints(g, 0, -1), 1, 2);
    CHECK_SYM(tutti_gather_elements(x, few, 0), 1, 12);
    tutti_graph_destroy(g);
}

/* 0 where the elements of both are the same. */
static tutti_sym furthest(tutti_sym a, tutti_sym b)
{
    tutti_sym apart = tutti_abs(tutti_sub(tutti_cast(a, TUTTI_F64), tutti_cast(b, TUTTI_F64)));
    return tutti_max(tutti_reshape(apart, -1));
}

/* Small whole numbers, whose sums are the same in every type; rows of y begin inside and reach over
 * the tiles in which 16-bit floats are summed, and some rows of y get several updates or none. */
TUTTI_TEST(sums_of_short_floats_over_many_tiles)
{
    static const tutti_dtype types[] = {TUTTI_BF16, TUTTI_F16, TUTTI_F32, TUTTI_I32};
    tutti_graph *g = tutti__test_graph();
    tutti_sym numbers =
        tutti_mod(tutti_range(g, 0, 25000, 1, TUTTI_F64), tutti_scalar(g, TUTTI_F64, 13));
    tutti_sym wide = tutti_reshape(numbers, 5, 5000), at = tutti_ints(g, 2, 0, 2, 3, 2);
    tutti_sym few = tutti_reshape(numbers, 5, 1000, 5);
    tutti_sym back = tutti_cast(tutti_mod(tutti_mul(numbers, tutti_scalar(g, TUTTI_F64, 3)),
                                          tutti_scalar(g, TUTTI_F64, 11)),
                                TUTTI_I64);
    tutti_sym along = tutti_reshape(back, 5, 1000, 5), like = tutti_fill(g, TUTTI_F32, 0, 5, 11, 5);
    tutti_sym rows = tutti_gather_grad(wide, at, tutti_fill(g, TUTTI_F32, 0, 4, 5000), 0);
    tutti_sym places = tutti_put_along(along, few, like, 1);
    CHECK_SYM(tutti_sum(tutti_reshape(tutti_slice_axis(rows, 0, 1, 2), -1)), 0);
    CHECK_SYM(tutti_sub(tutti_sum(tutti_reshape(rows, -1)), tutti_sum(numbers)), 0);
    CHECK_SYM(tutti_sub(tutti_sum(tutti_reshape(places, -1)), tutti_sum(numbers)), 0);
    for (int i = 0; i < (int)TUTTI_COUNT(types); i++) {
        tutti_sym narrow = tutti_cast(wide, types[i]);
        CHECK_SYM(furthest(tutti_gather_grad(narrow, at, rows, 0), rows), 0);
        CHECK_SYM(furthest(tutti_scatter_nd(tutti_expand_dims(at, 1), narrow, 4, 5000), rows), 0);
        narrow = tutti_put_along(along, tutti_cast(few, types[i]), like, 1);
        CHECK_SYM(furthest(narrow, tutti_cast(places, types[i])), 0);
    }
    tutti_graph_destroy(g);
}

/* Indices that run backwards give what `reverse` gives, for each size of element, however the
 * pieces in which places are found fall on the axes. */
TUTTI_TEST(elements_in_reverse_order)
{
    static const tutti_dtype types[] = {TUTTI_U8, TUTTI_BF16, TUTTI_F32, TUTTI_F64};
    static const int64_t sizes[3][3] = {{3, 201, 3}, {5, 3, 100}, {600, 2, 2}};
    tutti_graph *g = tutti__test_graph();
    for (int k = 0; k < 3 * (int)TUTTI_COUNT(types); k++) {
        const int64_t *d = sizes[k / (int)TUTTI_COUNT(types)];
        tutti_dtype type = types[k % (int)TUTTI_COUNT(types)];
        tutti_sym all = tutti_range(g, 0, (double)(d[0] * d[1] * d[2]), 1, TUTTI_F64);
        tutti_sym x = tutti_cast(tutti_mod(all, tutti_scalar(g, TUTTI_F64, 101)), type);
        x = tutti_reshape(x, d[0], d[1], d[2]);
        for (int axis = 0; axis < 3; axis++) {
            tutti_sym at = tutti_range(g, -1, (double)(-1 - d[axis]), -1, TUTTI_I64);
            at =
                tutti_reshape(at, axis == 0 ? d[0] : 1, axis == 1 ? d[1] : 1, axis == 2 ? d[2] : 1);
            at = tutti_broadcast_to(at, d[0], d[1], d[2]);
            tutti_sym there = tutti_reverse(x, axis), twice = tutti_add(x, there);
            CHECK_SYM(furthest(tutti_gather_elements(x, at, axis), there), 0);
            CHECK_SYM(furthest(tutti_scatter_elements(x, at, x, axis, "none"), there), 0);
            CHECK_SYM(furthest(tutti_scatter_elements(x, at, x, axis, "add"), twice), 0);
            tutti_sym most = tutti_maximum(x, there);
            CHECK_SYM(furthest(tutti_scatter_elements(x, at, x, axis, "max"), most), 0);
            at = tutti_range(g, (double)(d[axis] - 1), -1, -1, TUTTI_I32);
            CHECK_SYM(furthest(tutti_gather(x, at, axis), there), 0);
        }
    }
    tutti_graph_destroy(g);
}

TUTTI_TEST(triangles_of_matrices)
{
    CHECK_OP("trilu", "f32[3,4]{=1,2,3,4,5,6,7,8,9,10,11,12} | offset=1", 0, 0, 2, 3, 4, 0, 0, 7, 8,
             0, 0, 0, 12);
    CHECK_OP("trilu", "f32[3,4]{=1,2,3,4,5,6,7,8,9,10,11,12} | upper=false offset=-1", 0, 0, 0, 0,
             0, 5, 0, 0, 0, 9, 10, 0, 0);
    CHECK_OP("trilu", "i32[2,2]{=1,2,3,4} | offset=9223372036854775807", 0, 0, 0, 0, 0);
    CHECK_OP("trilu", "i32[2,2]{=1,2,3,4} | offset=-9223372036854775808", 0, 1, 2, 3, 4);
    CHECK_REFUSES("trilu", "f32[3]", TUTTI_INVALID, "at least 2 dimensions");
}

/* A scalar has no axes, so a place in it no numbers. */
TUTTI_TEST(places_that_are_not_zero)
{
    tutti_graph *g = tutti__test_graph();
    CHECK_SYM(tutti_nonzero(tutti_ints(g, 0, 3, 0, -1)), 1, 3);
    for (int value = 0; value < 2; value++) {
        tutti_sym places = tutti_nonzero(tutti_scalar(g, TUTTI_F32, value));
        CHECK_INT(tutti_sym_type(places).dims[0], 0);
        tutti_tensor *y = tutti__test_value(places);
        CHECK_INT(tutti_tensor_dims(y)[0], 0);
        CHECK_INT(tutti_tensor_dims(y)[1], value);
        tutti_tensor_release(y);
    }
    tutti_graph_destroy(g);
}

TUTTI_TEST(running_products)
{
    CHECK_OP("cumprod", "f32[2,4]{=1,2,3,4,0.5,0,2,-3} | axis=1", 0, 1, 2, 6, 24, 0.5, 0, 0, 0);
    CHECK_OP("cumprod", "i8[4]{=2,3,4,11} | exclusive=true", 0, 1, 2, 6, 24);
    CHECK_OP("cumprod", "i8[4]{=2,3,4,11}", 0, 2, 6, 24, 8);
    tutti_graph *g = tutti__test_graph();
    tutti_sym x =
        tutti_reshape(tutti_concatenate(TUTTI_SYMS(
                          tutti_range(g, 1, 5, 1, TUTTI_F32), tutti_fill(g, TUTTI_F32, 0.5, 1),
                          tutti_fill(g, TUTTI_F32, 0, 1), tutti_fill(g, TUTTI_F32, 2, 1),
                          tutti_fill(g, TUTTI_F32, -3, 1))),
                      2, 4);
    tutti_sym weight = tutti_reshape(tutti_range(g, 1, 9, 1, TUTTI_F32), 2, 4);
    tutti_sym loss = tutti_sum(tutti_mul(tutti_cumprod(x, 1), weight));
    CHECK_SYM(tutti_gradient(loss, x), 119, 59, 38, 24, 5, -14, 0, 0);
    x = tutti_reshape(x, 1, 1, 1, 1, 1, 2, 4);
    tutti_sym first = tutti_gradient(tutti_sum(tutti_cumprod(x, 6)), x);
    CHECK_SYM(first, 33, 16, 10, 6, 1, -1.5, 0, 0);
    CHECK(!tutti_sym_ok(tutti_gradient(tutti_sum(first), x)));
    CHECK_CONTAINS(tutti_error_message(), "of tutti_cumprod two more than x has; reshape x");
    tutti_graph_destroy(g);
}

TUTTI_TEST(newer_activations_as_pytorch)
{
    CHECK_OP("hard_swish", "f32[8]{=-4,-2.5,-1,-0.3,0.4,2,3.5,90}", 0, 0, -0.2083333, -0.3333333,
             -0.135, 0.2266667, 1.666667, 3.5, 90);
    CHECK_OP("mish", "f32[8]{=-4,-2.5,-1,-0.3,0.4,2,3.5,90}", 0, -0.07259174, -0.1968162,
             -0.3034015, -0.1511332, 0.2890305, 1.943959, 3.493991, 90);
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti_reshape(tutti_ints(g, 1, -2, 3, -4, 5, -6), 2, 3);
    x = tutti_cast(x, TUTTI_F32);
    tutti_sym slope = tutti_mul(tutti_range(g, 1, 4, 1, TUTTI_F32), 0.1);
    tutti_sym weight = tutti_reshape(tutti_range(g, 1, 7, 1, TUTTI_F32), 2, 3);
    tutti_sym y = tutti_prelu(x, slope), loss = tutti_sum(tutti_mul(y, weight));
    CHECK_SYM(y, 1, -0.4, 3, -0.4, 5, -1.8);
    CHECK_SYM(tutti_gradient(loss, x), 1, 0.4, 3, 0.4, 5, 1.8);
    CHECK_SYM(tutti_gradient(loss, slope), -16, -4, -36);
    tutti_graph_destroy(g);
}

TUTTI_TEST(newer_activations_have_the_slopes_of_pytorch)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x =
        tutti_mul(tutti_cast(tutti_ints(g, -40, -25, -10, -3, 4, 20, 35), TUTTI_F64), 0.1);
    CHECK_SYM(tutti_gradient(tutti_sum(tutti_mish(x)), x), -0.05377321, -0.1097436, 0.05921673,
              0.4085109, 0.8370175, 1.069318, 1.009939);
    CHECK_SYM(tutti_gradient(tutti_sum(tutti_hard_swish(x)), x), 0, -0.3333333, 0.1666667, 0.4,
              0.6333333, 1.166667, 1);
    tutti_graph_destroy(g);
}

/* Where the slope is 0 or 1 an infinite gradient meets no other number; at the kinks as PyTorch and
 * TensorFlow have it. */
TUTTI_TEST(elements_slope_of_hard_swish_beyond_its_bend)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti_cast(tutti_ints(g, -1000000, -4, -3, 3, 4, 1000000), TUTTI_F32);
    tutti_sym y = tutti_hard_swish(x), large = tutti__scalar_like(y, (double)INFINITY);
    CHECK_SYM(tutti_gradient(tutti_sum(y), x), 0, 0, 0, 1, 1, 1);
    CHECK_SYM(tutti_gradient(tutti_sum(tutti_mul(y, large)), x), 0, 0, 0, INFINITY, INFINITY,
              INFINITY);
    tutti_graph_destroy(g);
}

/* Whole numbers: sums are exact, so that <f(x), dy> = <x, f's adjoint of dy> to the last bit. */
static void check_adjoint(tutti_sym y, tutti_sym x)
{
    tutti_graph *g = tutti_sym_graph(x);
    tutti_type type = tutti_sym_type(y);
    double count = (double)tutti_type_count(&type);
    tutti_sym dy = tutti_mod(tutti_range(g, 0, count, 1, TUTTI_F64), tutti_scalar(g, TUTTI_F64, 7));
    tutti_sym weighted = tutti_mul(tutti_reshape(y, -1), dy), loss = tutti_sum(weighted);
    tutti_sym back = tutti_sum(tutti_reshape(tutti_mul(x, tutti_gradient(loss, x)), -1));
    CHECK_SYM(tutti_sub(back, loss), 0);
}

TUTTI_TEST(adjoints_of_repeating_and_padding_large_tensors)
{
    static const int64_t sizes[][3] = {{2, 4, 600}, {3, 50, 2}, {5, 3, 1}, {2, 4, 65}};
    tutti_graph *g = tutti__test_graph();
    for (int i = 0; i < (int)TUTTI_COUNT(sizes); i++) {
        const int64_t *d = sizes[i];
        tutti_sym x = tutti_range(g, 0, (double)(d[0] * d[1] * d[2]), 1, TUTTI_F64);
        x = tutti_reshape(tutti_mod(x, tutti_scalar(g, TUTTI_F64, 11)), d[0], d[1], d[2]);
        check_adjoint(tutti_tile(x, 2, 1, 3), x);
        check_adjoint(tutti_tile(x, 1, 3, 1), x);
        check_adjoint(tutti_tile(x, 3, 2, 9), x);
        check_adjoint(tutti_pad(x, .before = TUTTI_INDEX(1, 2, 3), .after = TUTTI_INDEX(2, 0, 1),
                                .mode = "edge"),
                      x);
        int64_t most = d[2] - 1;
        check_adjoint(tutti_pad(x, .before = TUTTI_INDEX(1, 2, most),
                                .after = TUTTI_INDEX(1, 1, most / 2), .mode = "reflect"),
                      x);
    }
    tutti_graph_destroy(g);
}

TUTTI_TEST(elements_found_made_and_multiplied_in_many_pieces)
{
    tutti_graph *g = tutti__test_graph();
    static const tutti_dtype types[] = {TUTTI_BF16, TUTTI_F16, TUTTI_F32, TUTTI_F64,
                                        TUTTI_I8,   TUTTI_U8,  TUTTI_I32, TUTTI_I64};
    tutti_sym n = tutti_range(g, 0, 3000, 1, TUTTI_F64);
    CHECK_SYM(tutti_sum(n), 3000 * 2999 / 2.);
    tutti_sym ten = tutti_mod(n, tutti_scalar(g, TUTTI_F64, 10));
    for (int i = 0; i < (int)TUTTI_COUNT(types); i++) {
        tutti_sym small = tutti_cast(ten, types[i]), few = tutti_slice_axis(small, 0, 0, 20);
        tutti_sym all = tutti_cast(tutti_outer(few, small), TUTTI_F64);
        CHECK_SYM(tutti_sum(tutti_reshape(all, -1)), 90 * 13500);
        tutti_sym whole = tutti_cast(tutti_range(g, 100, -1, -1, types[i]), TUTTI_F64);
        CHECK_SYM(tutti_sum(whole), 5050);
    }
    for (int k = 0; k < 2; k++) {
        int64_t rows = k ? 3 : 1000;
        tutti_sym x = tutti_mod(n, tutti_scalar(g, TUTTI_F64, 5));
        x = tutti_reshape(x, rows, 3000 / rows);
        tutti_sym at = tutti_cast(tutti_nonzero(tutti_cast(x, TUTTI_BF16)), TUTTI_F64);
        tutti_sym flat = tutti_add(tutti_mul(tutti_slice_axis(at, 0, 0, 1),
                                             tutti_scalar(g, TUTTI_F64, 3000. / (double)rows)),
                                   tutti_slice_axis(at, 0, 1, 2));
        CHECK_SYM(tutti_sum(tutti_reshape(flat, -1)), 3000 * 2999 / 2. - 5 * 600 * 599 / 2.);
    }
    tutti_graph_destroy(g);
}

/* from: for each axis its stride in a dense array times 0, 1 or -1, or twice it. Element by element
 * is what must come out. */
static int64_t wrong_moves(size_t size, const int64_t *dims, const int *ways)
{
    tutti_move move = {.rank = 3, .size = size, .dims = {dims[0], dims[1], dims[2]}};
    int64_t count = dims[0] * dims[1] * dims[2], room = 8 * count, wrong = 0, start = 0;
    char *from = malloc((size_t)room * size), *to = calloc((size_t)count, size);
    for (int64_t i = 0; i < room * (int64_t)size; i++)
        from[i] = (char)(i * 31 + i / 251);
    int64_t dense[3] = {4 * dims[1] * dims[2], 2 * dims[2], 1};
    tutti__strides_of(3, dims, move.to);
    for (int i = 0; i < 3; i++) {
        move.from[i] = ways[i] * dense[i];
        start += ways[i] < 0 ? -move.from[i] * (dims[i] - 1) : 0;
    }
    tutti__move(&(tutti_kernel_call){0}, &move, from + start * (int64_t)size, to);
    for (int64_t n = 0; n < count; n++) {
        int64_t at = start + n / (dims[1] * dims[2]) * move.from[0] +
                     n / dims[2] % dims[1] * move.from[1] + n % dims[2] * move.from[2];
        wrong += memcmp(to + n * (int64_t)size, from + at * (int64_t)size, size) != 0;
    }
    free(from);
    free(to);
    return wrong;
}

TUTTI_TEST(moves_of_every_stride)
{
    static const int64_t dims[][3] = {{5, 7, 3}, {3, 40, 2},  {4, 2, 301}, {2, 9, 70},
                                      {6, 1, 5}, {1, 300, 1}, {2, 3, 17}};
    static const int each[] = {-1, 0, 1, 2};
    for (size_t d = 0; d < TUTTI_COUNT(dims); d++)
        for (size_t size = 1; size <= 16; size *= 2)
            for (int w = 0; w < 64; w++) {
                int ways[] = {each[w % 4], each[w / 4 % 4], each[w / 16]};
                CHECK_INT(wrong_moves(size, dims[d], ways), 0);
            }
}
