/* shape_test.c: shape operators by hand: values, messages, strings, unknown dimensions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/network/network_test.h"
#include "ops/shape/move.h"

/* Lists of axes that say they are longer than they can be are not read. */
TUTTI_TEST(lists_of_too_many_axes_are_refused)
{
    tutti_axes many = {.count = 200}, less = {.count = -3};
    for (int i = 0; i < 8; i++) {
        tutti_graph *g;
        CHECK_OK(tutti_graph_create(&g));
        tutti_sym x = tutti_placeholder(g, TUTTI_F32, 2, 4, 4, 3);
        tutti_axes axes = i % 2 ? less : many;
        tutti_sym y = i / 2 == 0   ? tutti_slice(x, .begin = axes)
                      : i / 2 == 1 ? tutti_sum(x, .axes = axes)
                      : i / 2 == 2 ? tutti_norm(x, .axes = axes)
                                   : tutti_resize(x, .axes = axes, .sizes = {8, 8});
        CHECK(!tutti_sym_ok(y));
        CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
        CHECK_CONTAINS(tutti_error_message(), i % 2 ? "-3 elements" : "200 elements");
        tutti_graph_destroy(g);
    }
}

TUTTI_TEST(slice_follows_numpy)
{
    const char *x = "f32[6]{=0,1,2,3,4,5} | ";
    static const struct {
        const char *attrs;
        int count;
        double first, last;
    } cases[] = {
        {"begin=[1] end=[4]", 3, 1, 3},
        {"begin=[-2]", 2, 4, 5},
        {"end=[-4]", 2, 0, 1},
        {"begin=[-100] end=[100]", 6, 0, 5},
        {"step=[2]", 3, 0, 4},
        {"step=[-1]", 6, 5, 0},
        {"begin=[4] end=[0] step=[-2]", 2, 4, 2},
        {"begin=[100] end=[-100] step=[-5]", 2, 5, 0},
        {"begin=[1] step=[9223372036854775807]", 1, 1, 1},
        {"begin=[3] step=[-9223372036854775808]", 1, 3, 3},
        {"begin=[4] end=[2]", 0, 0, 0},
        {"begin=[2] end=[4] step=[-1]", 0, 0, 0},
        {"begin=[6]", 0, 0, 0},
    };
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        char text[120];
        tutti_tensor *y = NULL;
        snprintf(text, sizeof text, "%s%s", x, cases[i].attrs);
        CHECK_OK(tutti__test_op("slice", text, &y));
        CHECK_INT(tutti_tensor_count(y), cases[i].count);
        if (cases[i].count > 0) {
            CHECK_NEAR(tutti_tensor_get(y, 0), cases[i].first, 0);
            CHECK_NEAR(tutti_tensor_get(y, cases[i].count - 1), cases[i].last, 0);
        }
        tutti_tensor_release(y);
    }
    CHECK_REFUSES("slice", "f32[3] | step=[0]", TUTTI_INVALID, "step 0 is 0");
    CHECK_REFUSES("slice", "f32[3] | begin=[0,0]", TUTTI_INVALID,
                  "begin has 2 entries, but f32[3] has only 1");
    CHECK_OP("slice_grad", "f32[2]{=7,8} f32[5] | begin=[3] end=[0] step=[-2]", 0, 0, 8, 0, 7, 0);
}

TUTTI_TEST(reshape_counts_elements)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 784);
    tutti_type type = tutti_sym_type(tutti_reshape(x, -1, 28, 28));
    CHECK_INT(type.rank, 3);
    CHECK_INT(type.dims[0], TUTTI_ANY);
    type = tutti_sym_type(tutti_reshape(tutti_fill(g, TUTTI_F32, 1, 1, 1)));
    CHECK_INT(type.rank, 0);
    CHECK_OK(tutti_graph_check(g));
    tutti_graph_destroy(g);
    CHECK_REFUSES("reshape", "f32[2,3] | dims=[4,2]", TUTTI_INVALID,
                  "has 6 elements, which do not fit f32[4,2]");
    CHECK_REFUSES("reshape", "f32[2,3] | dims=[4,-1]", TUTTI_INVALID, "do not fit f32[4,?]");
    CHECK_REFUSES("reshape", "f32[2,3] | dims=[-1,-1]", TUTTI_INVALID, "both -1");
    CHECK_REFUSES("reshape", "f32[0] | dims=[0,-1]", TUTTI_INVALID, "cannot be told");
    CHECK_REFUSES("reshape", "f32[1] | dims=[4611686018427387904,4]", TUTTI_TOO_LARGE, "overflows");
    CHECK_REFUSES("reshape_like", "f32[2,3] f32[5]", TUTTI_INVALID, "has 6 elements");
}

