/* resize_test.c: resizing against PyTorch's and ONNX's numbers. */
#include "ops/network/network_test.h"

TUTTI_TEST(resize_agrees_with_pytorch)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = WAVE(g, 0, 1, 3, 4, 1), large = WAVE(g, 0, 1, 6, 7, 1);
    CHECK_SYM(tutti_resize(x, .sizes = {5, 6}, .mode = "linear"), 0.0000000, 0.2890675, 0.5333292,
              0.3541065, -0.0516794, -0.4126597, -0.2120291, 0.0932403, 0.4029633, 0.4207774,
              0.1271093, -0.1710122, -0.5300728, -0.2005004, 0.2074143, 0.5207837, 0.3952925,
              0.1914590, -0.5100466, -0.3663660, -0.1204193, 0.2886446, 0.4113660, 0.4318215,
              -0.4966959, -0.4769430, -0.3389751, 0.1338852, 0.4220817, 0.5920632);
    CHECK_SYM(tutti_resize(x, .sizes = {2, 6}, .mode = "linear", .coordinates = "align_corners"),
              0.0000000, 0.3468809, 0.5243681, 0.3630676, 0.0205166, -0.4126597, -0.4966959,
              -0.4729924, -0.3153321, 0.1102421, 0.3880854, 0.5920632);
    CHECK_SYM(tutti_resize(x, .sizes = {4, 3}, .mode = "cubic"), 0.1257738, 0.5728864, -0.3547574,
              -0.2456289, 0.5660339, 0.0193843, -0.5235167, 0.2386164, 0.4281414, -0.5076257,
              -0.1734078, 0.5769371);
    CHECK_SYM(tutti_resize(x, .sizes = {2, 5}, .mode = "cubic", .coordinates = "align_corners"),
              0.0000000, 0.4755048, 0.5656018, 0.1173780, -0.4126597, -0.4966959, -0.5409486,
              -0.1307128, 0.4039310, 0.5920632);
    CHECK_SYM(
        tutti_resize(x, .sizes = {5, 3}, .coordinates = "asymmetric", .nearest_mode = "floor"),
        0.0000000, 0.5781349, 0.3093008, 0.0000000, 0.5781349, 0.3093008, -0.5300728, 0.1290720,
        0.5991260, -0.5300728, 0.1290720, 0.5991260, -0.4966959, -0.4571902, 0.2521002);
    CHECK_SYM(tutti_resize(x, .sizes = {5, 3}, .nearest_mode = "round_prefer_ceil"), 0.0000000,
              0.3093008, -0.4126597, 0.0000000, 0.3093008, -0.4126597, -0.5300728, 0.5991260,
              0.1914590, -0.4966959, 0.2521002, 0.5920632, -0.4966959, 0.2521002, 0.5920632);
    CHECK_SYM(tutti_resize(large, .sizes = {3, 3}, .mode = "linear", .antialias = true,
                           .exclude_outside = true),
              0.0514700, -0.0341269, 0.0374617, 0.0014658, -0.0011061, 0.0014165, 0.0411087,
              -0.0357303, 0.0520014);
    CHECK_SYM(tutti_resize(large, .sizes = {3, 2}, .mode = "cubic", .antialias = true,
                           .exclude_outside = true, .cubic_coefficient = -0.5),
              0.0187818, 0.0039874, -0.0014846, -0.0012751, 0.0062457, 0.0175097);
    CHECK_SYM(tutti_resize(WAVE(g, 0, 1, 2, 2, 2, 1), .sizes = {3, 2, 3}, .mode = "linear"),
              0.0000000, 0.2890675, 0.5781349, 0.3093008, -0.0516794, -0.4126597, -0.2650364,
              0.0442835, 0.3536035, 0.4542134, 0.1718065, -0.1106003, -0.5300728, -0.2005004,
              0.1290720, 0.5991260, 0.3952925, 0.1914590);
    tutti_graph_destroy(g);
}

TUTTI_TEST(resize_hands_gradients_back_as_pytorch_does)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = WAVE(g, 0, 1, 3, 4, 1);
    tutti_sym y = tutti_resize(x, .sizes = {5, 6}, .mode = "linear");
    tutti_sym loss = tutti_sum(tutti_mul(y, WAVE(g, 2, 1, 5, 6, 1)));
    CHECK_SYM(tutti_gradient(loss, x), 0.1873028, -0.7559003, 0.3306949, 0.6333456, -0.5781007,
              0.5739500, 0.1213754, -0.7638807, 0.8787225, -0.3024711, -0.5545128, 0.7752604);
    tutti_graph_destroy(g);
}

