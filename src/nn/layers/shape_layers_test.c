/* shape_layers_test.c: layers that move elements, and activations, against Keras. */
#include "nn/layers/layers_test.h"

TUTTI_TEST(layers_move_elements_as_keras_does)
{
    expect(LAYERS(tutti_reshape_layer(3, -1)), floats(DIMS(1, 2, 6)), DIMS(1, 3, 4),
           (double[]){-0.6, 0.8, -0.1, -1, 0.4, -0.5, 0.9, 0, -0.9, 0.5, -0.4, 1});
    expect(LAYERS(tutti_permute(2, 1)), floats(DIMS(1, 2, 3)), DIMS(1, 3, 2),
           (double[]){-0.6, -1, 0.8, 0.4, -0.1, -0.5});
    expect(LAYERS(tutti_repeat_vector(3)), floats(DIMS(2, 2)), DIMS(2, 3, 2),
           (double[]){-0.6, 0.8, -0.6, 0.8, -0.6, 0.8, -0.1, -1, -0.1, -1, -0.1, -1});
    expect(LAYERS(tutti_zero_padding1d(1)), floats(DIMS(1, 2, 2)), DIMS(1, 4, 2),
           (double[]){0, 0, -0.6, 0.8, -0.1, -1, 0, 0});
    expect(LAYERS(tutti_zero_padding2d(0, .pads = {1, 0, 0, 2})), floats(DIMS(1, 2, 2, 1)),
           DIMS(1, 3, 4, 1), (double[]){0, 0, 0, 0, -0.6, 0.8, 0, 0, -0.1, -1, 0, 0});
    expect(LAYERS(tutti_zero_padding2d(1)), floats(DIMS(1, 1, 2, 1)), DIMS(1, 3, 4, 1),
           (double[]){0, 0, 0, 0, 0, -0.6, 0.8, 0, 0, 0, 0, 0});
    expect(LAYERS(tutti_cropping1d(1)), floats(DIMS(1, 4, 2)), DIMS(1, 2, 2),
           (double[]){-0.1, -1, 0.4, -0.5});
    expect(LAYERS(tutti_cropping2d(0, .pads = {1, 0, 0, 2})), floats(DIMS(1, 3, 4, 1)),
           DIMS(1, 2, 2, 1), (double[]){0.4, -0.5, -0.9, 0.5});
    expect(LAYERS(tutti_up_sampling1d(2)), floats(DIMS(1, 2, 2)), DIMS(1, 4, 2),
           (double[]){-0.6, 0.8, -0.6, 0.8, -0.1, -1, -0.1, -1});
    expect(LAYERS(tutti_up_sampling2d(2)), floats(DIMS(1, 2, 2, 1)), DIMS(1, 4, 4, 1),
           (double[]){-0.6, -0.6, 0.8, 0.8, -0.6, -0.6, 0.8, 0.8, -0.1, -0.1, -1, -1, -0.1, -0.1,
                      -1, -1});
    expect(LAYERS(tutti_up_sampling2d(3, .size[1] = 2, .interpolation = "bilinear")),
           floats(DIMS(1, 2, 3, 1)), DIMS(1, 6, 6, 1),
           (double[]){-0.6,       -0.25,      0.45,       0.575,     0.125,        -0.1,
                      -0.6,       -0.25,      0.45,       0.575,     0.125,        -0.1,
                      -0.7333333, -0.3833334, 0.3166667,  0.4416666, -0.008333356, -0.2333333,
                      -0.8666667, -0.5166667, 0.1833333,  0.3083333, -0.1416667,   -0.3666667,
                      -1,         -0.65,      0.04999998, 0.175,     -0.275,       -0.5,
                      -1,         -0.65,      0.04999998, 0.175,     -0.275,       -0.5});
}