TUTTI_TEST(squeeze_and_expand_dims_name_axes)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti_fill(g, TUTTI_I32, 3, 1, 4, 1);
    CHECK_INT(tutti_sym_type(tutti_squeeze(x)).rank, 1);
    CHECK_INT(tutti_sym_type(tutti_squeeze(x, 0)).rank, 2);
    CHECK_INT(tutti_sym_type(tutti_squeeze(x, 0, -1)).rank, 1);
    CHECK_INT(tutti_sym_type(tutti_expand_dims(x, -1)).dims[3], 1);
    CHECK_INT(tutti_sym_type(tutti_expand_dims(x, 0)).rank, 4);
    CHECK_OK(tutti_graph_check(g));
    CHECK(!tutti_sym_ok(tutti_squeeze(tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 1))));
    CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "name the axes");
    CHECK_CONTAINS(tutti_error_message(), "shape_test.c");
    tutti_graph_destroy(g);
    CHECK_REFUSES("squeeze", "f32[2,1] | axes=[0]", TUTTI_INVALID, "has size 2");
    CHECK_REFUSES("squeeze", "f32[1,1] | axes=[0,-2]", TUTTI_INVALID, "named twice");
}

TUTTI_TEST(joining_and_cutting)
{
    CHECK_OP("concat", "f32[2,1]{=1,2} f32[2,2]{=3,4,5,6} | axis=-1", 0, 1, 3, 4, 2, 5, 6);
    CHECK_OP("stack", "f32[2]{=1,2} f32[2]{=3,4} | axis=1", 0, 1, 3, 2, 4);
    CHECK_OP("unstack", "f32[2,2]{=1,2,3,4} | axis=1 outputs=2", 1, 2, 4);
    CHECK_OP("split", "f32[2,3]{=1,2,3,4,5,6} | axis=1 sizes=[1,2] outputs=2", 1, 2, 3, 5, 6);
    CHECK_OP("split_like", "f32[3]{=1,2,3} i32[2] i32[1] | outputs=2", 1, 3);
    CHECK_REFUSES("concat", "f32[2,3] f32[3,3] | axis=1", TUTTI_INVALID,
                  "all dimensions but that of axis 1 must agree");
    CHECK_REFUSES("concat", "f32[2] i32[2] | axis=0", TUTTI_INVALID, "element types must agree");
    CHECK_REFUSES("concat", "f32[] f32[] | axis=0", TUTTI_INVALID, "scalar");
    CHECK_REFUSES("stack", "f32[2] f32[3]", TUTTI_INVALID, "shapes must agree");
    CHECK_REFUSES("split", "f32[2,10] | axis=1 outputs=3", TUTTI_INVALID,
                  "axis 1 of input f32[2,10] has size 10, which 3 pieces do not divide");
    CHECK_REFUSES("split", "f32[4] | outputs=0", TUTTI_INVALID, "at least 1");
    CHECK_REFUSES("split", "f32[4] | sizes=[1,2] outputs=2", TUTTI_INVALID, "add up to 3");
    CHECK_REFUSES("unstack", "f32[4] | outputs=3", TUTTI_INVALID, "3 outputs are asked for");
}

