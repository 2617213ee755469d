/* conv3d_test.c: convolutions over volumes and transposed ones, pooling of volumes, against
 * PyTorch's numbers. */
#include "ops/network/network_test.h"

TUTTI_TEST(conv3d_agrees_with_pytorch)
{
    tutti_graph *g = tutti__test_graph();
    CHECK_SYM(tutti_nn_conv3d(WAVE(g, 0, 1, 3, 4, 3, 2), WAVE(g, 1, 2, 3, 2, 2, 2),
                              .strides = {2, 2, 1}, .pads = {1, 0, 1, 1, 0, 1}),
              0.1737383, -0.3267120, -0.2676572, 0.1380421, 0.1562828, 0.0758234, -0.0878655,
              0.3641622, 0.3532591, -0.1092121, -0.0971134, -0.3076542, 0.3973422, -0.4997795,
              -0.5385420, 0.0693722, 0.0926593, 0.1810901, -0.4298450, 0.4920570, 0.8949734,
              0.0299203, -0.1935612, -0.8423201);
    CHECK_SYM(tutti_nn_conv3d(WAVE(g, 0, 1, 3, 3, 2, 4), WAVE(g, 1, 2, 2, 2, 2, 4), .groups = 2,
                              .dilations = {2, 1, 1}),
              -0.2366776, 0.0376273, -0.2505739, 0.0129551, 0.1823668, 0.1631955, 0.2081656,
              0.1707676);
    tutti_graph_destroy(g);
}

TUTTI_TEST(conv_transpose_agrees_with_pytorch)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = WAVE(g, 0, 1, 2, 3, 2), kernel = WAVE(g, 1, 3, 2, 2, 2);
    CHECK_SYM(tutti_nn_conv2d_transpose(x, kernel, .strides = {2, 1}), 0.2586709, -0.3407941,
              0.2969014, -0.0556971, -0.4575394, 0.3279707, 0.0990678, -0.2344367, 0.0462157,
              0.1376217, -0.4856658, 0.4313874, 0.3595919, -0.4674299, 0.1845765, -0.0319915,
              0.0776280, -0.0855481, -0.1294457, 0.1115317, 0.2137279, -0.2223191, 0.0144883,
              0.1367560, -0.3151711, 0.4016749, -0.1357818, -0.1661253, 0.3632943, -0.0849816,
              -0.4065979, 0.4060416, -0.0345394, -0.1787317, 0.5297889, -0.3534503, -0.5672441,
              0.5141367, 0.1355450, -0.3219917);
    CHECK_SYM(
        tutti_nn_conv2d_transpose(x, kernel, .strides = {2, 3}, .pads = {1, 1, 0, 0},
                                  .output_padding = {1, 2}),
        0.0462157, 0.1376217, -0.2820687, 0.3457813, 0.0000000, 0.0000000, -0.2035971, 0.0856061,
        0.0568873, -0.1830983, 0.0000000, 0.0000000, 0.3027045, -0.2843315, 0.1845765, -0.0319915,
        0.0000000, 0.0000000, 0.0000000, 0.0000000, 0.0776280, -0.0855481, 0.0689824, -0.0326724,
        0.0000000, 0.0000000, -0.1984281, 0.1442041, -0.0487057, -0.0607334, 0.0000000, 0.0000000,
        0.2624335, -0.1615856, 0.0144883, 0.1367560, 0.0000000, 0.0000000, 0.0000000, 0.0000000,
        -0.3151711, 0.4016749, -0.3732103, 0.2379246, 0.0000000, 0.0000000, 0.2374286, -0.4040499,
        0.4550230, -0.3757583, 0.0000000, 0.0000000, -0.0917287, 0.2907767, -0.4065979, 0.4060416,
        0.0000000, 0.0000000, 0.0000000, 0.0000000, -0.0345394, -0.1787317, 0.3408457, -0.4054021,
        0.0000000, 0.0000000, 0.1889431, 0.0519518, -0.2779770, 0.4244389, 0.0000000, 0.0000000,
        -0.2892671, 0.0896978, 0.1355450, -0.3219917, 0.0000000, 0.0000000, 0.0000000, 0.0000000);
    CHECK_SYM(tutti_nn_conv2d_transpose(WAVE(g, 0, 1, 2, 2, 4), WAVE(g, 1, 2, 2, 1, 4),
                                        .strides = {2, 2}, .groups = 2),
              0.2586709, 0.1611280, 0.3253743, 0.2633141, -0.2098747, -0.2719350, 0.0990678,
              0.1384582, 0.0462157, 0.0856061, -0.2820687, -0.1830983, 0.3027045, 0.4016749,
              0.1845765, 0.2379246, -0.4553306, -0.4159401, -0.2325445, -0.1335741, -0.2167852,
              -0.1178148, -0.3169697, -0.2636216, 0.2374286, 0.2907767, 0.4550230, 0.4060416,
              -0.0802260, -0.1292075, 0.2417953, 0.1425499);
    CHECK_SYM(tutti_nn_conv2d_transpose(WAVE(g, 0, 1, 2, 2, 1), WAVE(g, 1, 2, 2, 1, 1),
                                        .dilations = {2, 3}),
              0.0000000, 0.2918903, 0.0000000, 0.0000000, 0.2586709, 0.1561606, -0.2083447,
              0.0000000, 0.1383883, -0.1846335, 0.0000000, -0.1535019, 0.0000000, 0.0000000,
              -0.3407941, -0.0821232, 0.1095662, 0.0000000, -0.1823240, 0.2432512);
    CHECK_SYM(tutti_nn_conv1d_transpose(WAVE(g, 0, 1, 4, 2), WAVE(g, 1, 3, 2, 2), .strides = 2,
                                        .pads = {1, 1}, .output_padding = 1),
              0.3253743, -0.2168251, 0.0177428, 0.2987497, -0.2476646, 0.2633141, -0.4134719,
              0.1502627, 0.0990678, -0.2344367, 0.6908560, -0.5562665, 0.0778845, 0.1384582,
              -0.3151711, 0.4016749);
    CHECK_SYM(tutti_nn_conv3d_transpose(WAVE(g, 0, 1, 2, 2, 2, 1), WAVE(g, 1, 2, 2, 2, 1, 1),
                                        .strides = {1, 2, 2}, .pads = {0, 0, 1, 1, 0, 0}),
              0.0000000, 0.0000000, -0.1535019, -0.3407941, 0.1561606, 0.1383883, -0.2083447,
              -0.1846335, 0.1407408, 0.3124628, 0.1686264, -0.2929094, 0.2870685, 0.4421373,
              0.1172369, -0.1465817, -0.1860292, 0.1987998, 0.0452979, -0.0484075, -0.0298686,
              0.3371881, -0.0095449, 0.1077531);
    tutti_graph_destroy(g);
}