TUTTI_TEST(activation_layers_are_those_of_keras)
{
    expect(LAYERS(tutti_activation(TUTTI_SIGMOID)), floats(DIMS(1, 6)), DIMS(1, 6),
           (double[]){0.3543437, 0.6899745, 0.4750208, 0.2689414, 0.5986877, 0.3775407});
    expect(LAYERS(tutti_activation(TUTTI_GELU)), floats(DIMS(1, 6)), DIMS(1, 6),
           (double[]){-0.1645519, 0.6305157, -0.04601722, -0.1586553, 0.2621687, -0.1542688});
    expect(LAYERS(tutti_relu_layer()), floats(DIMS(1, 6)), DIMS(1, 6),
           (double[]){0, 0.8, 0, 0, 0.4, 0});
    expect(
        LAYERS(tutti_relu_layer(.max_value = 0.5, .negative_slope = 0.1, .threshold = 0.2)),
        floats(DIMS(1, 12)), DIMS(1, 12),
        (double[]){-0.08000001, 0.5, -0.03, -0.12, 0.4, -0.07, 0.5, -0.02, -0.11, 0.5, -0.06, 0.5});
    expect(LAYERS(tutti_leaky_relu_layer()), floats(DIMS(1, 6)), DIMS(1, 6),
           (double[]){-0.18, 0.8, -0.03, -0.3, 0.4, -0.15});
    expect(LAYERS(tutti_prelu_layer()), floats(DIMS(1, 6)), DIMS(1, 6),
           (double[]){-0.3, 0.8, -0.1, -0.1, 0.4, -0.3});
    expect(LAYERS(tutti_elu_layer(.alpha = 0.5)), floats(DIMS(1, 6)), DIMS(1, 6),
           (double[]){-0.2255942, 0.8, -0.04758132, -0.3160603, 0.4, -0.1967347});
    expect(LAYERS(tutti_softmax_layer()), floats(DIMS(2, 3)), DIMS(2, 3),
           (double[]){0.1491664, 0.6048998, 0.2459339, 0.1491664, 0.6048998, 0.2459339});
    expect(LAYERS(tutti_softmax_layer(.axis = 1)), floats(DIMS(1, 2, 3)), DIMS(1, 2, 3),
           (double[]){0.5986876, 0.5986876, 0.5986876, 0.4013124, 0.4013123, 0.4013123});
}

TUTTI_TEST(shape_layers_learn)
{
    learns(LAYERS(tutti_dense(6), tutti_reshape_layer(3, 2), tutti_permute(2, 1),
                  tutti_zero_padding1d(1), tutti_cropping1d(0, .pads = {0, 1}),
                  tutti_up_sampling1d(2), tutti_leaky_relu_layer(), tutti_global_average_pool1d()),
           floats(DIMS(3, 4)), 0.2);
    learns(LAYERS(tutti_dense(4), tutti_reshape_layer(2, 2, 1), tutti_zero_padding2d(1),
                  tutti_cropping2d(1), tutti_up_sampling2d(2),
                  tutti_up_sampling2d(2, .interpolation = "bilinear"), tutti_elu_layer(),
                  tutti_flatten()),
           floats(DIMS(3, 4)), 0.2);
    learns(LAYERS(tutti_dense(4), tutti_repeat_vector(3), tutti_activation(TUTTI_SILU),
                  tutti_prelu_layer(.shared = true), tutti_prelu_layer(),
                  tutti_relu_layer(.negative_slope = 0.1), tutti_dense(1)),
           floats(DIMS(3, 4)), 0.2);
}

TUTTI_TEST(shape_layers_say_what_is_wrong)
{
    refuses(tutti_reshape_layer(5, -1), floats(DIMS(2, 6)), "do not fit");
    refuses(tutti_reshape_layer(-1, -1), floats(DIMS(2, 6)), "one dimension may be -1");
    refuses(tutti_permute(1, 1), floats(DIMS(2, 6, 2)), "once");
    refuses(tutti_cropping1d(3), floats(DIMS(2, 6, 2)), "takes 6 off axis 1");
    refuses(tutti_up_sampling2d(2, .interpolation = "cubic"), floats(DIMS(1, 2, 2, 1)), "bilinear");
    refuses(tutti_activation("no_such"), floats(DIMS(1, 2)), "no activation 'no_such'");
    refuses(tutti_repeat_vector(0), floats(DIMS(1, 2)), "once or more");
}
