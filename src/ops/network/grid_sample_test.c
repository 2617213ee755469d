/* grid_sample_test.c: sampling at places against PyTorch's numbers. */
#include "ops/network/network_test.h"

TUTTI_TEST(grid_sample_agrees_with_pytorch)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = WAVE(g, 0, 1, 3, 4, 2), grid = tutti_mul(WAVE(g, 1, 1, 2, 2, 2), 2.2);
    CHECK_SYM(
        tutti_grid_sample(x, grid, .mode = "linear", .padding = "zeros", .align_corners = false),
        -0.0279892, -0.0873510, 0.0056172, 0.0136554, -0.0424799, -0.0059518, 0.4365699, 0.1395120);
    CHECK_SYM(
        tutti_grid_sample(x, grid, .mode = "linear", .padding = "zeros", .align_corners = true),
        -0.1623098, -0.4870042, 0.1356716, -0.0280788, -0.1828401, -0.0005111, 0.1379137,
        0.1488634);
    CHECK_SYM(
        tutti_grid_sample(x, grid, .mode = "linear", .padding = "border", .align_corners = false),
        -0.1919640, -0.5990970, 0.1026093, 0.2494427, -0.2975617, -0.0416911, 0.5991260, 0.1914590);
    CHECK_SYM(
        tutti_grid_sample(x, grid, .mode = "linear", .padding = "border", .align_corners = true),
        -0.1946424, -0.5840167, 0.1929448, -0.0399322, -0.2399981, -0.0006708, 0.1379137,
        0.1488634);
    CHECK_SYM(tutti_grid_sample(x, grid, .mode = "linear", .padding = "reflection",
                                .align_corners = false),
              -0.1919640, -0.5990970, 0.1026093, 0.2494427, -0.2975617, -0.0416911, 0.5991260,
              0.1914590);
    CHECK_SYM(tutti_grid_sample(x, grid, .mode = "linear", .padding = "reflection",
                                .align_corners = true),
              -0.0873301, -0.4072895, 0.1268882, 0.0305003, -0.1377768, 0.0486482, 0.1379137,
              0.1488634);
    CHECK_SYM(
        tutti_grid_sample(x, grid, .mode = "nearest", .padding = "zeros", .align_corners = false),
        0.0000000, 0.0000000, 0.0000000, 0.0000000, 0.0000000, 0.0000000, 0.5991260, 0.1914590);
    tutti_graph_destroy(g);
}

TUTTI_TEST(grid_sample_agrees_with_pytorch_nearest_cubic_and_in_volumes)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = WAVE(g, 0, 1, 3, 4, 2), grid = tutti_mul(WAVE(g, 1, 1, 2, 2, 2), 2.2);
    CHECK_SYM(tutti_grid_sample(x, grid, .mode = "nearest", .padding = "reflection",
                                .align_corners = false),
              -0.1919640, -0.5990970, 0.0000000, 0.5781349, -0.5921493, -0.2516165, 0.5991260,
              0.1914590);
    CHECK_SYM(
        tutti_grid_sample(x, grid, .mode = "cubic", .padding = "zeros", .align_corners = false),
        -0.0368714, -0.1374734, 0.0071436, 0.0139542, -0.0600423, -0.0091384, 0.5826757, 0.1269149);
    CHECK_SYM(
        tutti_grid_sample(x, grid, .mode = "cubic", .padding = "zeros", .align_corners = true),
        -0.2249896, -0.6032972, 0.2450643, -0.0969825, -0.3427937, -0.0068862, 0.1876548,
        0.2215500);
    CHECK_SYM(
        tutti_grid_sample(x, grid, .mode = "cubic", .padding = "border", .align_corners = false),
        -0.2033976, -0.7476288, 0.1439789, 0.2386844, -0.4278571, -0.0372777, 0.7378440, 0.1728530);
    CHECK_SYM(
        tutti_grid_sample(x, grid, .mode = "cubic", .padding = "border", .align_corners = true),
        -0.2502407, -0.6803871, 0.3212668, -0.1636243, -0.4179484, -0.0012373, 0.1152158,
        0.1753907);
    CHECK_SYM(tutti_grid_sample(x, grid, .mode = "cubic", .padding = "reflection",
                                .align_corners = false),
              -0.2641275, -1.0011031, 0.1584716, 0.2498114, -0.4846470, -0.0689133, 0.7723050,
              0.1663886);
    CHECK_SYM(
        tutti_grid_sample(x, grid, .mode = "cubic", .padding = "reflection", .align_corners = true),
        -0.1375149, -0.5239871, 0.2244636, 0.0286838, -0.2692486, 0.0767749, 0.2678442, 0.2106910);
    CHECK_SYM(tutti_grid_sample(WAVE(g, 0, 1, 2, 3, 2, 1),
                                tutti_mul(WAVE(g, 1, 1, 1, 2, 1, 3), 1.8), .padding = "border"),
              0.1392939, -0.3491930);
    tutti_graph_destroy(g);
}

