/* conv2d_test.c: convolutions against numbers worked out by hand and TensorFlow's. */
#include "ops/network/network_test.h"

TUTTI_TEST(conv2d_slides_a_kernel)
{
    /* 1 2 3      1 0     1*1 + 5*2 = 11, 2 + 12, 4 + 16, 5 + 18
     * 4 5 6  by  0 2
     * 7 8 9 */
    CHECK_OP("conv2d", "f32[1,3,3,1]{=1,2,3,4,5,6,7,8,9} f32[2,2,1,1]{=1,0,0,2}", 0, 11, 14, 20,
             23);
    /* same: one column more on the right, one row more below */
    CHECK_OP("conv2d", "f32[1,3,3,1]{=1,2,3,4,5,6,7,8,9} f32[2,2,1,1]{=1,0,0,2} | padding=same", 0,
             11, 14, 3, 20, 23, 6, 7, 8, 9);
    /* explicit: one row above */
    CHECK_OP("conv2d",
             "f32[1,2,2,1]{=1,2,3,4} f32[2,1,1,1]{=10,1} | padding=explicit pads=[1,0,0,0]", 0, 1,
             2, 13, 24);
}

TUTTI_TEST(conv2d_mixes_channels_by_group)
{
    CHECK_OP("conv2d", "f32[1,1,1,2]{=3,5} f32[1,1,2,3]{=1,2,3,10,20,30}", 0, 53, 106, 159);
    CHECK_OP("conv2d", "f32[1,1,1,4]{=1,2,3,4} f32[1,1,2,2]{=1,10,100,1000} | groups=2", 0, 201,
             4030);
}

TUTTI_TEST(conv2d_agrees_with_tensorflow)
{
    tutti_graph *g = tutti__test_graph();
    CHECK_SYM(tutti_nn_conv2d(WAVE(g, 0, 1, 5, 4, 2), WAVE(g, 1, 3, 2, 2, 3), .strides = {2, 2},
                              .padding = "same"),
              0.3752559, 0.4932972, -0.1113430, 0.2629257, 0.7884748, 0.1589064, -0.0761190,
              -0.7108617, -0.3041904, 0.4305102, 0.2468067, -0.2984692, -0.4428136, -0.5885227,
              0.1279553, -0.2714625, -0.7360684, -0.1223324);
    CHECK_SYM(tutti_nn_conv2d(WAVE(g, 0, 1, 5, 5, 1), WAVE(g, 1, 2, 2, 1, 1), .dilations = {2, 3}),
              0.0770461, 0.1114424, 0.0955212, 0.0982877, 0.1095236, 0.0805307);
    CHECK_SYM(tutti_nn_conv2d(WAVE(g, 0, 1, 3, 3, 4), WAVE(g, 1, 2, 2, 2, 4), .groups = 2),
              0.1384068, 0.4522376, 0.0755816, 0.4271033, 0.3456458, 0.2104242, 0.3238473,
              0.1472105, -0.1718497, -0.4494268, -0.1103217, -0.4181651, -0.3465037, -0.1660648,
              -0.3312492, -0.1026725);
    tutti_graph_destroy(g);
}

TUTTI_TEST(depthwise_conv2d_agrees_with_tensorflow)
{
    tutti_graph *g = tutti__test_graph();
    CHECK_SYM(tutti_nn_depthwise_conv2d(WAVE(g, 0, 1, 3, 3, 2), WAVE(g, 1, 2, 2, 2, 2),
                                        .padding = "same"),
              -0.1139334, 0.4643032, -0.2787047, -0.4138979, 0.3388290, -0.3226404, 0.0050850,
              0.4401239, -0.4066823, -0.2170141, 0.3176311, 0.0648530, 0.4610667, 0.1707473,
              -0.4677880, 0.1432057, -0.3234215, -0.3812535, 0.5316944, 0.0949538, -0.1801114,
              0.1573438, -0.1959419, -0.3645206, 0.0507336, -0.1753131, 0.2755249, 0.1923534,
              -0.2110040, 0.1512659, -0.1193426, -0.1897231, 0.2813595, 0.2493387, 0.0173066,
              0.0384229);
    tutti_graph_destroy(g);
}

