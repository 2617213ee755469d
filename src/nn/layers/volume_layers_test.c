/* volume_layers_test.c: layers over volumes, transposed and separable convolutions, and larger
 * images against Keras. */
#include <stdlib.h>

#include "nn/layers/layers_test.h"

TUTTI_TEST(volume_layers_give_what_keras_gives)
{
    expect(LAYERS(tutti_conv3d(2, 2, .activation = "tanh")), floats(DIMS(1, 2, 3, 2, 2)),
           DIMS(1, 1, 2, 1, 2), (double[]){-0.5849799, 0.8831709, -0.9982139, 0.9526789});
    expect(LAYERS(tutti_conv3d(2, 3, .strides = {2}, .padding = "same")),
           floats(DIMS(1, 3, 3, 2, 1)), DIMS(1, 2, 2, 1, 2),
           (double[]){-1.54, -0.24, -1.52, 0.78, 0.47, 2.47, -0.78, 0.6099999});
    expect(LAYERS(tutti_max_pool3d(2)), floats(DIMS(1, 4, 2, 2, 2)), DIMS(1, 2, 1, 1, 2),
           (double[]){0.9, 1, 1.1, 0.9});
    expect(LAYERS(tutti_average_pool3d(2, .strides = {1}, .padding = "same")),
           floats(DIMS(1, 2, 2, 2, 1)), DIMS(1, 2, 2, 2, 1),
           (double[]){-0.0125, -0.175, -0.05000001, -0.5, 0.2, -0.25, 0.45, 0});
    expect(LAYERS(tutti_global_average_pool3d(.keepdims = true)), floats(DIMS(1, 2, 2, 2, 2)),
           DIMS(1, 1, 1, 1, 2), (double[]){0, -0.0375});
    expect(LAYERS(tutti_global_max_pool3d()), floats(DIMS(2, 2, 2, 2, 2)), DIMS(2, 2),
           (double[]){0.9, 1, 1.1, 0.9});
    expect(LAYERS(tutti_up_sampling3d(2)), floats(DIMS(1, 1, 2, 1, 2)), DIMS(1, 2, 4, 2, 2),
           (double[]){-0.6, 0.8,  -0.6, 0.8,  -0.6, 0.8,  -0.6, 0.8,  -0.1, -1,   -0.1,
                      -1,   -0.1, -1,   -0.1, -1,   -0.6, 0.8,  -0.6, 0.8,  -0.6, 0.8,
                      -0.6, 0.8,  -0.1, -1,   -0.1, -1,   -0.1, -1,   -0.1, -1});
    /* Keras's numbers differ from these by 1e-4: it looks its weights up in a table */
    expect(LAYERS(tutti_up_sampling2d(2, .size[1] = 3, .interpolation = "bicubic")),
           floats(DIMS(1, 2, 2, 1)), DIMS(1, 4, 6, 1),
           (double[]){-0.8128488, -0.6441176, -0.1632353, 0.4779412,  0.9588235,  1.1275547,
                      -0.5936469, -0.4964286, -0.2193572, 0.1500714,  0.4271429,  0.5243612,
                      -0.1589848, -0.2035714, -0.3306429, -0.5000714, -0.6271429, -0.6717295,
                      0.0602171,  -0.0558824, -0.3867647, -0.8279412, -1.1588235, -1.2749229});
}