TUTTI_TEST(padding_by_value_reflection_and_edge)
{
    CHECK_OP("pad", "f32[1,2]{=1,2} | paddings=[0,1,1,0] value=9", 0, 9, 1, 2, 9, 9, 9);
    CHECK_OP("pad", "f32[3]{=1,2,3} | paddings=[2,2] mode=reflect", 0, 3, 2, 1, 2, 3, 2, 1);
    CHECK_OP("pad", "f32[2]{=1,2} | paddings=[2,1] mode=edge", 0, 1, 1, 1, 2, 2);
    CHECK_OP("pad", "f32[2,2]{=1,2,3,4} | paddings=[1,0,0,1] mode=reflect", 0, 3, 4, 3, 1, 2, 1, 3,
             4, 3);
    CHECK_OP("pad_grad", "f32[7]{=1,2,3,4,5,6,7} f32[3] | paddings=[2,2] mode=reflect", 0, 3 + 7,
             2 + 4 + 6, 1 + 5);
    CHECK_OP("pad_grad", "f32[5]{=1,2,4,8,16} f32[2] | paddings=[2,1] mode=edge", 0, 7, 24);
    CHECK_REFUSES("pad_grad", "f32[1] f32[3] | paddings=[9223372036854775807,9223372036854775807]",
                  TUTTI_INVALID, "input f32[1] is not f32[3] with these paddings");
    CHECK_REFUSES("pad", "f32[2] | paddings=[2,0] mode=reflect", TUTTI_INVALID,
                  "2 elements to reflect");
    CHECK_REFUSES("pad", "f32[0] | paddings=[1,0] mode=edge", TUTTI_INVALID, "no edge to repeat");
    CHECK_REFUSES("pad", "f32[2] | paddings=[1]", TUTTI_INVALID, "needs 2");
    CHECK_REFUSES("pad", "f32[2] | paddings=[-1,0]", TUTTI_INVALID, "tutti_slice takes away");
    CHECK_REFUSES("pad", "f32[2] | paddings=[0,0] mode=wrap", TUTTI_INVALID,
                  "mode 'wrap' is not known");
    CHECK_REFUSES("pad", "u8[2] | paddings=[9223372036854775807,0]", TUTTI_TOO_LARGE, "overflows");
}

TUTTI_TEST(repeating)
{
    CHECK_OP("tile", "f32[1,2]{=1,2} | multiples=[2,2]", 0, 1, 2, 1, 2, 1, 2, 1, 2);
    CHECK_OP("tile_grad", "f32[4]{=1,2,3,4} f32[2] | multiples=[2]", 0, 4, 6);
    CHECK_OP("broadcast_to", "f32[2,1]{=1,2} | dims=[-1,3]", 0, 1, 1, 1, 2, 2, 2);
    CHECK_OP("sum_like", "f32[2,3]{=1,2,3,4,5,6} f32[2,1]", 0, 6, 15);
    CHECK_REFUSES("broadcast_to", "f32[2] | dims=[3]", TUTTI_INVALID, "does not broadcast");
    CHECK_REFUSES("broadcast_to", "f32[2] | dims=[-1,2]", TUTTI_INVALID, "no such axis");
    CHECK_REFUSES("broadcast_to", "f32[1] | dims=[4611686018427387904,8]", TUTTI_TOO_LARGE,
                  "overflows");
    CHECK_REFUSES("tile", "f32[2,2] | multiples=[2]", TUTTI_INVALID, "needs 2, one for each axis");
    CHECK_REFUSES("sum_like", "f32[3] f32[2,3]", TUTTI_INVALID, "does not broadcast");
}

TUTTI_TEST(gathering_and_scattering)
{
    CHECK_OP("gather", "f32[2,3]{=1,2,3,4,5,6} i32[2]{=2,0} | axis=1", 0, 3, 1, 6, 4);
    CHECK_OP("gather_grad", "f32[3]{=1,2,4} i32[3]{=1,1,0} f32[3]", 0, 4, 3, 0);
    CHECK_OP("gather_nd", "f32[2,2]{=1,2,3,4} i64[2,2]{=1,1,0,1}", 0, 4, 2);
    CHECK_OP("scatter_nd", "i32[3,1]{=1,1,0} f32[3]{=1,2,4} | dims=[3]", 0, 4, 3, 0);
    CHECK_OP("scatter_nd", "i32[2,1]{=0,0} i8[2]{=100,100} | dims=[1]", 0, -56);
    CHECK_OP("take_along", "f32[2,3]{=1,2,3,4,5,6} i32[2,1]{=2,0}", 0, 3, 4);
    CHECK_OP("put_along", "i32[2,2]{=1,1,0,2} f32[2,2]{=1,2,3,4} f32[2,3]", 0, 0, 3, 0, 3, 0, 4);
    CHECK_OP("one_hot", "i32[3]{=1,5,-1} | depth=2 on=3 off=1", 0, 1, 3, 1, 1, 1, 1);
    /* 1 + 256 ones in bf16: adding one by one would stop at 256. */
    CHECK_OP("scatter_nd", "i32[258,1]{=0} bf16[258]{=1} | dims=[2]", 0, 258, 0);
}