TUTTI_TEST(grid_sample_hands_gradients_back_as_pytorch_does)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = WAVE(g, 0, 1, 3, 4, 2), grid = tutti_mul(WAVE(g, 1, 1, 2, 2, 2), 2.2);
    tutti_sym weights = WAVE(g, 2, 1, 2, 2, 2);
    tutti_sym linear = tutti_grid_sample(x, grid, .padding = "reflection", .align_corners = true);
    tutti_sym cubic = tutti_grid_sample(x, grid, .mode = "cubic", .align_corners = true);
    tutti_sym loss = tutti_sum(tutti_mul(linear, weights));
    CHECK_SYM(tutti_gradient(loss, x), -0.1577125, -0.0593394, -0.2615233, -0.0983982, -0.0620236,
              -0.1683199, -0.1194041, -0.3240393, -0.0665777, -0.0250499, -0.0350369, 0.0342833,
              0.0263198, 0.0023513, -0.0181831, -0.0699279, 0.0000000, 0.0000000, 0.2410793,
              0.2425432, 0.2109168, 0.1069727, 0.4478223, -0.0776886);
    CHECK_SYM(tutti_gradient(loss, grid), 0.3776399, 0.1727636, -0.2636602, -0.0794511, 0.7521158,
              0.3036036, -0.4728706, 0.1670735);
    loss = tutti_sum(tutti_mul(cubic, weights));
    CHECK_SYM(tutti_gradient(loss, x), -0.2128698, -0.0800924, -0.3603022, -0.1077551, -0.0240970,
              -0.1931021, -0.1623870, -0.4404172, 0.0335660, 0.0160839, 0.0120635, -0.0150959,
              -0.0405068, -0.0599639, -0.0204773, -0.0783095, -0.0470506, -0.0473363, 0.3359783,
              0.3376083, 0.1124050, 0.1715219, 0.4940725, -0.1042720);
    CHECK_SYM(tutti_gradient(loss, grid), -0.0466954, 0.1835497, 0.2075094, -0.1594796, 1.6398782,
              0.0863958, -0.5954406, 0.1417954);
    tutti_graph_destroy(g);
}

TUTTI_TEST(grid_sample_says_what_is_wrong)
{
    CHECK_REFUSES("grid_sample", "f32[1,3,4,2] f32[1,2,2,3]", TUTTI_INVALID, "as many coordinates");
    CHECK_REFUSES("grid_sample", "f32[2,3,4,2] f32[1,2,2,2]", TUTTI_INVALID, "the same batch");
    CHECK_REFUSES("grid_sample", "f32[1,3,4,2] f32[1,2,2,2] | mode=area", TUTTI_INVALID,
                  "needs \"linear\"");
    CHECK_REFUSES("grid_sample", "f32[1,3,4,2] f32[1,2,2,2] | padding=wrap", TUTTI_INVALID,
                  "needs \"zeros\"");
}

TUTTI_TEST(second_derivatives_of_odd_grids)
{
    CHECK_GRADIENTS("grid_sample", "f64[1,1,3,1] f64[1,2,2,2]{-1.4:1.4} | padding=reflection", 2);
    CHECK_GRADIENTS("grid_sample",
                    "f64[1,1,3,1] f64[1,2,2,2]{-1.4:1.4} | padding=reflection align_corners=true",
                    2);
    CHECK_GRADIENTS("grid_sample",
                    "f64[1,3,2,2,1] f64[1,1,1,2,3]{-1.2:1.2} | mode=cubic padding=border", 2);
    CHECK_GRADIENTS("grid_sample", "f64[1,3,2,1] f64[1,0,2,2]", 2);
    CHECK_GRADIENTS("grid_sample", "f64[1,4,3,1] f64[1,2,2,2]{-1.4:1.4} | mode=cubic", 3);
}