TUTTI_TEST(transposed_convolution_layers_give_what_keras_gives)
{
    expect(LAYERS(tutti_conv2d_transpose(2, 3, .strides = {2}, .padding = "same")),
           floats(DIMS(1, 2, 2, 2)), DIMS(1, 4, 4, 2),
           (double[]){-1.32,      0.1799999,  0.2600001, 1.76,      -1.03, -0.08000004, -1.22,
                      -0.3700001, 0.2,        1.7,       -1.44,     0.06,  -1.43,       0.9,
                      0.31,       1.16,       0.7399999, 0.3499999, -1.92, -0.4700001,  0.2,
                      2.01,       -1.18,      0.1199999, -1.29,     0.06,  -0.24,       1.11,
                      -1.33,      -0.4500001, -0.79,     1.06});
    expect(LAYERS(tutti_conv2d_transpose(1, 2, .strides = {3})), floats(DIMS(1, 2, 2, 2)),
           DIMS(1, 6, 6, 1),
           (double[]){-1.32, -1.22, -0.7, -0.35, -0.9, -0.7, 0.2600001, 0.3600001, -0.7,
                      -1.22, -1.77, -0.7, -0.7,  -0.7, -0.7, -0.7,      -0.7,      -0.7,
                      -0.3,  -0.35, -0.7, -0.25, 0.2,  -0.7, -1.32,     -1.37,     -0.7,
                      -1.42, -0.97, -0.7, -0.7,  -0.7, -0.7, -0.7,      -0.7,      -0.7});
    expect(LAYERS(tutti_conv2d_transpose(1, 3, .strides = {2}, .padding = "same",
                                         .output_padding = {1})),
           floats(DIMS(1, 2, 3, 1)), DIMS(1, 4, 6, 1),
           (double[]){-1,    -0.46, -0.9,  -1.02, 0.05000001, -0.66, -0.76, -0.22,
                      -0.98, -1.34, -0.23, -0.62, -1.02,      -0.96, -1.86, 0.02000004,
                      -0.36, -0.61, -0.8,  0.1,   -1.26,      -1.02, -0.51, -0.3});
    expect(LAYERS(tutti_conv2d_transpose(1, 3, .strides = {2}, .output_padding = {1},
                                         .activation = "sigmoid")),
           floats(DIMS(1, 2, 1, 2)), DIMS(1, 6, 4, 1),
           (double[]){0.2108183, 0.2279364, 0.5646362, 0.3318122, 0.5890404, 0.201009,
                      0.2175502, 0.3318122, 0.6341356, 0.5249792, 0.1234671, 0.3318122,
                      0.1455423, 0.4950002, 0.3612369, 0.3318122, 0.2911099, 0.1915453,
                      0.5768852, 0.3318122, 0.3318122, 0.3318122, 0.3318122, 0.3318122});
    expect(LAYERS(tutti_conv1d_transpose(2, 3, .strides = 2)), floats(DIMS(1, 3, 2)), DIMS(1, 7, 2),
           (double[]){-1.32, 0.1799999, 0.2600001, 1.76, -1.03, -0.08000004, -1.22, -0.3700001,
                      0.3800001, 1.18, -1.32, 0.02999997, -0.27, 1.08});
    expect(LAYERS(tutti_conv1d_transpose(2, 4, .strides = 2, .padding = "same", .no_bias = true)),
           floats(DIMS(1, 3, 1)), DIMS(1, 6, 2),
           (double[]){-0.6, -0.06, 0.88, -0.6800001, 0.98, -0.58, -0.6900001, 0.52, -0.34,
                      0.8700001, 0.08000001, -0.06});
    expect(LAYERS(tutti_conv3d_transpose(1, 2, .strides = {2}, .padding = "same")),
           floats(DIMS(1, 1, 2, 2, 2)), DIMS(1, 2, 4, 4, 1),
           (double[]){-1.32, -1.22, -0.35,       -0.9,        0.2600001, 0.3600001, -1.22, -1.77,
                      -0.3,  -0.35, -0.25,       0.2,         -1.32,     -1.37,     -1.42, -0.97,
                      -1.38, -1.28, -0.01999998, -0.57,       0.2,       0.3,       -0.89, -1.44,
                      -0.27, -0.32, -0.52,       -0.06999999, -1.29,     -1.34,     -1.69, -1.24});
}

TUTTI_TEST(separable_convolution_layers_give_what_keras_gives)
{
    expect(
        LAYERS(tutti_separable_conv2d(2, 2, .depth_multiplier = 2)), floats(DIMS(1, 3, 3, 2)),
        DIMS(1, 2, 2, 2),
        (double[]){-0.3769999, 0.5389999, 0.02899995, -0.7909999, 0.4040001, 1.011, 2.305, -1.446});
    expect(LAYERS(tutti_separable_conv1d(2, 3, .padding = "same", .depth_multiplier = 2,
                                         .activation = "relu")),
           floats(DIMS(1, 4, 2)), DIMS(1, 4, 2),
           (double[]){0.7180001, 0.597, 0.007000059, 0, 0, 0.327, 0.498, 0});
}

TUTTI_TEST(instance_norm_layer_gives_what_keras_gives)
{
    expect(LAYERS(tutti_instance_norm()), floats(DIMS(1, 2, 2, 3)), DIMS(1, 2, 2, 3),
           (double[]){-1.053993, 0.1646803, -0.1647459, -1.311442, 0.5215601, -0.728812,
                      -0.08855838, 0.8784399, -1.292878, -0.3460075, 1.23532, 1.386436});
}

TUTTI_TEST(up_sampling_interpolates_along_time_and_in_volumes)
{
    /* rule 0 gives -0.6, 0.8: a quarter and three quarters of the way between two steps */
    expect(LAYERS(tutti_up_sampling1d(2, .interpolation = "linear")), floats(DIMS(1, 2, 1)),
           DIMS(1, 4, 1), (double[]){-0.6, -0.25, 0.45, 0.8});
    expect(LAYERS(tutti_up_sampling3d(1, .size[2] = 2, .interpolation = "trilinear")),
           floats(DIMS(1, 1, 1, 2, 1)), DIMS(1, 1, 1, 4, 1), (double[]){-0.6, -0.25, 0.45, 0.8});
    expect(LAYERS(tutti_up_sampling1d(2)), floats(DIMS(1, 2, 1)), DIMS(1, 4, 1),
           (double[]){-0.6, -0.6, 0.8, 0.8});
}