TUTTI_TEST(indices_out_of_range_are_named)
{
    CHECK_REFUSES("gather", "f32[5,3] i32[2,2]{=0,1,2,7}", TUTTI_OUT_OF_RANGE,
                  "indices[1,1] is 7, but axis 0 has size 5: indices run from 0 to 4");
    CHECK_REFUSES("gather", "f32[2,5] i64[]{=-1} | axis=1", TUTTI_OUT_OF_RANGE,
                  "indices is -1, but axis 1");
    CHECK_REFUSES("gather", "f32[0,5] i64[1]{=0}", TUTTI_OUT_OF_RANGE, "axis 0 has no elements");
    CHECK_REFUSES("gather", "f32[5] f32[1]{=0}", TUTTI_INVALID, "needs i32 or i64");
    CHECK_REFUSES("gather_nd", "f32[2,3] i32[1,2]{=0,3}", TUTTI_OUT_OF_RANGE,
                  "indices[0,1] is 3, but axis 1");
    CHECK_REFUSES("gather_nd", "f32[2] i32[1,2]{=0}", TUTTI_INVALID, "at most 1");
    CHECK_REFUSES("scatter_nd", "i32[1,1]{=9} f32[1] | dims=[3]", TUTTI_OUT_OF_RANGE,
                  "indices[0,0] is 9");
    CHECK_REFUSES("scatter_nd", "i32[2,1]{=0} f32[3] | dims=[3]", TUTTI_INVALID,
                  "updates are f32[3]");
    CHECK_REFUSES("gather_grad", "f32[1] i32[1]{=3} f32[3]", TUTTI_OUT_OF_RANGE, "indices[0] is 3");
    CHECK_REFUSES("take_along", "f32[1,2] i32[1,1]{=2}", TUTTI_OUT_OF_RANGE,
                  "indices[0,0] is 2, but axis 1");
    CHECK_REFUSES("put_along", "i32[1]{=-3} f32[1] f32[2]", TUTTI_OUT_OF_RANGE, "indices[0] is -3");
}

TUTTI_TEST(ranges)
{
    CHECK_OP("range", "| start=7 limit=-2 delta=-3 dtype=i32", 0, 7, 4, 1);
    CHECK_OP("range", "| limit=1 delta=0.25", 0, 0, 0.25, 0.5, 0.75);
    CHECK_OP("range", "| start=126 limit=128 dtype=i8", 0, 126, 127);
    CHECK_OP("range", "| start=9007199254740992 limit=9007199254740996 delta=2 dtype=i64", 0,
             0x1p53, 0x1p53 + 2);
    CHECK_REFUSES("range", "| limit=129 dtype=i8", TUTTI_INVALID,
                  "numbers from 0 to 128 do not fit into type i8");
    CHECK_REFUSES("range", "| start=-1 limit=3 dtype=u8", TUTTI_INVALID, "do not fit into type u8");
    CHECK_OP("range_dynamic", "i64[]{=2} i64[]{=9} i64[]{=3}", 0, 2, 5, 8);
    CHECK_OP("range_dynamic", "f32[]{=1} f32[]{=0} f32[]{=-0.5}", 0, 1, 0.5);
    CHECK_REFUSES("range", "| limit=3 delta=0", TUTTI_INVALID, "delta not 0");
    CHECK_REFUSES("range", "| limit=3 delta=0.5 dtype=i32", TUTTI_INVALID, "whole numbers");
    CHECK_REFUSES("range", "| limit=1e300", TUTTI_TOO_LARGE, "too many");
    CHECK_REFUSES("range_dynamic", "i32[]{=0} i32[]{=3} i32[]{=0}", TUTTI_INVALID, "delta not 0");
    CHECK_REFUSES("range_dynamic", "f32[]{=0} f32[]{=inf} f32[]{=1}", TUTTI_INVALID, "finite");
    CHECK_REFUSES("range_dynamic", "i32[1] i32[] i32[]", TUTTI_INVALID, "needs a scalar");
}

