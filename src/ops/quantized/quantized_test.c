/* quantized_test.c: operators on quantised numbers against those of ONNX's reference. */
#include "ops/network/network_test.h"
#include "tutti/ops.h"
#include "tutti/tape.h"

TUTTI_TEST(quantize_linear_as_onnx)
{
    CHECK_OP("quantize_linear", "f32[9]{=0,2,3,1000,-254,-1000,0.5,1.5,2.5} f32[]{=2} u8[]{=128}",
             0, 128, 129, 130, 255, 1, 0, 128, 129, 129);
    CHECK_OP("quantize_linear", "f32[9]{=0,2,3,1000,-254,-1000,0.5,1.5,2.5} f32[]{=1} i8[]{=1}", 0,
             1, 3, 4, 127, -128, -128, 1, 3, 3);
    CHECK_OP("quantize_linear",
             "f32[3,2]{=-162,10,-100,232,-20,-50} f32[2]{=2,4} u8[2]{=84,24} | axis=1", 0, 3, 26,
             34, 82, 74, 12);
    CHECK_OP("quantize_linear",
             "f32[2,4]{=6,12,50,5,50,7,10,-4} f32[2,2]{=1.5,2.5,3,4.9} u8[2,2]{=0,1,1,0} | axis=1 "
             "block=2",
             0, 4, 8, 21, 3, 18, 3, 2, 0);
    CHECK_OP("quantize_linear", "f32[3]{=nan,inf,-inf} f32[]{=1} u8[]{=9}", 0, 9, 255, 0);
    CHECK_REFUSES("quantize_linear", "f32[2,3] f32[2] u8[2]", TUTTI_INVALID,
                  "the scale is f32[2], needs one number or a vector of 3");
    CHECK_REFUSES("quantize_linear", "f32[2,3] f32[3] u8[]", TUTTI_INVALID, "shapes must agree");
    CHECK_REFUSES("quantize_linear", "f32[2,5] f32[2,2] u8[2,2] | block=2", TUTTI_INVALID,
                  "block of 2 along axis 1");
}

TUTTI_TEST(dequantize_linear_as_onnx)
{
    CHECK_OP("dequantize_linear", "u8[3,2]{=3,89,34,200,74,59} f32[2]{=2,4} u8[2]{=84,24} | axis=1",
             0, -162, 260, -100, 704, -20, 140);
    CHECK_OP("dequantize_linear", "i32[2]{=-7,9} f32[]{=0.5}", 0, -3.5, 4.5);
}

TUTTI_TEST(dynamic_quantize_linear_as_onnx)
{
    CHECK_OP("dynamic_quantize_linear", "f32[6]{=0,2,-3,-2.5,1.34,0.5}", 0, 153, 255, 0, 26, 221,
             179);
    CHECK_OP("dynamic_quantize_linear", "f32[6]{=0,2,-3,-2.5,1.34,0.5}", 1, 0.01960784);
    CHECK_OP("dynamic_quantize_linear", "f32[6]{=0,2,-3,-2.5,1.34,0.5}", 2, 153);
    CHECK_OP("dynamic_quantize_linear", "f32[6]{=1,2.1,1.3,2.5,3.34,4}", 0, 64, 134, 83, 159, 213,
             255);
    CHECK_OP("dynamic_quantize_linear", "f32[6]{=1,2.1,1.3,2.5,3.34,4}", 1, 0.01568628);
}

TUTTI_TEST(integer_products_as_onnx)
{
    CHECK_OP("matmul_integer",
             "u8[4,3]{=11,7,3,10,6,2,9,5,1,8,4,0} u8[3,2]{=1,4,2,5,3,6} u8[]{=12} u8[]{=0}", 0, -38,
             -83, -44, -98, -50, -113, -56, -128);
    CHECK_OP("qlinear_matmul",
             "u8[2,4]{=208,236,0,238,3,214,255,29} f32[]{=0.0066} u8[]{=113} "
             "u8[4,3]{=152,51,244,60,26,255,0,127,246,127,254,247} f32[]{=0.00705} u8[]{=114} "
             "f32[]{=0.0107} u8[]{=118}",
             0, 168, 115, 255, 1, 66, 151);
    CHECK_REFUSES("matmul_integer", "u8[2,3] u8[4,2]", TUTTI_INVALID, "need [.., rows, k]");
    CHECK_REFUSES("matmul_integer", "f32[2,3] u8[3,2]", TUTTI_INVALID, "a is f32[2,3], needs i8");
    CHECK_REFUSES("matmul_integer", "u8[2,3] u8[3,2] i8[]", TUTTI_INVALID, "a's zero is i8[]");
}