TUTTI_TEST(conv1d_agrees_with_keras)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym y = tutti_nn_conv1d(WAVE(g, 0, 1, 5, 2), WAVE(g, 1, 3, 2, 2), .dilations = 2,
                                  .padding = "causal");
    CHECK_SYM(y, 0.3436228, 0.1376217, -0.4158797, -0.0735060, 0.5719991, -0.2284738, -0.3769226,
              0.4223088, -0.0795395, -0.8360635);
    CHECK_INT(tutti_sym_type(y).rank, 3);
    CHECK_INT(tutti_sym_type(y).dims[1], 5);
    tutti_graph_destroy(g);
}

TUTTI_TEST(conv2d_says_what_is_wrong)
{
    CHECK_REFUSES("conv2d", "f32[2,8,8] f32[3,3,1,4]", TUTTI_INVALID,
                  "x has 3 dimensions (f32[2,8,8]), needs 4 [batch,height,width,channels]");
    CHECK_REFUSES("conv2d", "f32[1,8,8,3] f32[3,3,4,4]", TUTTI_INVALID,
                  "its dimension 2 is 4, needs 3 (channels of x / groups)");
    CHECK_REFUSES("conv2d", "f32[1,8,8,3] f32[3,3,1,4] | groups=2", TUTTI_INVALID,
                  "do not divide into 2 groups");
    CHECK_REFUSES("conv2d", "f32[1,2,2,1] f32[3,3,1,1]", TUTTI_INVALID,
                  "does not fit into height 2");
    CHECK_REFUSES("conv2d", "f32[1,2,2,1] f32[1,1,1,1] | padding=reflect", TUTTI_INVALID,
                  "\"valid\", \"same\" or \"explicit\"");
    CHECK_REFUSES("conv2d", "f32[1,2,2,1] f32[1,1,1,1] | strides=[0,1]", TUTTI_INVALID,
                  "strides has 0, needs at least 1");
    CHECK_REFUSES("conv2d", "f32[1,2,2,1] f32[1,1,1,1] | strides=[1]", TUTTI_INVALID,
                  "strides has 1 numbers, needs 2");
    CHECK_REFUSES("conv2d", "i32[1,2,2,1] i32[1,1,1,1]", TUTTI_INVALID,
                  "needs f32, f64, f16 or bf16");
    CHECK_REFUSES("conv2d", "f32[1,2,2,1] f64[1,1,1,1]", TUTTI_INVALID, "element types must agree");
}

/* Height and width that come only with the data: the gradient takes them from x itself. */
TUTTI_TEST(conv2d_differentiates_images_of_unknown_size)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti_placeholder(g, TUTTI_F64, TUTTI_ANY, TUTTI_ANY, TUTTI_ANY, 2);
    tutti_sym kernel = WAVE(g, 1, 3, 2, 2, 3);
    tutti_sym y = tutti_nn_conv2d(x, kernel, .strides = {2, 1}, .padding = "same");
    CHECK_INT(tutti_sym_type(y).dims[1], TUTTI_ANY);
    CHECK_INT(tutti_sym_type(y).dims[3], 3);
    tutti_sym dx = tutti_gradient(tutti_sum(y), x);
    CHECK_OK(tutti_graph_check(g));
    tutti_tensor *value = tutti__test_wave(0, 4, (int64_t[]){1, 5, 4, 2}), *result = NULL;
    tutti_reference_feed feed = {tutti__edge(x), value};
    tutti_edge fetch = tutti__edge(dx);
    CHECK_OK(tutti__reference_run(g, 1, &feed, 1, &fetch, &result));
    CHECK(tutti_type_equal(tutti_tensor_type(result), tutti_tensor_type(value)));
    tutti_tensor_release(value);
    tutti_tensor_release(result);
    tutti_graph_destroy(g);
}