TUTTI_TEST(other_orders_and_sizes)
{
    CHECK_OP("reverse", "f32[2,2]{=1,2,3,4}", 0, 4, 3, 2, 1);
    CHECK_OP("reverse", "f32[2,2]{=1,2,3,4} | axes=[-1]", 0, 2, 1, 4, 3);
    CHECK_OP("roll", "f32[3]{=1,2,3} | shift=1 axis=0", 0, 3, 1, 2);
    CHECK_OP("roll", "f32[3]{=1,2,3} | shift=-9223372036854775808 axis=0", 0, 3, 1, 2);
    CHECK_OP("shape", "f32[2,0,5]", 0, 2, 0, 5);
    CHECK_OP("size", "f32[2,3,5] | axes=[0,2]", 0, 10);
    CHECK_OP("fill", "| dims=[2] value=-1.5", 0, -1.5, -1.5);
    CHECK_REFUSES("fill", "| dims=[1099511627776,1099511627776]", TUTTI_TOO_LARGE, "overflows");
    CHECK_REFUSES("one_hot", "i32[2] | depth=9223372036854775807", TUTTI_TOO_LARGE, "overflows");
    CHECK_REFUSES("one_hot", "f32[2] | depth=2", TUTTI_INVALID, "need integers");
}

static void check_fill(tutti_dtype dtype, double value, bool fits)
{
    tutti_graph *g;
    CHECK_OK(tutti_graph_create(&g));
    CHECK(tutti_sym_ok(tutti_fill(g, dtype, value, 2)) == fits);
    if (!fits)
        CHECK_CONTAINS(tutti_graph_check(g) == TUTTI_INVALID ? tutti_error_message() : "",
                       "has no number");
    tutti_graph_destroy(g);
}

TUTTI_TEST(fill_refuses_numbers_that_an_integer_type_has_not)
{
    check_fill(TUTTI_U8, 255, true);
    check_fill(TUTTI_U8, 255.5, false);
    check_fill(TUTTI_I32, 0.5, false);
    check_fill(TUTTI_I32, -0.0, true);
    check_fill(TUTTI_BOOL, 0.5, true);
    check_fill(TUTTI_U8, 256, false);
    check_fill(TUTTI_U8, -1, false);
    check_fill(TUTTI_I8, -128, true);
    check_fill(TUTTI_I8, 128, false);
    check_fill(TUTTI_I32, 3e9, false);
    check_fill(TUTTI_I64, (double)INT64_MAX, true);
    check_fill(TUTTI_I64, 1e19, false);
    check_fill(TUTTI_I32, (double)NAN, false);
    check_fill(TUTTI_F32, (double)INFINITY, true);
    check_fill(TUTTI_BOOL, 7, true);
    tutti_graph *g;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym shape = tutti_placeholder(g, TUTTI_I64, 1);
    CHECK(tutti_sym_ok(tutti_fill_dynamic(shape, TUTTI_U8, 255)));
    CHECK(!tutti_sym_ok(tutti_fill_dynamic(shape, TUTTI_U8, 300)));
    tutti_graph_destroy(g);
}