#define IMAGE "u8[1,4,4,1]{=37,235,140,72,255,137,203,133,79,192,144,129,204,71,237,252} "
#define KERNEL "i8[3,3,1,2]{=6,124,-103,106,50,28,-108,29,126,14,-27,-78,18,-60,84,87,11,87} "

TUTTI_TEST(integer_convolutions_as_onnx)
{
    CHECK_OP("conv_integer", "u8[1,3,3,1]{=2,3,4,5,6,7,8,9,10} u8[2,2,1,1]{=1,1,1,1} u8[]{=1}", 0,
             12, 16, 24, 28);
    CHECK_OP("conv_integer",
             "u8[1,3,3,1]{=2,3,4,5,6,7,8,9,10} u8[2,2,1,1]{=1,1,1,1} u8[]{=1} | padding=explicit "
             "pads=[1,1,1,1]",
             0, 1, 3, 5, 3, 5, 12, 16, 9, 11, 24, 28, 15, 7, 15, 17, 9);
    CHECK_OP("qlinear_conv",
             IMAGE "f32[]{=0.02} u8[]{=120} " KERNEL
                   "f32[2]{=0.01,0.03} i8[2]{=0,0} f32[]{=0.5} u8[]{=100} i32[2]{=1000,-500} | "
                   "padding=explicit pads=[1,1,1,1]",
             0, 100, 103, 111, 97, 100, 117, 98, 95, 112, 97, 92, 113, 104, 116, 100, 99, 95, 113,
             106, 123, 99, 145, 105, 120, 108, 103, 90, 94, 106, 101, 102, 110);
    CHECK_REFUSES("conv_integer", "u8[1,3,3,2] u8[2,2,1,1]", TUTTI_INVALID, "do not fit");
}

TUTTI_TEST(round_float_refuses_what_no_float_has)
{
    static const struct {
        int64_t mantissa, least;
        const char *message;
    } cases[] = {{60, 0, "mantissa is 60"},
                 {-1, 0, "mantissa is -1"},
                 {3, INT32_MIN, "least is -2147483648"},
                 {3, 5000000000, "least is 5000000000"}};
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        tutti_graph *g;
        CHECK_OK(tutti_graph_create(&g));
        tutti_sym x = tutti_placeholder(g, TUTTI_F32, 2);
        tutti_attr attrs[] = {TUTTI_INT("mantissa", cases[i].mantissa),
                              TUTTI_INT("least", cases[i].least)};
        CHECK(!tutti_sym_ok(tutti_apply_op(g, "round_float", 1, &x, 2, attrs)));
        CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
        CHECK_CONTAINS(tutti_error_message(), cases[i].message);
        tutti_graph_destroy(g);
    }
}

TUTTI_TEST(quantized_products_take_zeros_and_scales_by_name)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_graph *g = tutti_eager_graph(e);
    tutti_sym a = tutti_cast(tutti_scalar(g, TUTTI_F32, 7), TUTTI_U8);
    a = tutti_broadcast_to(a, 2, 2);
    tutti_sym x = tutti_broadcast_to(tutti_reshape(a, 1, 2, 2, 1), 1, 2, 2, 1);
    tutti_sym kernel = tutti_reshape(a, 2, 2, 1, 1);
    tutti_sym two = tutti_scalar(g, TUTTI_U8, 2), half = tutti_scalar(g, TUTTI_F32, 0.5);
    CHECK_NEAR(tutti_scalar_value(tutti_matmul_integer(a, a)), 98, 0);
    CHECK_NEAR(tutti_scalar_value(tutti_matmul_integer(a, a, .b_zero = two)), 70, 0);
    CHECK_NEAR(tutti_scalar_value(tutti_matmul_integer(a, a, .a_zero = two, .b_zero = two)), 50, 0);
    CHECK_NEAR(tutti_scalar_value(tutti_conv_integer(x, kernel, .kernel_zero = two)), 140, 0);
    CHECK_NEAR(tutti_scalar_value(tutti_qlinear_matmul(a, a, .a_scale = half, .b_scale = half,
                                                       .b_zero = two, .y_scale = half)),
               35, 0);
    CHECK_NEAR(tutti_scalar_value(tutti_qlinear_conv(x, kernel, .x_scale = half, .y_zero = two,
                                                     .kernel_scale = half, .y_scale = half,
                                                     .strides = {2, 2})),
               100, 0);
    CHECK_OK(tutti_eager_check(e));
    CHECK(!tutti_sym_ok(tutti_qlinear_matmul(a, a, .a_scale = half)));
    CHECK_CONTAINS(tutti_error_message(), "give .a_scale, .b_scale and .y_scale");
    tutti_eager_close(e);
}