TUTTI_TEST(resize_agrees_with_onnx)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = WAVE(g, 0, 3, 4), large = WAVE(g, 0, 6, 5);
    tutti_axes both = TUTTI_AXES(0, 1);
    CHECK_SYM(tutti_resize(x, .axes = both, .scales = {2, 0.75}, .coordinates = "asymmetric",
                           .nearest_mode = "floor"),
              0.0000000, 0.5781349, 0.3093008, 0.0000000, 0.5781349, 0.3093008, -0.5300728,
              0.1290720, 0.5991260, -0.5300728, 0.1290720, 0.5991260, -0.4966959, -0.4571902,
              0.2521002, -0.4966959, -0.4571902, 0.2521002);
    CHECK_SYM(tutti_resize(x, .axes = both, .sizes = {4, 3}, .coordinates = "align_corners",
                           .nearest_mode = "ceil"),
              0.0000000, 0.3093008, -0.4126597, -0.5300728, 0.5991260, 0.1914590, -0.4966959,
              0.2521002, 0.5920632, -0.4966959, 0.2521002, 0.5920632);
    CHECK_SYM(tutti_resize(x, .axes = both, .sizes = {2, 6}, .nearest_mode = "round_prefer_ceil"),
              0.0000000, 0.5781349, 0.5781349, 0.3093008, -0.4126597, -0.4126597, -0.4966959,
              -0.4571902, -0.4571902, 0.2521002, 0.5920632, 0.5920632);
    CHECK_SYM(tutti_resize(x, .axes = both, .scales = {1.25, (double)1.6f}, .mode = "linear",
                           .coordinates = "half_pixel_symmetric"),
              -0.1060146, 0.2282999, 0.4656242, 0.3899639, 0.0789088, -0.2918360, -0.5300728,
              -0.1593038, 0.2172071, 0.5109909, 0.4207717, 0.1914590, -0.5033713, -0.4114399,
              -0.2159171, 0.1974848, 0.4048215, 0.5119423);
    CHECK_SYM(tutti_resize(x, .axes = both, .sizes = {1, 6}, .mode = "linear",
                           .coordinates = "pytorch_half_pixel"),
              0.0000000, 0.2890675, 0.5333292, 0.3541065, -0.0516794, -0.4126597);
    CHECK_SYM(tutti_resize(x, .axes = both, .sizes = {3, 3}, .mode = "linear",
                           .coordinates = "tf_crop_and_resize", .roi = {0.4, 0.6, 0.6, 1.25},
                           .extrapolation_value = 10),
              0.4767057, 0.1765035, 10.0000000, 0.5051152, 0.2831841, 10.0000000, 0.4261406,
              0.3296616, 10.0000000);
    CHECK_SYM(tutti_resize(x, .axes = both, .scales = {0.8, 1.5}, .mode = "cubic",
                           .coordinates = "asymmetric", .exclude_outside = true,
                           .cubic_coefficient = -0.5),
              0.0000000, 0.4115083, 0.5680442, 0.3093008, -0.2227680, -0.4886558, -0.5591012,
              -0.2421131, 0.1856917, 0.5422152, 0.4022785, 0.2984289);
    CHECK_SYM(tutti_resize(large, .axes = both, .scales = {0.6, 0.6}, .mode = "linear",
                           .antialias = true),
              0.2500037, 0.1788020, -0.4807786, 0.3756365, 0.0431506, -0.4313298, 0.4603319,
              -0.1073342, -0.3217985);
    CHECK_SYM(
        tutti_resize(large, .axes = both, .sizes = {2, 3}, .mode = "cubic", .antialias = true),
        0.3560264, 0.1669879, -0.5175662, 0.5176426, -0.1674210, -0.3556840);
    CHECK_SYM(tutti_resize(x, .axes = both, .sizes = {1, 3}, .aspect = "not_smaller"), 0.0000000,
              0.5781349, -0.4126597, -0.5300728, 0.1290720, 0.1914590);
    tutti_type wide = tutti_sym_type(
        tutti_resize(x, .axes = both, .sizes = {7, 8}, .mode = "linear", .aspect = "not_larger"));
    CHECK_INT(wide.dims[0], 6);
    CHECK_INT(wide.dims[1], 8);
    tutti_graph_destroy(g);
}

TUTTI_TEST(resize_moves_any_element_type)
{
    CHECK_OP("resize", "i32[1,2,1]{=-7,5} | sizes=[4]", 0, -7, -7, 5, 5);
    CHECK_OP("resize", "bool[1,2,1]{=0,1} | scales=[1.5] nearest_mode=ceil", 0, 0, 1, 1);
    CHECK_OP("resize",
             "i64[1,2,1]{=3,9} | sizes=[3] coordinates=tf_crop_and_resize roi=[0,2] "
             "extrapolation_value=-1",
             0, 3, 9, -1);
}

TUTTI_TEST(resize_takes_a_size_of_zero)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym y = tutti_resize(WAVE(g, 0, 1, 3, 4, 1), .sizes = {0, 3});
    CHECK_OK(tutti_graph_check(g));
    CHECK_INT(tutti_sym_type(y).dims[1], 0);
    CHECK_INT(tutti_sym_type(y).dims[2], 3);
    tutti_graph_destroy(g);
}

TUTTI_TEST(resize_says_what_is_wrong)
{
    CHECK_REFUSES("resize", "f32[1,2,2,1] | mode=nearest", TUTTI_INVALID, "neither sizes nor");
    CHECK_REFUSES("resize", "f32[1,2,2,1] | sizes=[3]", TUTTI_INVALID, "sizes has 1 numbers");
    CHECK_REFUSES("resize", "f32[1,2,2,1] | sizes=[3,3] mode=bilinear", TUTTI_INVALID,
                  "needs one of nearest, linear, cubic");
    CHECK_REFUSES("resize", "i32[1,2,2,1] | sizes=[3,3] mode=linear", TUTTI_INVALID, "tutti_cast");
    CHECK_REFUSES("resize", "f32[1,2,2,1] | sizes=[3,3] axes=[1,1]", TUTTI_INVALID, "different");
    CHECK_REFUSES("resize", "f32[1,2,2,1] | scales=[-1,1]", TUTTI_INVALID, "scales has -1");
}