/* In the rules, whoever builds the node. */
TUTTI_TEST(numbers_that_an_integer_type_has_not_are_refused_by_the_rules)
{
    CHECK_REFUSES("fill", "| dims=[2] value=300 dtype=i8", TUTTI_INVALID, "i8 has no number 300");
    CHECK_REFUSES("fill_dynamic", "i64[1]{=2} | value=2.7 dtype=i64", TUTTI_INVALID,
                  "i64 has no number 2.7");
    CHECK_REFUSES("one_hot", "i32[2] | depth=3 on=300 dtype=i8", TUTTI_INVALID,
                  "i8 has no number 300");
    CHECK_REFUSES("one_hot", "i32[2] | depth=3 off=-1 dtype=u8", TUTTI_INVALID,
                  "u8 has no number -1");
    CHECK_REFUSES("pad", "i8[2] | paddings=[1,1] value=300", TUTTI_INVALID, "i8 has no number 300");
    CHECK_REFUSES("pad", "i64[2] | paddings=[1,1] value=2.7", TUTTI_INVALID,
                  "i64 has no number 2.7");
    CHECK_OP("pad", "i8[1]{=5} | paddings=[1,0] value=-128", 0, -128, 5);
    CHECK_OP("pad", "i8[2]{=5,6} | paddings=[1,0] value=300 mode=edge", 0, 5, 5, 6);
    CHECK_OP("one_hot", "i32[1]{=1} | depth=2 on=127 off=-128 dtype=i8", 0, -128, 127);
}

/* Strings move like any other element. */
/* As NumPy: all NaNs are one value behind the numbers; slices along an axis may have them too. */
TUTTI_TEST(unique_takes_all_nans_for_one_value)
{
    static const char *const some = "f32[8]{=3,nan,1,nan,2,nan,3,1}";
    static const char *const rows = "f64[4,2]{=nan,1,2,5,nan,1,nan,0} | axis=0";
    tutti_tensor *out[4] = {0};
    CHECK_OK(tutti__test_op("unique", some, out));
    CHECK_INT(tutti_tensor_count(out[0]), 4);
    for (int i = 0; i < 3; i++)
        CHECK_NEAR(tutti_tensor_get(out[0], i), i + 1, 0);
    CHECK(isnan(tutti_tensor_get(out[0], 3)));
    for (int i = 0; i < 4; i++)
        tutti_tensor_release(out[i]);
    CHECK_OP("unique", some, 1, 2, 4, 0, 1);
    CHECK_OP("unique", some, 2, 2, 3, 0, 3, 1, 3, 2, 0);
    CHECK_OP("unique", some, 3, 2, 1, 2, 3);
    CHECK_OP("unique", "bf16[5]{=nan,2,nan,1,2} | sorted=false", 2, 0, 1, 0, 2, 1);
    CHECK_OP("unique", "f32[2]{=nan,nan}", 3, 2);
    CHECK_OP("unique", "f32[3]{=1,nan,2}", 1, 0, 2, 1);
    CHECK_OP("unique", rows, 1, 1, 3, 0);
    CHECK_OP("unique", rows, 2, 2, 0, 2, 1);
    CHECK_OP("unique", rows, 3, 1, 1, 2);
    CHECK_OP("unique", "f32[4]{=0,-0,inf,-inf}", 2, 1, 1, 2, 0);
}

TUTTI_TEST(strings_are_moved)
{
    tutti_string words[] = {{"to", 2}, {"be", 2}, {"or", 2}, {"not", 3}};
    tutti_tensor *x = NULL;
    tutti_graph *g = tutti__test_graph();
    CHECK_OK(tutti_tensor_from(TUTTI_STRING, 2, (int64_t[]){2, 2}, words, &x));
    tutti_sym s = tutti_constant(g, x);
    tutti_sym y = tutti_concatenate(TUTTI_SYMS(tutti_transpose(s), tutti_reverse(s)));
    y = tutti_pad(tutti_slice(y, .begin = TUTTI_INDEX(0, 1)), .after = TUTTI_INDEX(1));
    tutti_tensor *value = tutti__test_value(y);
    static const char *const expected[] = {"or", "not", "or", "to", ""};
    for (int i = 0; i < 5; i++) {
        tutti_string word = tutti_tensor_get_string(value, i);
        CHECK_INT(word.size, strlen(expected[i]));
        CHECK(memcmp(word.size ? word.data : "", expected[i], (size_t)word.size) == 0);
    }
    tutti_tensor_release(value);
    tutti_tensor_release(x);
    tutti_graph_destroy(g);
}

