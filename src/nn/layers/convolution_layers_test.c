/* convolution_layers_test.c: convolutions and pooling against Keras. */
#include "nn/layers/layers_test.h"

TUTTI_TEST(layers_convolve_as_keras_does)
{
    expect(LAYERS(tutti_conv1d(2, 3)), floats(DIMS(2, 5, 3)), DIMS(2, 3, 2),
           (double[]){-0.99, 0.85, -1.71, 0.8399999, 1.25, -0.78, 1.39, 0.34, -0.94, 0.79, -1.66,
                      0.7800002});
    expect(LAYERS(tutti_conv1d(2, 3, .padding = "causal", .dilations = 2, .activation = "tanh")),
           floats(DIMS(1, 5, 2)), DIMS(1, 5, 2),
           (double[]){-0.2542955, 0.7442769, -0.889599, 0.7487044, -0.6230654, 0.7778881,
                      -0.1390924, -0.7968782, -0.1973753, 0.8454555});
    expect(
        LAYERS(tutti_conv1d(4, 2, .padding = "same", .strides = 2, .groups = 2, .no_bias = true)),
        floats(DIMS(1, 5, 2)), DIMS(1, 3, 4),
        (double[]){-0.22, 0.18, 1.1, -1.02, -0.52, 0.38, -0.5, -0.05, -0.45, 0.36, 0.5, 0.05});
    expect(LAYERS(tutti_depthwise_conv2d(2, .depth_multiplier = 2)), floats(DIMS(1, 3, 3, 2)),
           DIMS(1, 2, 2, 4),
           (double[]){0.25, -0.01999998, 0.6, -1.72, -0.81, 1.49, -1.3, -1.05, -0.1700001,
                      -0.08999997, -0.73, -0.63, -1.92, 0.73, -0.33, 0.27});
    expect(
        LAYERS(tutti_depthwise_conv2d(3, .padding = "same", .strides = {2}, .activation = "relu")),
        floats(DIMS(1, 4, 4, 1)), DIMS(1, 2, 2, 1), (double[]){0.3, 0.9600001, 0, 0});
    expect(LAYERS(tutti_conv2d(2, 2, .activation = "sigmoid")), floats(DIMS(1, 3, 3, 1)),
           DIMS(1, 2, 2, 2),
           (double[]){0.6177478, 0.7026607, 0.3612369, 0.5149955, 0.1794615, 0.8429045, 0.3251947,
                      0.3775407});
}

TUTTI_TEST(layers_pool_as_keras_does)
{
    expect(LAYERS(tutti_max_pool1d(2)), floats(DIMS(1, 5, 2)), DIMS(1, 2, 2),
           (double[]){-0.1, 0.8, 0.9, 0});
    expect(LAYERS(tutti_max_pool1d(3, .strides = 2, .padding = "same")), floats(DIMS(1, 5, 2)),
           DIMS(1, 3, 2), (double[]){-0.1, 0.8, 0.9, 0, 0.9, 0.5});
    expect(LAYERS(tutti_average_pool1d(3, .strides = 2, .padding = "same")), floats(DIMS(1, 5, 2)),
           DIMS(1, 3, 2), (double[]){-0.35, -0.09999999, 0.4, -0.5, 0, 0.25});
    expect(LAYERS(tutti_average_pool2d(2)), floats(DIMS(1, 4, 4, 2)), DIMS(1, 2, 2, 2),
           (double[]){-0.5, 0.325, 0.5, -0.4, 0.05000001, 0.3, -0.09999999, -0.425});
    expect(LAYERS(tutti_average_pool2d(2, .strides = {1}, .padding = "same")),
           floats(DIMS(1, 3, 3, 1)), DIMS(1, 3, 3, 1),
           (double[]){-0.1, 0.15, -0.3, 0.07499999, -0.25, -0.7, 0.45, -0.45, -0.9});
    expect(LAYERS(tutti_max_pool2d(2, .strides = {1}, .padding = "same")), floats(DIMS(1, 3, 3, 1)),
           DIMS(1, 3, 3, 1), (double[]){0.8, 0.8, -0.1, 0.9, 0.4, -0.5, 0.9, 0, -0.9});
    expect(LAYERS(tutti_global_max_pool1d()), floats(DIMS(2, 3, 2)), DIMS(2, 2),
           (double[]){0.4, 0.8, 0.9, 1});
    expect(LAYERS(tutti_global_average_pool1d(.keepdims = true)), floats(DIMS(2, 3, 2)),
           DIMS(2, 1, 2), (double[]){-0.1, -0.2333333, -0.1333333, 0.5});
    expect(LAYERS(tutti_global_max_pool2d(.keepdims = true)), floats(DIMS(2, 2, 3, 2)),
           DIMS(2, 1, 1, 2), (double[]){0.9, 1, 1.1, 0.7});
    expect(LAYERS(tutti_global_average_pool2d()), floats(DIMS(2, 2, 3, 2)), DIMS(2, 2),
           (double[]){-0.1166667, 0.1333333, 0.2, -0.3166667});
}

TUTTI_TEST(convolution_layers_learn)
{
    learns(LAYERS(tutti_conv1d(4, 3, .activation = TUTTI_TANH), tutti_max_pool1d(2),
                  tutti_global_average_pool1d(), tutti_dense(2)),
           floats(DIMS(3, 8, 2)), 0.2);
    learns(LAYERS(tutti_depthwise_conv2d(2, .depth_multiplier = 2), tutti_average_pool2d(2),
                  tutti_global_max_pool2d()),
           floats(DIMS(3, 5, 5, 2)), 0.6);
    learns(LAYERS(tutti_conv2d(3, 2), tutti_max_pool2d(2), tutti_average_pool2d(1),
                  tutti_global_average_pool2d()),
           floats(DIMS(3, 5, 5, 2)), 0.2);
    learns(LAYERS(tutti_conv1d(3, 2), tutti_average_pool1d(2), tutti_global_max_pool1d()),
           floats(DIMS(3, 6, 2)), 0.3);
}

TUTTI_TEST(convolution_layers_say_what_is_wrong)
{
    refuses(tutti_conv1d(4, 3), floats(DIMS(2, 5)), "takes sequences [batch, time, channels]");
    refuses(tutti_conv1d(3, 3, .groups = 2), floats(DIMS(2, 5, 2)), "2 groups");
    refuses(tutti_depthwise_conv2d(3), floats(DIMS(2, 5, 2)), "takes images");
    refuses(tutti_max_pool2d(2), floats(DIMS(2, 5, 2)), "takes images");
    refuses(tutti_average_pool1d(2), floats(DIMS(2, 5)), "takes sequences");
    refuses(tutti_global_max_pool2d(), floats(DIMS(2, 5)), "takes images");
}