TUTTI_TEST(conv_transpose_takes_its_size_from_its_input)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, TUTTI_ANY, 5, 3);
    tutti_sym kernel = tutti_placeholder(g, TUTTI_F32, 4, 4, 6, 3);
    char text[TUTTI_TYPE_TEXT];
    tutti_type same =
        tutti_sym_type(tutti_nn_conv2d_transpose(x, kernel, .strides = {2, 2}, .padding = "same"));
    CHECK_STR(tutti_type_text(&same, text), "f32[?,?,10,6]");
    tutti_type given = tutti_sym_type(
        tutti_nn_conv2d_transpose(x, kernel, .strides = {2, 2}, .padding = "same", .size = {7, 9}));
    CHECK_STR(tutti_type_text(&given, text), "f32[?,7,9,6]");
    CHECK(!tutti_sym_ok(tutti_nn_conv2d_transpose(x, kernel, .output_padding = {0, 1})));
    CHECK_CONTAINS(tutti_error_message(), "dimension 2 is 5, needs 6");
    tutti_graph_destroy(g);
}

TUTTI_TEST(pool3d_agrees_with_pytorch)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = WAVE(g, 0, 1, 3, 3, 4, 1);
    CHECK_SYM(tutti_nn_max_pool3d(x, .strides = {1, 1, 2}), 0.5781349, 0.5991260, 0.5572771,
              0.5991260, 0.5572771, 0.5782772, 0.5572771, 0.5991545);
    CHECK_SYM(tutti_nn_average_pool3d(x, .strides = {1, 2, 2}, .pads = {1, 1, 1, 1, 1, 1}),
              0.0000000, 0.4437179, -0.4126597, -0.5133843, 0.1307770, 0.3917611, 0.0323261,
              -0.0082346, -0.0246679, -0.0029891, 0.0212762, -0.0167978, -0.0319497, 0.0055552,
              0.0267833, 0.0059434, -0.0217899, 0.0143213, -0.1285515, 0.4712975, -0.3097573,
              -0.4955193, 0.0446449, 0.4539993);
    tutti_sym small = tutti_reshape(tutti_range(g, 1, 17, 1, TUTTI_F32), 1, 2, 2, 2, 2);
    CHECK_SYM(tutti_nn_global_max_pool3d(small), 15, 16);
    CHECK_SYM(tutti_nn_global_average_pool3d(small), 8, 9);
    tutti_graph_destroy(g);
}

TUTTI_TEST(volumes_say_what_is_wrong)
{
    CHECK_REFUSES("conv3d", "f32[1,4,4,3] f32[3,3,3,1]", TUTTI_INVALID,
                  "[batch,depth,height,width,channels]");
    CHECK_REFUSES("conv3d", "f32[1,2,4,4,1] f32[3,1,1,1,1]", TUTTI_INVALID, "into depth 2");
    CHECK_REFUSES("conv3d", "f32[1,2,4,4,1] f32[1,1,1,1,1] | strides=[1,1]", TUTTI_INVALID,
                  "strides has 2 numbers, needs 3");
    tutti_graph *g = tutti__test_graph();
    CHECK(!tutti_sym_ok(tutti_nn_max_pool3d(WAVE(g, 0, 2, 4, 4, 2))));
    CHECK_CONTAINS(tutti_error_message(), "max_pool3d: x is f64[2,4,4,2]");
    tutti_graph_destroy(g);
}