/* Sizes along the joined axis that are known only when it runs: gradients by split_like. */
TUTTI_TEST(gradients_of_unknown_sizes)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym a = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY),
              b = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY);
    tutti_sym joined = tutti_concatenate(TUTTI_SYMS(a, b));
    tutti_sym loss = tutti_sum(tutti_mul(joined, joined));
    tutti_sym grad = tutti_gradient(loss, b);
    CHECK_OK(tutti_graph_check(g));
    tutti_tensor *values[2], *result = NULL;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){1}, (float[]){5}, &values[0]));
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){2}, (float[]){1, 3}, &values[1]));
    tutti_reference_feed feeds[] = {{tutti__edge(a), values[0]}, {tutti__edge(b), values[1]}};
    tutti_edge fetch = tutti__edge(grad);
    CHECK_OK(tutti__reference_run(g, 2, feeds, 1, &fetch, &result));
    tutti__test_numbers(__FILE__, __LINE__, result, 2, (double[]){2, 6});
    tutti_tensor_release(result);
    tutti_tensor_release(values[0]);
    tutti_tensor_release(values[1]);
    tutti_graph_destroy(g);
}

/* The gradient of a gather along axis 0 is the rows themselves. */
TUTTI_TEST(gather_has_a_sparse_gradient)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym table = tutti_fill(g, TUTTI_F32, 1, 4, 2);
    tutti_sym indices =
        tutti_cast(tutti_reshape(tutti_range(g, 0, 4, 1, TUTTI_F32), 2, 2), TUTTI_I32);
    tutti_grad grad;
    tutti_gradients(tutti_sum(tutti_gather(table, indices, 0)), 1, &table, &grad);
    CHECK_OK(tutti_graph_check(g));
    CHECK(tutti_sym_ok(grad.rows));
    CHECK_INT(tutti_sym_type(grad.value).dims[0], 4);
    CHECK_INT(tutti_sym_type(grad.rows).rank, 1);
    CHECK_SYM(grad.rows, 0, 1, 2, 3);
    tutti_gradients(tutti_sum(tutti_gather(table, indices, 0)), 1, &table, &grad);
    CHECK_SYM(tutti_grad_dense(grad, table), 1, 1, 1, 1, 1, 1, 1, 1);
    tutti_graph_destroy(g);
}

/* Every permutation of a tensor large enough for tiles and several pieces, element by element. */
static void check_move(const int64_t *dims, const int *order, size_t size)
{
    tutti_kernel_call call = {0};
    tutti_move move = {.rank = 3, .size = size};
    int64_t strides[3] = {dims[1] * dims[2], dims[2], 1}, count = dims[0] * strides[0];
    unsigned char *from = malloc((size_t)count * size), *to = calloc((size_t)count, size);
    for (size_t i = 0; i < (size_t)count * size; i++)
        from[i] = (unsigned char)(i * 2654435761u >> 13);
    for (int i = 0; i < 3; i++) {
        move.dims[i] = dims[order[i]];
        move.from[i] = strides[order[i]];
    }
    tutti__strides_of(3, move.dims, move.to);
    tutti__move(&call, &move, from, to);
    for (int64_t i = 0, n = 0; i < move.dims[0]; i++)
        for (int64_t j = 0; j < move.dims[1]; j++)
            for (int64_t k = 0; k < move.dims[2]; k++, n++) {
                int64_t at = i * move.from[0] + j * move.from[1] + k * move.from[2];
                CHECK(memcmp(to + (size_t)n * size, from + (size_t)at * size, size) == 0);
            }
    free(from);
    free(to);
}

TUTTI_TEST(moves_of_every_order_and_size)
{
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static const size_t sizes[] = {1, 2, 4, 8, 16};
    for (size_t o = 0; o < TUTTI_COUNT(orders); o++)
        for (size_t s = 0; s < TUTTI_COUNT(sizes); s++)
            check_move((int64_t[]){37, 50, 70}, orders[o], sizes[s]);
}