/* A model, and what is read from its text, give the same for the same weights. */
static void comes_back(int count, tutti_layer **layers, tutti_tensor *input)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *model = (tutti_sequential)(job, count, layers), *again;
    tutti_tensor *y, *z;
    char *text;
    build_with(model, 1, &input);
    CHECK_OK(tutti_model_to_json(model, &text));
    again = tutti_model_from_json(job, text);
    free(text);
    CHECK_OK(tutti_job_check(job));
    build_with(again, 1, &input);
    CHECK_OK(tutti_predict_on_batch(model, 1, &input, 1, &y));
    CHECK_OK(tutti_predict_on_batch(again, 1, &input, 1, &z));
    CHECK(tutti_tensor_same(y, z));
    tutti_tensor_release(y);
    tutti_tensor_release(z);
    tutti_tensor_release(input);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(volume_layers_come_back_from_text)
{
    comes_back(LAYERS(tutti_conv3d(4, 2, .kernel_size[2] = 1, .groups = 2), tutti_instance_norm(),
                      tutti_up_sampling3d(2, .interpolation = "tricubic"),
                      tutti_conv3d_transpose(3, 2, .strides = {2}, .output_padding = {1}),
                      tutti_max_pool3d(2), tutti_average_pool3d(2, .strides = {1}),
                      tutti_global_max_pool3d()),
               floats(DIMS(2, 3, 3, 3, 2)));
    comes_back(LAYERS(tutti_separable_conv2d(3, 2, .depth_multiplier = 2),
                      tutti_conv2d_transpose(2, 3, .dilations = {2}, .padding = "same"),
                      tutti_up_sampling2d(2, .interpolation = "bicubic"),
                      tutti_global_average_pool2d()),
               floats(DIMS(2, 4, 4, 2)));
    comes_back(LAYERS(tutti_separable_conv1d(3, 2, .dilations = 2),
                      tutti_conv1d_transpose(2, 2, .strides = 3),
                      tutti_up_sampling1d(2, .interpolation = "cubic")),
               floats(DIMS(2, 5, 2)));
}

TUTTI_TEST(volume_layers_learn)
{
    learns(LAYERS(tutti_conv3d(3, 2), tutti_max_pool3d(2), tutti_global_average_pool3d()),
           floats(DIMS(3, 5, 5, 3, 2)), 0.2);
    learns(LAYERS(tutti_conv2d_transpose(3, 3, .strides = {2}), tutti_instance_norm(),
                  tutti_separable_conv2d(2, 3), tutti_global_average_pool2d()),
           floats(DIMS(3, 4, 4, 2)), 0.3);
    learns(LAYERS(tutti_conv3d_transpose(2, 2), tutti_average_pool3d(2),
                  tutti_up_sampling3d(2, .interpolation = "trilinear"),
                  tutti_global_average_pool3d()),
           floats(DIMS(2, 3, 3, 3, 2)), 0.2);
    learns(LAYERS(tutti_conv1d_transpose(3, 2, .strides = 2), tutti_separable_conv1d(2, 3),
                  tutti_up_sampling1d(2, .interpolation = "cubic"), tutti_global_average_pool1d()),
           floats(DIMS(3, 5, 2)), 0.2);
}

TUTTI_TEST(volume_layers_say_what_is_wrong)
{
    refuses(tutti_conv3d(4, 3), floats(DIMS(2, 5, 5, 2)), "takes volumes");
    refuses(tutti_conv3d(3, 1, .groups = 2), floats(DIMS(2, 2, 2, 2, 2)), "2 groups");
    refuses(tutti_conv2d_transpose(0, 3), floats(DIMS(2, 5, 5, 2)), "0 filters");
    refuses(tutti_conv2d_transpose(1, 3, .output_padding = {1}), floats(DIMS(2, 5, 5, 2)),
            "less than the stride");
    refuses(tutti_separable_conv2d(1, 3), floats(DIMS(2, 5, 2)), "takes images");
    refuses(tutti_max_pool3d(2), floats(DIMS(2, 5, 5, 2)), "takes volumes");
    refuses(tutti_up_sampling3d(2, .interpolation = "bilinear"), floats(DIMS(2, 2, 2, 2, 2)),
            "trilinear");
    refuses(tutti_instance_norm(), floats(DIMS(2, 5)), "takes floats");
}
